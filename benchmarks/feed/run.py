"""What publishing and fetching cost against a plain copy of the same file, and how much memory they take.

    python benchmarks/feed/run.py [--size-mb 1024] [--pairs 3] [--json FILE]

Every arm is a process of its own; ratios are of wall time within one pair, the median over pairs. The registry is a
real docker-registry on 127.0.0.1, so its own work (it hashes and writes too) is part of the time. Limit: 100 MB of
memory.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import record

from feed_zoo import RegistryServer, docker_registry

LIMIT_MB = 100
COPY = """
import os, shutil, sys
with open(sys.argv[1], "rb") as source, open(sys.argv[2], "wb") as copy:
    shutil.copyfileobj(source, copy, 1 << 20)
    copy.flush()
    os.fsync(copy.fileno())
"""
WINML = [sys.executable, "-m", "winml.modelkit", "feed"]


def cost(argv: list[str], env: dict[str, str]) -> dict[str, float]:
    """Wall seconds and peak memory of a process."""
    started = time.perf_counter()
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{argv} ended with {process.returncode}")
    return {"wall_s": time.perf_counter() - started, "peak_mb": usage.ru_maxrss / 1024}


def write_random(path: Path, size_mb: int) -> None:
    with path.open("wb") as stream:
        for _ in range(size_mb):
            stream.write(os.urandom(1 << 20))


def pair(root: Path, size_mb: int, address: str) -> dict[str, dict[str, float]]:
    """A copy, a push and a pull of one new file; everything is removed again."""
    work = root / "pair"
    (work / "source").mkdir(parents=True)
    file = work / "source" / "model.bin"
    write_random(file, size_mb)
    env = {**os.environ, "WINML_CACHE": str(work / "cache")}
    which = ["--package-name", "m", "--version", f"0.0.0-{time.time_ns()}-m", "--feed", address]
    found = {"copy": cost([sys.executable, "-c", COPY, str(file), str(work / "copy")], env)}
    found["push"] = cost([*WINML, "push", str(work / "source"), *which], env)
    found["pull"] = cost([*WINML, "pull", *which, "-o", str(work / "out")], env)
    found["push again"] = cost([*WINML, "push", str(work / "source"), *which], env)
    shutil.rmtree(work)
    return found


def report(name: str, pairs: list[dict[str, dict[str, float]]]) -> list[tuple[str, list[float]]]:
    rows = []
    for arm in ("push", "pull", "push again"):
        ratios = [p[arm]["wall_s"] / p["copy"]["wall_s"] for p in pairs]
        peak = max(p[arm]["peak_mb"] for p in pairs)
        rows += [
            (f"{name}: {arm} / copy, wall", ratios),
            (f"{name}: {arm}, peak memory in MB", [p[arm]["peak_mb"] for p in pairs]),
        ]
        verdict = "ok" if peak < LIMIT_MB else "ABOVE THE LIMIT"
        print(
            f"{name:7} {arm:10} {statistics.median(ratios):5.2f} x copy ({min(ratios):.2f} … {max(ratios):.2f})   "
            f"{peak:5.1f} MB (limit {LIMIT_MB}: {verdict})"
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size-mb", type=int, default=1024)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if docker_registry() is None:
        raise SystemExit("docker-registry is not here and cannot be fetched")
    results = []
    with tempfile.TemporaryDirectory(prefix="winml-bench-") as name:
        root = Path(name)
        results += report(
            "folder", [pair(root, given.size_mb, f"folder:{root / 'pair' / 'feed'}") for _ in range(given.pairs)]
        )
        pairs = []
        for number in range(given.pairs):
            folder = root / f"registry{number}"
            folder.mkdir()
            server = RegistryServer(folder)
            try:
                pairs.append(pair(root, given.size_mb, server.address))
            finally:
                server.kill()
                shutil.rmtree(folder)
        results += report("oci", pairs)
    if given.json:
        command = f"python benchmarks/feed/run.py --size-mb {given.size_mb} --pairs {given.pairs}"
        record.write_results(given.json, command, results)


if __name__ == "__main__":
    main()

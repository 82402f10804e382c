"""Ends builds, searches and matrix runs at random moments, without a warning, then goes on with them.

    python3.11 scripts/windows/run_tests.py --program benchmarks/windows/kills.py [--kills 60] [--kinds build matrix]

Under Windows Python that is TerminateProcess, elsewhere SIGKILL (`python benchmarks/windows/kills.py`). After every
kill no process of the command may be left and what has its final name must be whole. At the end of each piece of work
the result must be that of an undisturbed one, with no trial, build or published version lost or made twice.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[2]
WINML = [sys.executable, "-m", "winml.modelkit"]
KNOBS = {"quantize.scheme": ["int8", "u8u8", "fp16"]}
GONE_S = 60.0


@dataclass
class World:
    """A folder for everything, with a cache per piece of work, so that all of them take as long."""

    root: Path
    kills: Counter[str] = field(default_factory=Counter)
    left_over: int = 0

    def start(self, name: str, words: list[str]) -> subprocess.Popen[bytes]:
        env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "WINML_CACHE": str(self.root / f"cache-{name}")}
        out, err = ((self.root / f"{name}.{stream}").open("wb") for stream in ("out", "err"))
        with out, err:
            return subprocess.Popen(
                [*WINML, *words, "--json"], env=env, cwd=self.root, stdin=subprocess.PIPE, stdout=out, stderr=err
            )

    def result(self, name: str, code: int) -> dict[str, Any]:
        said = (self.root / f"{name}.err").read_text("utf-8", "replace")
        assert code == 0, f"{name} ended with {code}: {said}"
        found: dict[str, Any] = json.loads((self.root / f"{name}.out").read_text("utf-8"))
        return found

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """End a command without a warning, and wait until everything that it started is gone."""
        try:
            started = psutil.Process(process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            started = []
        process.kill()
        process.wait()
        _, alive = psutil.wait_procs(started, timeout=GONE_S)
        self.left_over += len(alive)
        assert not alive, f"left behind after {GONE_S:g} s: {alive}"


@dataclass(frozen=True)
class Work:
    """Something that is killed and goes on: its command, and what must hold after a kill and at its end."""

    kind: str
    words: Callable[[str], list[str]]
    after_kill: Callable[[str], None]
    at_end: Callable[[str, dict[str, Any]], Any]


def records(path: Path) -> list[dict[str, Any]]:
    lines = path.read_bytes().split(b"\n")[:-1] if path.is_file() else []
    return [json.loads(line)["record"] for line in lines]


def make_works(world: World) -> list[Work]:
    root = world.root
    space = root / "space.json"
    space.write_text(json.dumps({"schema": "winml/space/1", "knobs": KNOBS}))
    seen: dict[str, list[dict[str, Any]]] = {}

    def build_words(name: str) -> list[str]:
        return ["build", "--sample", "-p", "int8", "--target", "cpu", "-o", str(root / name), "--overwrite"]

    def build_is_whole(name: str) -> None:
        folder = root / name
        assert not folder.exists() or (folder / "build_manifest.json").is_file(), f"{folder} is half a build"

    def build_end(name: str, value: dict[str, Any]) -> Any:
        build_is_whole(name)
        return value["artifact"]["digest"]

    def search_words(name: str) -> list[str]:
        there = (root / name / "journal.jsonl").is_file()
        more = ["--resume"] if there else []
        words = ["autoconfig", "--sample", "--target", "cpu", "--objective", "size", "--space", str(space)]
        return [*words, "-o", str(root / name), *more]

    def search_after(name: str) -> None:
        found = [r for r in records(root / name / "journal.jsonl") if r["kind"] != "preparation"]
        before = seen.get(name, [])
        assert found[: len(before)] == before, "a record was lost"
        seen[name] = found

    def search_end(name: str, value: dict[str, Any]) -> Any:
        choices = [json.dumps(trial["choice"]) for trial in value["trials"]]
        assert len(choices) == len(set(choices)), "a trial was made twice"
        return sorted(choices), value["champion"]["digest"]

    def matrix_words(name: str) -> list[str]:
        words = ["matrix", "run", "--sample", "--targets", "cpu,dml,webgpu", "--feed", f"folder:{root / name}-feed"]
        return [*words, "--run-stamp", name.replace("-", ""), "--resume", "-o", str(root / name)]

    def matrix_after(name: str) -> None:
        found = records(root / name / "journal.jsonl")
        before = seen.get(name, [])
        assert found[: len(before)] == before, "a record was lost"
        seen[name] = found

    def matrix_end(name: str, value: dict[str, Any]) -> Any:
        assert all(cell["upload_status"] == "uploaded" for cell in value["cells"]), value["cells"]
        built = Counter(
            r["version"]
            for r in records(root / name / "journal.jsonl")
            if r["record"] == "build" and r["status"] == "ok"
        )
        assert all(built[cell["version"]] == 1 for cell in value["cells"]), f"built twice or not at all: {built}"
        words = [
            "feed",
            "verify",
            "--package-name",
            "digits",
            "--run-stamp",
            name.replace("-", ""),
            "--feed",
            f"folder:{root / name}-feed",
        ]
        process = world.start(f"{name}-verify", words)
        verified = world.result(f"{name}-verify", process.wait())
        assert len(verified["versions"]) == len(value["cells"])
        return len(value["cells"])  # a digest holds the times of its build

    return [
        Work("build", build_words, build_is_whole, build_end),
        Work("autoconfig", search_words, search_after, search_end),
        Work("matrix", matrix_words, matrix_after, matrix_end),
    ]


def finish(world: World, work: Work, name: str) -> tuple[Any, float]:
    started = time.monotonic()
    process = world.start(name, work.words(name))
    value = world.result(name, process.wait())
    return work.at_end(name, value), time.monotonic() - started


def disturb(world: World, work: Work, name: str, most: int, rng: random.Random, took_s: float) -> int:
    """Kill a piece of work again and again, until it is through or was killed often enough; how often that was."""
    for number in range(most):
        process = world.start(name, work.words(name))
        try:
            process.wait(timeout=rng.uniform(0.3, took_s))
            world.result(name, process.returncode)
            return number
        except subprocess.TimeoutExpired:
            world.kill(process)
        work.after_kill(name)
        print(f"{name}: kill {number + 1}", flush=True)
    return most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--kinds", nargs="+", default=["build", "autoconfig", "matrix"])
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng = random.Random(given.seed)
    folder = Path(tempfile.mkdtemp(prefix="winml-kills-"))
    world = World(folder)
    works = [work for work in make_works(world) if work.kind in given.kinds]
    for work in works:
        expected, took_s = finish(world, work, f"{work.kind}-whole")
        print(f"{work.kind}: undisturbed in {took_s:.0f} s", flush=True)
        number = 0
        while world.kills[work.kind] < given.kills // len(works):
            number += 1
            name = f"{work.kind}-{number}"
            most = given.kills // len(works) - world.kills[work.kind]
            world.kills[work.kind] += disturb(world, work, name, most, rng, took_s)
            found, _ = finish(world, work, name)
            assert found == expected, (found, expected)
            for path in (f"cache-{name}", name, f"{name}-feed"):
                shutil.rmtree(folder / path, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
    kinds = ", ".join(f"{count} of {kind}" for kind, count in world.kills.items())
    found = f"{sum(world.kills.values())} kills ({kinds}) on {sys.platform}"
    print(f"{found}: nothing lost, doubled or half-written, no process left")


if __name__ == "__main__":
    main()

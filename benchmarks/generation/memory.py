"""Peak memory of `winml build` of a decoder against the size of its weights, on Linux.

    python benchmarks/generation/memory.py [--size 775M] [--precisions fp32,int4] [--work FOLDER] [--json FILE]

A Llama with random weights in float32 is built into an empty cache, while the memory of the build's processes is looked
at every fifth of a second. Pages that processes share count once (`Pss`), and all processes count that are alive at a
time. `own` are pages that only this memory has (anonymous and shared memory): the machine must have as much. `resident`
also has the pages of mapped files, which the system takes away when it needs them. The limit for `own` is 1.5.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import record

LIMIT = 1.5
HERE = Path(__file__).resolve().parent


def find_tree(root: int) -> list[int]:
    """A process and everything that it started, as far as it is alive."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text("utf-8").rpartition(")")[2].split()[1])
            except OSError:
                continue  # it has ended
            parents.setdefault(parent, []).append(int(entry.name))
    found, waiting = [], [root]
    while waiting:
        process = waiting.pop()
        found.append(process)
        waiting += parents.get(process, [])
    return found


def read_memory(processes: list[int]) -> tuple[int, int]:
    """Own and resident bytes of all of them together."""
    own = resident = 0
    for process in processes:
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text("ascii").splitlines()[1:]
        except OSError:
            continue  # it has ended
        sizes = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines)}
        own += sizes.get("Pss_Anon", 0) + sizes.get("Pss_Shmem", 0)
        resident += sizes.get("Pss", 0)
    return own, resident


def build(model: Path, precision: str, work: Path) -> tuple[int, int]:
    """The peaks of a build."""
    env = {**os.environ, "WINML_CACHE": str(work / f"cache-{precision}")}
    words = ["build", "-m", str(model), "-p", precision, "--target", "cpu", "-o", str(work / precision)]
    peaks = [0, 0]
    with subprocess.Popen([sys.executable, "-m", "winml.modelkit", *words], env=env) as process:
        while process.poll() is None:
            found = read_memory(find_tree(process.pid))
            peaks = [max(pair) for pair in zip(peaks, found, strict=True)]
            time.sleep(0.2)
    if process.returncode:
        raise SystemExit(f"the build ended with {process.returncode}")
    return peaks[0], peaks[1]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", default="775M")
    parser.add_argument("--precisions", default="fp32,int4")
    parser.add_argument("--work", type=Path, help="folder for model, cache and builds, about five times the weights")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[tuple[str, list[float]]] = []
    with tempfile.TemporaryDirectory(prefix="winml-memory-", dir=options.work) as temporary:
        work = Path(temporary)
        make = [sys.executable, str(HERE / "random_llama.py"), options.size, str(work / "model")]
        weights = int(subprocess.run(make, check=True, capture_output=True, text=True).stdout.split()[-1])
        rows.append(("weights, GB", [weights / 1e9]))
        for precision in options.precisions.split(","):
            own, resident = build(work / "model", precision, work)
            rows.append((f"{precision}: peak of own memory / weights", [own / weights]))
            rows.append((f"{precision}: peak with mapped files / weights", [resident / weights]))
            peaks = f"own {own / weights:.2f} (limit {LIMIT}), resident {resident / weights:.2f}"
            print(f"{precision}: {peaks} of {weights:,} bytes", flush=True)
    if options.json:
        command = f"python benchmarks/generation/memory.py --size {options.size} --precisions {options.precisions}"
        record.write_results(options.json, command, rows)


if __name__ == "__main__":
    main()

"""Planner and journal of a matrix with many cells: how time and memory grow, with builds that take no time.

    python benchmarks/cluster/simulate.py [--sizes 1000,10000,100000] [--folder DIR] [--json FILE]

Everything is real but the builds: planning, the loop, the journal on the disk, results, progress, going on. Every size
runs in a process of its own. A step that grows in proportion has the same cost per cell at every size; ratios are to
the smallest size. Limit: 2.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from winml.modelkit.build_matrix import command as matrix
from winml.modelkit.build_matrix.models import MatrixModel
from winml.modelkit.build_matrix.plan import COMBOS, Cell
from winml.modelkit.build_matrix.plan import plan as planned
from winml.modelkit.build_matrix.publishing import NOT_ASKED
from winml.modelkit.build_matrix.run_folder import MatrixFolder
from winml.modelkit.build_matrix.state import Build
from winml.modelkit.core.target import Target
from winml.modelkit.dispatch.base import Job, Result
from winml.modelkit.store.journal import Journal

LIMIT = 2.0
SLOTS = 64
DISK = 1 << 30
"""What `--max-disk` allows: a thousand of the cells, which say that they take a megabyte each."""


class Instant:
    """Nodes that are done at once."""

    slots = SLOTS

    def __init__(self) -> None:
        self._queue: deque[Job] = deque()

    def check(self, job: Job) -> None:
        """Everything can be run."""

    def submit(self, job: Job) -> None:
        self._queue.append(job)

    def wait(self, timeout_s: float) -> Result | None:
        return Result(self._queue.popleft().id, "ok", 0, "", "", 1.0, node="node", environment={"cores": 2})

    def close(self) -> None:
        """Nothing runs."""


class Pretended:
    """A place whose builds are only written down."""

    notes: list[str] = []  # noqa: RUF012 - nothing is ever noted

    def __init__(self) -> None:
        self.executor = Instant()

    def job(self, cell: Cell) -> Job:
        return Job(cell.version, ("build",), needs={str(cell.target): 1} if cell.compile else {})

    def accept(self, cell: Cell, result: Result) -> Build:
        digest = "sha256:" + "0" * 64
        return Build("ok", "complete", 1.0, "2026-01-01T00:00:00.000+00:00", None, digest, 1 << 20, files_by="feed")

    def missing(self, cells: Iterable[Cell]) -> dict[Target, str]:
        return {}

    def finished(self) -> None:
        """Nothing was staged."""


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    started = time.process_time()
    value = work()
    return value, time.process_time() - started


def one_size(count: int, folder: Path) -> dict[str, float]:
    """CPU seconds of every step, and the memory it took, for so many cells."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    models = tuple(
        MatrixModel(f"hub/model-{n}", f"hub/model-{n}", task="fill-mask") for n in range(count // len(COMBOS))
    )
    cells, plan_s = timed(lambda: planned(models, COMBOS, run_stamp="a1", compiled=True))
    output = MatrixFolder(folder / "out")
    output.path.mkdir(parents=True)
    request = matrix.RunRequest(matrix.PlanRequest(models), str(output.path), "winml matrix run", max_disk=DISK)
    started = time.perf_counter()
    with Journal(output.journal) as journal:
        run = matrix.Run(request, output, journal, (), None, cells, lambda event: None)
        there = {cell.version: NOT_ASKED for cell in cells}
        result, run_s = timed(lambda: run.carry_out(there, nullcontext(Pretended())))
    wall_s = time.perf_counter() - started
    assert result.progress.done == len(cells)
    _, status_s = timed(lambda: matrix.read_status(str(output.path)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "cells": len(cells),
        "plan_s": plan_s,
        "run_s": run_s,
        "run_wall_s": wall_s,
        "status_s": status_s,
        "memory_kib": peak - before,
        "journal_bytes": output.journal.stat().st_size,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--folder", type=Path, help="where runs are written (default: a temporary folder)")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is not None:
        print(json.dumps(one_size(given.one, given.folder)))
        return
    found = []
    for size in map(int, given.sizes.split(",")):
        with tempfile.TemporaryDirectory(dir=given.folder) as name:
            argv = [sys.executable, __file__, "--one", str(size), "--folder", name]
            env = {**os.environ, "WINML_CACHE": f"{name}/cache"}
            done = subprocess.run(argv, check=True, capture_output=True, env=env)
        found.append(json.loads(done.stdout))
        show(found[0], found[-1])
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1))


def show(first: dict[str, float], value: dict[str, float]) -> None:
    """Costs per cell, and their ratio to those of the smallest size."""
    print(f"{value['cells']} cells")
    for name in ("plan_s", "run_s", "run_wall_s", "status_s", "memory_kib", "journal_bytes"):
        each = value[name] / value["cells"]
        ratio = each / (first[name] / first["cells"]) if first[name] else float("nan")
        verdict = "" if ratio <= LIMIT else f"  more than {LIMIT:g}"
        print(f"  {name:14} {value[name]:12.2f}  per cell {each:10.6f}  {ratio:5.2f} x the smallest{verdict}")


if __name__ == "__main__":
    main()

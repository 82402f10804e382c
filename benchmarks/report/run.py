"""How large a report is and how long it takes, against the file it is made from.

    python benchmarks/report/run.py [--json FILE]

Runs of growing size are made of real ones (`tests/goldens/before`): a measurement of up to 100,000 timed runs, a trace
of up to 10,000 operators, a search of up to 1,000 trials, a matrix of up to 10,000 cells. For each: bytes of the page
against those of the file, and the time to read the file and make the page against `json.loads` of the same file. Also
the time until a browser has loaded the largest page, against an empty one, where Chromium is installed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "scripts"), str(ROOT / "tests")]

import record  # noqa: E402 - beside this folder
from chromium import chromium, find_chromium  # noqa: E402

from winml.modelkit.core.values import read, to_json  # noqa: E402
from winml.modelkit.render.pages.html import page_html  # noqa: E402
from winml.modelkit.reporting.command import make_page  # noqa: E402
from winml.modelkit.reporting.runs import KINDS, Run, load_class, read_run  # noqa: E402

BEFORE = ROOT / "tests" / "goldens" / "before"
REPEATS = 5


def perf_of(count: int) -> Run:
    """A measurement of so many timed runs in ten sessions."""
    run = read_run(BEFORE / "perf.json")
    first = run.value.measurement.rounds[0]
    each = tuple(first.wall_ns[i % len(first.wall_ns)] + i % 97 for i in range(count // 10))
    rounds = tuple(replace(first, round=n, wall_ns=each, cpu_ns=each) for n in range(10))
    return replace(run, value=replace(run.value, measurement=replace(run.value.measurement, rounds=rounds)))


def trace_of(count: int) -> Run:
    """A trace of so many operators."""
    run = read_run(BEFORE / "perf_op_trace.json")
    known = run.value.operators
    operators = tuple(
        replace(known[i % len(known)], op_path=f"/layer.{i // 8}/{known[i % len(known)].op_path}.{i}",
                percent_of_total=100 / count)
        for i in range(count)
    )  # fmt: skip
    return replace(run, value=replace(run.value, operators=operators))


def search_of(count: int) -> Run:
    """A search of so many trials."""
    run = read_run(BEFORE / "search")
    known = run.value.trials
    more = tuple(replace(known[1 + i % (len(known) - 1)], id=f"h{i}") for i in range(len(known), count))
    return replace(run, value=replace(run.value, trials=(*known, *more)))


def matrix_of(count: int) -> Run:
    """A matrix of so many cells."""
    run = read_run(BEFORE / "matrix")
    known = run.value.cells
    cells = tuple(
        replace(known[i % len(known)], hf_id=f"{known[i % len(known)].hf_id}-{i // len(known)}") for i in range(count)
    )
    return replace(run, value=replace(run.value, cells=cells))


SIZES: dict[str, tuple[Callable[[int], Run], tuple[int, ...]]] = {
    "perf, timed runs": (perf_of, (100, 10_000, 100_000)),
    "op trace, operators": (trace_of, (10, 1_000, 10_000)),
    "autoconfig, trials": (search_of, (10, 100, 1_000)),
    "matrix, cells": (matrix_of, (10, 1_000, 10_000)),
}


def _seconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def measure(run: Run) -> tuple[list[float], list[float], str]:
    """Ratios of time and of bytes, each repeat with its own reading of the file; and the page."""
    written = json.dumps(to_json(run.value))
    page = page_html(make_page(run))
    form = load_class(KINDS[run.kind].value)

    def report() -> None:
        value = read(form, json.loads(written), run.kind, strict=False)
        page_html(make_page(replace(run, value=value)))

    times = [_seconds(report) / _seconds(lambda: json.loads(written)) for _ in range(REPEATS)]
    return times, [len(page.encode()) / len(written.encode())], page


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[tuple[str, list[float]]] = []
    largest = ""
    for name, (make, counts) in SIZES.items():
        for count in counts:
            times, sizes, page = measure(make(count))
            largest = max(largest, page, key=len)
            rows.append((f"{name} {count:,}: page / file, bytes", sizes))
            rows.append((f"{name} {count:,}: read and make / json.loads, time", times))
            print(f"{name} {count:,}: {len(page.encode()) / 1024:.0f} KiB, {sizes[0]:.3f} of the file; "
                  f"{sorted(times)[len(times) // 2]:.1f} times json.loads", flush=True)  # fmt: skip
    if find_chromium() is not None:
        rows.append(("largest page / empty page, loaded in Chromium, time", _opened(largest)))
        print(f"largest page ({len(largest.encode()) / 1024:.0f} KiB) against an empty one in Chromium: "
              f"{', '.join(f'{value:.1f}' for value in rows[-1][1])} times")  # fmt: skip
    if options.json:
        record.write_results(options.json, "python benchmarks/report/run.py", rows)
    return 0


def _opened(text: str) -> list[float]:
    found = []
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        full, empty = Path(folder) / "full.html", Path(folder) / "empty.html"
        full.write_text(text, encoding="utf-8")
        empty.write_text("<!doctype html><title>t</title>", encoding="utf-8")
        with browser.page(empty.as_uri()) as page:
            for _ in range(REPEATS):
                plain = _seconds(lambda: page.go(empty.as_uri()))
                found.append(_seconds(lambda: page.go(full.as_uri())) / plain)
    return found


if __name__ == "__main__":
    raise SystemExit(main())

"""What operator tracing and `--monitor` cost, and how much of a run the operators explain, as ratios taken in one run.

    python benchmarks/tracing/run.py [--pairs 12] [--model transformer.onnx] [--json FILE]

A pair is two fresh processes of `winml perf`, with and without, in random order; its value is the ratio of their median
runs. Each ratio is the median over the pairs, with the 95 % interval of that median (order statistics). Without
`--model` the transformer is a 6-layer encoder of MiniLM's size with random weights.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[2] / "tests")]

import record  # noqa: E402 - found by the line above
from intervals import interval_of_median  # noqa: E402
from startup import WINML, ratios  # noqa: E402

import model_zoo  # noqa: E402

TOKENS = ("--int-range", "0:999")
TRACE = ("--op-tracing", "basic")


def perf(model: Path, *words: str) -> dict[str, Any]:
    argv = [*WINML, "perf", "-m", str(model), "--sessions", "1", "--json", *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{argv} ended with {done.returncode}: {done.stderr}")
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def p50(clock: str, model: Path, *words: str) -> Callable[[], float]:
    return lambda: float(perf(model, *words)[clock]["p50"])


def explained(model: Path, pairs: int, *words: str) -> list[float]:
    """Operators over the session's own wall time."""
    found = []
    for _ in range(pairs):
        summary = perf(model, *TRACE, *words)["op_trace"]["summary"]
        found.append((summary["end_to_end_us"] - summary["unexplained_us"]) / summary["end_to_end_us"])
    return found


def reading(folder: Path, count: int) -> list[float]:
    """CPU milliseconds to read 1000 rows of the QNN EP's profile."""
    from winml.modelkit.session.monitor.qnn.csv_parser import HEADER, QnnCsv

    rows = [f"0,NODE,{i},CYCLES,BACKEND,SUB-EVENT,layer/{i}/MatMul:OpId_{i} (cycles)" for i in range(499)]
    run = "\n".join([*rows, "0,EXECUTE,1,US,BACKEND,ROOT,QNN (execute) time"]) + "\n"
    path = folder / "p.csv"
    path.write_text(",".join(HEADER) + "\n" + run * 100)
    times = []
    for _ in range(count):
        before = time.process_time()
        assert sum(len(r.nodes) for r in QnnCsv(path).runs()) == 49_900
        times.append((time.process_time() - before) * 1000 / 50)
    return times


def rows(folder: Path, transformer: Path, pairs: int) -> Iterator[tuple[str, list[float]]]:
    """Each name with its values, as soon as they are measured."""
    small = model_zoo.saved(model_zoo.conv_net(), folder / "small.onnx")
    quantized = model_zoo.conv_w8a8(folder / "w8a8.onnx")
    cpu = ("--target", "cpu", "--threads", "1")
    few, many = ("--iterations", "30", *TOKENS), ("--iterations", "2000")
    npu = ("--target", "qnn/npu", "--iterations", "40")

    def against_plain(clock: str, model: Path, words: tuple[str, ...], *added: str) -> list[float]:
        return ratios(p50(clock, model, *words, *added), p50(clock, model, *words), pairs)

    large = (*cpu, *few)
    yield "transformer on cpu: operators / run time", explained(transformer, pairs, *large)
    yield "transformer on cpu: traced / plain, CPU time", against_plain("cpu_ms", transformer, large, *TRACE)
    yield "0.1 ms CNN on cpu: traced / plain, CPU time", against_plain("cpu_ms", small, (*cpu, *many), *TRACE)
    yield "W8A8 CNN on the QNN simulator: traced / plain, CPU", against_plain("cpu_ms", quantized, npu, *TRACE)
    yield "transformer on cpu: --monitor / plain, CPU time", against_plain("cpu_ms", transformer, large, "--monitor")
    yield (
        "transformer on cpu: --monitor / plain, wall time",
        against_plain("latency_ms", transformer, large, "--monitor"),
    )
    yield "reading 1000 rows of a QNN profile, CPU ms", reading(folder, pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sized = model_zoo.encoder(layers=6, width=384, heads=12, tokens=128, words=30522)
        transformer = options.model or model_zoo.saved(sized, folder / "encoder.onnx")
        for what, values in rows(folder, transformer, options.pairs):
            middle, low, high = interval_of_median(values)
            print(f"{what:56s} {middle:7.3f}  ({low:.3f} … {high:.3f}, n={len(values)})", flush=True)
            results.append((what, values))
    print(f"load average {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores")
    if options.json:
        model = "" if options.model is None else f" --model {options.model.name}"
        record.write_results(options.json, f"python benchmarks/tracing/run.py --pairs {options.pairs}{model}", results)


if __name__ == "__main__":
    main()

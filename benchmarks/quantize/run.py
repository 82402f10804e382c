"""Static quantization against `onnxruntime.quantization.quantize_static`: wall time and peak memory.

    python benchmarks/quantize/run.py [--samples 16 512] [--methods minmax percentile] [--models encoder] [--pairs 3]

Both do the same work in fresh processes that alternate: the same model, the same samples read from one file, one
at a time, u8s8 per channel, QDQ. `winml` is all that the command does, which includes comparing the outputs of both
models at the end; `same-work` leaves that out, as onnxruntime's tool has no such thing. Ratios are medians over
rounds; limits: `same-work` 1.0x the time at most, peak memory at 512 samples 1.1x of that at 16.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import models
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import record

ARMS = Path(__file__).with_name("arms.py")


def cost(arm: str, model: Path, data: Path, method: str, folder: Path) -> dict[str, float]:
    """Seconds and peak MiB of one process."""
    argv = [sys.executable, str(ARMS), arm, str(model), str(data), method, str(folder / f"{arm}.onnx")]
    log = (folder / "log.txt").open("wb")
    started = time.perf_counter()
    process = subprocess.Popen(argv, cwd=folder, stdout=log, stderr=log)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit((folder / "log.txt").read_text())
    return {
        "wall_s": time.perf_counter() - started,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "peak_mib": int((folder / "peak.txt").read_text()) / 2**20,
    }


def write_samples(kind: str, count: int, folder: Path) -> Path:
    path = folder / f"{kind}_{count}.npz"
    shape = models.KINDS[kind][0][1:]
    np.savez(path, x=np.random.default_rng(0).standard_normal((count, *shape)).astype(np.float32))
    return path


def compare(kind: str, count: int, method: str, pairs: int, folder: Path) -> dict[str, object]:
    model, data = models.saved(kind, folder), write_samples(kind, count, folder)
    rows: dict[str, list[dict[str, float]]] = {"winml": [], "same-work": [], "onnxruntime": []}
    for pair in range(pairs):
        for arm in sorted(rows, reverse=bool(pair % 2)):
            rows[arm].append(cost(arm, model, data, method, folder))
    data.unlink()

    def median(arm: str, what: str) -> float:
        return statistics.median(row[what] for row in rows[arm])

    def ratio(arm: str, what: str) -> float:
        both = zip(rows[arm], rows["onnxruntime"], strict=True)
        return statistics.median(ours[what] / theirs[what] for ours, theirs in both)

    found = {
        "model": kind,
        "method": method,
        "samples": count,
        **{f"{arm}_{what}_ratio": ratio(arm, what) for arm in ("winml", "same-work") for what in ("wall_s", "cpu_s")},
        **{f"{arm}_{what}": median(arm, what) for arm in rows for what in ("wall_s", "cpu_s", "peak_mib")},
        "rows": rows,
    }
    print(
        f"{kind:9} {method:10} {count:4} samples: {found['same-work_wall_s']:6.2f} s against "
        f"{found['onnxruntime_wall_s']:6.2f} s; same work {found['same-work_wall_s_ratio']:.2f} wall "
        f"{found['same-work_cpu_s_ratio']:.2f} CPU, all {found['winml_wall_s_ratio']:.2f} wall "
        f"{found['winml_cpu_s_ratio']:.2f} CPU; peak {found['winml_peak_mib']:.0f} MiB against "
        f"{found['onnxruntime_peak_mib']:.0f} MiB",
        flush=True,
    )
    return found


def measured(found: dict[str, Any]) -> list[tuple[str, list[float]]]:
    """Each figure of a comparison with its value in every round."""
    where = f"{found['model']}, {found['method']}, {found['samples']} samples"
    arms = found["rows"]
    ratios = [
        (
            f"{where}: {arm} / quantize_static, {what.removesuffix('_s')}",
            [ours[what] / theirs[what] for ours, theirs in zip(arms[arm], arms["onnxruntime"], strict=True)],
        )
        for arm in ("same-work", "winml")
        for what in ("cpu_s", "wall_s")
    ]
    peaks = [
        (f"{where}: peak memory of {name} in MiB", [row["peak_mib"] for row in arms[arm]])
        for arm, name in (("winml", "winml"), ("onnxruntime", "quantize_static"))
    ]
    return ratios + peaks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, nargs="+", default=[16, 512])
    parser.add_argument("--methods", nargs="+", default=["minmax", "percentile"])
    parser.add_argument("--models", nargs="+", default=list(models.KINDS), choices=list(models.KINDS))
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = [
            compare(kind, count, method, given.pairs, Path(folder))
            for method in given.methods
            for kind in given.models
            for count in given.samples
        ]
    if given.json:
        words = (
            f"--samples {' '.join(map(str, given.samples))} --methods {' '.join(given.methods)} "
            f"--models {' '.join(given.models)} --pairs {given.pairs}"
        )
        rows = [row for one in found for row in measured(one)]
        record.write_results(given.json, f"python benchmarks/quantize/run.py {words}", rows)


if __name__ == "__main__":
    main()

"""Eight combos of a model in one matrix, against eight separate builds and against one: wall time, CPU time and disk.

    python benchmarks/matrix/run.py [--pairs 3] [--jobs 1] [--model LABEL=MODEL ...] [--quick] [--json FILE]

Every arm starts with an empty store of its own; the arms of a pair run one after another. `one` is the dearest of the
eight, that of QNN's NPU, which is quantized. Ratios are within a pair, the median over pairs. Goal: 2x one build.
`--model` measures other models than the two ONNX files that come with it; `--quick` leaves the eight builds out.
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
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "quantize"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import models
import record

import model_zoo
from winml.modelkit.build_matrix.disk import bytes_in
from winml.modelkit.build_matrix.plan import COMBOS

GOAL = 2.0
WINML = [sys.executable, "-m", "winml.modelkit"]
OPTIONS = ["--calibration", "random", "--samples", "16"]
DEAREST = "qnn/npu"


def saved(root: Path) -> dict[str, str]:
    """A residual CNN and a text encoder of six layers, with random weights."""
    encoder = model_zoo.encoder(layers=6, width=384, heads=12, tokens=64, words=3000)
    return {
        "CNN": str(models.saved("residual", root)),
        "text encoder": str(model_zoo.saved(encoder, root / "text.onnx")),
    }


def cost(argv: list[str], cache: Path) -> dict[str, float]:
    """Wall and CPU seconds of a command with everything it starts."""
    env = {**os.environ, "WINML_CACHE": str(cache)}
    started = time.perf_counter()
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env)
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{argv} ended with {process.returncode}: {errors.decode()}")
    return {"wall_s": time.perf_counter() - started, "cpu_s": usage.ru_utime + usage.ru_stime}


def build(model: str, target: str, place: Path) -> dict[str, float]:
    words = [*WINML, "build", "-m", model, "--target", target, "-o", str(place / "out")]
    place.mkdir(parents=True)
    calibrated = OPTIONS if target == DEAREST else []
    return cost([*words, *calibrated], place / "cache") | {"disk": float(bytes_in(place))}


def matrix(model: str, place: Path, jobs: int) -> dict[str, float]:
    place.mkdir(parents=True)
    words = [*WINML, "matrix", "run", "-m", model, *OPTIONS, "--jobs", str(jobs), "-o", str(place / "out")]
    return cost(words, place / "cache") | {"disk": float(bytes_in(place))}


def pair(model: str, root: Path, jobs: int, *, quick: bool) -> dict[str, dict[str, float]]:
    """Builds on their own, one of which is `one`, and the matrix."""
    targets = [DEAREST] if quick else [str(target) for target in COMBOS]
    alone = {target: build(model, target, root / f"alone-{target.replace('/', '-')}") for target in targets}
    found = {"one": alone[DEAREST], "matrix": matrix(model, root / "matrix", jobs)}
    if not quick:
        found["eight"] = {key: sum(arm[key] for arm in alone.values()) for key in alone[DEAREST]}
    shutil.rmtree(root)
    return found


def report(name: str, pairs: list[dict[str, dict[str, float]]]) -> list[tuple[str, list[float]]]:
    rows = []
    for key in ("wall_s", "cpu_s", "disk"):
        ratios = {base: [p["matrix"][key] / p[base][key] for p in pairs] for base in pairs[0] if base != "matrix"}
        for base, found in ratios.items():
            rows.append((f"{name}: matrix / {base}, {key.removesuffix('_s')}", found))
            middle = statistics.median(found)
            verdict = "" if base != "one" else f"; goal {GOAL}: {'ok' if middle <= GOAL else 'MISSED'}"
            print(
                f"{name:13} {key:7} {middle:5.2f} x {base} ({min(found):.2f} … {max(found):.2f}{verdict})", flush=True
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--model", action="append", metavar="LABEL=MODEL")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory(prefix="winml-bench-") as folder:
        root = Path(folder)
        chosen = dict(word.split("=", 1) for word in given.model) if given.model else saved(root)
        for name, model in chosen.items():
            pairs = [pair(model, root / "pair", given.jobs, quick=given.quick) for _ in range(given.pairs)]
            results += report(name, pairs)
    if given.json:
        words = [f"--pairs {given.pairs}", f"--jobs {given.jobs}"] + (["--quick"] if given.quick else [])
        words += [f"--model {one}" for one in given.model or ()]
        record.write_results(given.json, f"python benchmarks/matrix/run.py {' '.join(words)}", results)


if __name__ == "__main__":
    main()

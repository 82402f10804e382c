"""Five ONNX models of PyPI and npm packages, gated by accuracy: each against a smaller build and a damaged copy.

    python benchmarks/custom_metrics/run.py [--only ocr vad] [--json benchmarks/results/custom_metrics.json]

Three gates per model, with limits that are in the table below: the model itself, its build in a smaller precision
against it, and a copy with noise on its weights against it, which must be refused. The exit code of a gate must be what
its interval says: 0 within the limit, 5 beyond it, 1 where the limit lies inside.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import inputs
import numpy as np
import onnx
from onnx import numpy_helper

sys.path.insert(0, str(Path(__file__).parents[1]))
from record import write_results

METRICS = Path(__file__).with_name("metrics.py")
NOISE = 0.6
"""On the weights of a damaged copy, by the spread of each."""


@dataclass(frozen=True)
class Case:
    model: str
    """File within its package."""
    data: Callable[[Path], None]
    words: tuple[str, ...]
    """What is judged: a task with its options, or a metric of this folder."""
    precision: str
    limit: tuple[str, float]
    """Of the model itself: an option and its value."""
    max_drop: float

    @property
    def package(self) -> str:
        return self.model.partition("/")[0]


CASES = {
    "ocr": Case("ocr/package/assets/ch_PP-OCRv4_rec_infer.onnx", inputs.drawn_text,
                ("--task", "text-recognition", "--task-option", "alphabet={ocr}/package/assets/ppocr_keys_v1.txt"),
                "dynamic", ("--min-metric", 0.9), 0.05),
    "vad": Case("vad/package/dist/silero_vad_v5.onnx", inputs.voice_activity,
                ("--task", "binary-classification"), "fp16", ("--min-metric", 0.85), 0.02),
    "file types": Case("magika/magika/models/standard_v3_3/model.onnx", inputs.file_types,
                       ("--metric", f"{METRICS}:file_type"), "dynamic", ("--min-metric", 0.9), 0.03),
    "pitch": Case("pitch/swift_f0/model.onnx", inputs.tones,
                  ("--metric", f"{METRICS}:pitch"), "int8", ("--max-metric", 10.0), 5.0),
    "speech quality": Case("quality/speechmos/dnsmos_models/sig_bak_ovr.onnx", inputs.noisy_speech,
                           ("--metric", f"{METRICS}:quality"), "dynamic", ("--min-metric", 0.5), 0.1),
}  # fmt: skip


def _winml(*words: object) -> tuple[int, dict[str, Any]]:
    argv = [sys.executable, "-m", "winml.modelkit", *map(str, words), "--target", "cpu", "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    value: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, value


def _quantize(model: Path, case: Case, data: Path) -> Path:
    made = inputs.CACHE / f"{case.package}-{case.precision}.onnx"
    if not made.is_file():
        calibration = ("--calibration", data, "--samples", 24) if case.precision == "int8" else ()
        code, value = _winml("quantize", "-m", model, "-p", case.precision, *calibration, "--no-verify", "-o", made)
        if code:
            raise SystemExit(f"{model.name}: {value['error']['message']}")
    return made


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Weights of a graph and of the graphs in its nodes."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t") and node.op_type == "Constant":
                yield attribute.t
            if attribute.HasField("g"):
                yield from _tensors(attribute.g)


def _damage(model: Path, case: Case) -> Path:
    made = inputs.CACHE / f"{case.package}-damaged.onnx"
    proto, rng = onnx.load(model), np.random.default_rng(0)
    for tensor in _tensors(proto.graph):
        values = numpy_helper.to_array(tensor)
        if values.dtype == np.float32 and values.ndim > 1 and values.size > 64:
            noisy = values + rng.normal(0.0, NOISE * float(values.std()), values.shape).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(noisy, tensor.name))
    onnx.save(proto, made)
    return made


def _expected(interval: dict[str, float], limit: float, *, least: bool) -> int:
    low, high = (interval["low"], interval["high"]) if not least else (-interval["high"], -interval["low"])
    limit = -limit if least else limit
    return 5 if low > limit else 0 if high <= limit else 1


def _estimate(found: dict[str, Any]) -> list[float]:
    return [found["value"], found["interval"]["low"], found["interval"]["high"]]


def run(name: str, case: Case) -> Iterator[tuple[str, list[float]]]:
    """Gates of a model: for each the metric and the drop with their intervals, then the exit code."""
    folder = inputs.fetch(case.package)
    model = folder.parent / case.model
    data = inputs.CACHE / f"{case.data.__name__}.npz"
    if not data.is_file():
        case.data(data)
    words = [word.format(ocr=folder) if word.startswith("alphabet") else word for word in case.words]
    option, least = case.limit
    gates = [
        ("fp32", model, (option, least)),
        (case.precision, _quantize(model, case, data), ("--reference", model, "--max-drop", case.max_drop)),
        ("damaged", _damage(model, case), ("--reference", model, "--max-drop", case.max_drop)),
    ]
    for variant, file, limit in gates:
        code, value = _winml("eval", "-m", file, "--data", data, *words, *limit)
        if "metrics" not in value:
            raise SystemExit(f"{name}, {variant}: {value['error']['message']}")
        metric = value["metric"]
        found, drop = value["metrics"][metric], (value["drop"] or {}).get(metric)
        judged = found if drop is None else drop
        expected = _expected(judged["interval"], limit[-1], least=option == "--min-metric" and drop is None)
        limited = " ".join(str(word) for word in limit[-2:])
        print(f"{name}: {metric} of {variant} {_estimate(found)}, drop {drop and _estimate(drop)}, {limited}: {code}")
        if code != expected or (variant == "damaged" and code != 5):
            raise SystemExit(f"{name}, {variant}: exit {code}, the interval says {expected}")
        yield (
            f"{name} | {metric} | {variant} | {limited}",
            [*_estimate(found), *(_estimate(drop) if drop else []), code],
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--json", type=Path, help="write the results here")
    given = parser.parse_args()
    inputs.CACHE.mkdir(parents=True, exist_ok=True)
    rows: list[tuple[str, list[float]]] = []
    if given.json is not None and given.json.is_file():  # models that are not measured now keep their rows
        kept = json.loads(given.json.read_text(encoding="utf-8"))["rows"]
        rows = [(row["name"], row["values"]) for row in kept if row["name"].partition(" | ")[0] not in given.only]
    for name in given.only:
        rows += run(name, CASES[name])
    if given.json is not None:
        packages = {name: package for name, package in inputs.PACKAGES.items() if name != "speech"}
        write_results(given.json, "python benchmarks/custom_metrics/run.py", rows, conditions={"packages": packages})


if __name__ == "__main__":
    main()

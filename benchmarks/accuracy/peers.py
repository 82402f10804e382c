"""Accuracy-aware quantization against onnxruntime's plain tool and nncf: same models, data and limit.

    python benchmarks/accuracy/peers.py -o DIR --nncf PYTHON [--models resnet vit direction] [--json FILE]

`PYTHON` is that of an environment with nncf and the same onnxruntime. A model is quantized by `quantize_static` as its
documentation shows it (u8s8 per tensor after `quant_pre_process`), by `nncf.quantize_with_accuracy_control`, by
`winml quantize -p int8`, and by `winml quantize --max-drop`. Calibration samples are the same for all; the limit is
held on one half of the test samples, by whoever holds one, and accuracy is taken on the other half. Speed is the
median of the ratios of CPU time to the float model's over runs in turns, one thread. Ends with 1 where
`winml quantize --max-drop` does not hold the limit on the samples it was given.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import fetch
import numpy as np
import onnxruntime as ort
import train

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[1] / "int8")]

import inputs  # noqa: E402 - they lie in folders beside this one
import record  # noqa: E402

MAX_DROP = 0.01
CALIBRATION = 128
ROUNDS = 40


def session(model: Path) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def accuracy(model: Path, samples: np.ndarray, labels: np.ndarray) -> float:
    opened = session(model)
    name = opened.get_inputs()[0].name
    answers = [opened.run(None, {name: x[None]})[0].argmax() for x in samples]
    return float((np.array(answers) == labels).mean())


def speed(model: Path, base: Path, samples: np.ndarray) -> float:
    """The median ratio of CPU time to that of the float model; below 1 is faster."""
    arms = [session(base), session(model)]
    name = arms[0].get_inputs()[0].name
    ratios = []
    for number in range(ROUNDS + 5):
        taken = []
        for arm in arms if number % 2 else reversed(arms):
            started = time.process_time()
            for x in samples[:20]:
                arm.run(None, {name: x[None]})
            taken.append(time.process_time() - started)
        before, after = taken if number % 2 else reversed(taken)
        ratios.append(after / before)
    return statistics.median(ratios[5:])


class _Reader:
    """Calibration samples as onnxruntime's tool wants them."""

    def __init__(self, name: str, samples: np.ndarray) -> None:
        self._feeds = iter([{name: x[None]} for x in samples])

    def get_next(self) -> Any:
        return next(self._feeds, None)


def plain(model: Path, name: str, data: dict[str, np.ndarray], output: Path) -> dict[str, Any]:
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    ready = output.with_name("ready.onnx")
    quant_pre_process(str(model), str(ready), skip_symbolic_shape=True)
    quantize_static(
        str(ready), str(output), _Reader(name, data["calibration"]), quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
    )  # fmt: skip
    return {}


NNCF = """
import sys, nncf, numpy as np, onnx, onnxruntime as ort
model, data, output, limit = sys.argv[1:]
found = np.load(data)
def accuracy(candidate, samples):
    session = ort.InferenceSession(candidate.SerializeToString(), providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    right = [float(session.run(None, {name: x[name]})[0].argmax() == x["label"]) for x in samples]
    return float(np.mean(right)), right
loaded = onnx.load(model)
name = loaded.graph.input[0].name
def feed(x): return {name: x[None]}
pairs = [{name: x[None], "label": y} for x, y in zip(found["limit"], found["limit_labels"])]
quantized = nncf.quantize_with_accuracy_control(
    loaded, nncf.Dataset(list(found["calibration"]), feed), nncf.Dataset(pairs, lambda x: x), accuracy,
    max_drop=float(limit), subset_size=len(found["calibration"]))
onnx.save(quantized, output)
"""


def peer(python: str, model: Path, data: Path, output: Path) -> dict[str, Any]:
    argv = [python, "-c", NNCF, str(model), str(data), str(output), str(MAX_DROP)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["unknown"])[-1][:300]}
    return {}


def winml(*args: str | Path) -> dict[str, Any]:
    argv = [sys.executable, "-m", "winml.modelkit", *map(str, args), "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 5) or not done.stdout:
        raise SystemExit(f"{' '.join(argv)}\n{done.stderr}")
    return json.loads(done.stdout)


def ours(model: Path, folder: Path, output: Path, *, limit: bool) -> dict[str, Any]:
    words = ["quantize", "-m", model, "-o", output, "--overwrite", "-p", "int8", "--target", "cpu"]
    words += ["--calibration", folder / "calibration.npz"]
    if not limit:
        return {"notes": winml(*words)["notes"]}
    words += ["--data", folder / "limit.npz", "--task", "image-classification", "--judge", "value"]
    found = winml(*words, "--max-drop", MAX_DROP)
    return {key: found[key] for key in ("attempts", "kept", "notes", "error") if key in found}


def _digits(kind: str, folder: Path) -> tuple[Path, np.ndarray, np.ndarray, np.ndarray]:
    splits = fetch.mnist(folder)
    exported = folder / f"{kind}-onnx"
    if not exported.is_dir():
        winml("export", "-m", train.train(kind, *splits["train"], folder / f"mnist-{kind}"), "-o", exported)
    images, labels = splits["test"]
    return exported / "model.onnx", splits["train"][0][:CALIBRATION], images[:2000], labels[:2000]


def subject(kind: str, folder: Path) -> tuple[Path, np.ndarray, np.ndarray, np.ndarray]:
    """A model, calibration samples, test samples and their labels."""
    if kind != "direction":
        return _digits(kind, folder)
    made, rng = inputs.SUBJECTS["text direction"], np.random.default_rng(11)
    calibration, _ = made.make(rng, CALIBRATION, folder)
    samples, labels = made.make(rng, 400, folder)
    assert labels is not None
    return made.model(folder), calibration, samples, labels


def rows(kind: str, folder: Path, python: str) -> list[dict[str, Any]]:
    """What every tool makes of a model."""
    model, calibration, samples, labels = subject(kind, folder)
    name = session(model).get_inputs()[0].name
    half = len(samples) // 2
    place = folder / f"peers-{kind}"
    place.mkdir(exist_ok=True)
    data = {
        "calibration": calibration, "limit": samples[:half], "limit_labels": labels[:half],
    }  # fmt: skip
    np.savez(place / "all.npz", **data)
    np.savez(place / "calibration.npz", **{name: calibration})
    np.savez(place / "limit.npz", **{name: samples[:half], "label": labels[:half]})
    arms = {
        "float": lambda output: {},
        "onnxruntime quantize_static": lambda output: plain(model, name, data, output),
        "nncf with accuracy control": lambda output: peer(python, model, place / "all.npz", output),
        "winml quantize": lambda output: ours(model, place, output, limit=False),
        "winml quantize --max-drop": lambda output: ours(model, place, output, limit=True),
    }
    made = []
    for number, (arm, make) in enumerate(arms.items()):
        output = model if arm == "float" else place / f"{number}.onnx"
        started = time.monotonic(), sum(os.times()[:4])
        more = make(output)
        row = {"model": kind, "arm": arm, "seconds": time.monotonic() - started[0],
               "cpu_seconds": sum(os.times()[:4]) - started[1], **more}  # fmt: skip
        if output.is_file() and "error" not in more:
            row |= {
                "limit_accuracy": accuracy(output, samples[:half], labels[:half]),
                "accuracy": accuracy(output, samples[half:], labels[half:]),
                "bytes": output.stat().st_size,
                "speed": 1.0 if arm == "float" else speed(output, model, samples),
            }
        print(json.dumps(row), flush=True)
        made.append(row)
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--nncf", required=True, metavar="PYTHON")
    kinds = ("resnet", "vit", "direction")
    parser.add_argument("--models", nargs="+", choices=kinds, default=kinds)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    found = [row for kind in given.models for row in rows(kind, given.output, given.nncf)]
    measured = []
    for row in found:
        at = f"{row['model']}, {row['arm']}"
        shown = {"accuracy": "accuracy", "speed": "CPU time / float", "bytes": "bytes", "cpu_seconds": "CPU s to make"}
        measured += [(f"{at}: {words}", [row[key]]) for key, words in shown.items() if key in row]
    if given.json:
        words = f"python benchmarks/accuracy/peers.py -o DIR --nncf PYTHON --models {' '.join(given.models)}"
        record.write_results(given.json, words, measured, conditions={"rows": found})
    floats = {row["model"]: row["limit_accuracy"] for row in found if row["arm"] == "float"}
    broken = [
        row["model"] for row in found
        if row["arm"].endswith("--max-drop") and floats[row["model"]] - row.get("limit_accuracy", 0.0) > MAX_DROP
    ]  # fmt: skip
    print(f"the limit is not held: {', '.join(broken) or 'nowhere'}", file=sys.stderr)
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())

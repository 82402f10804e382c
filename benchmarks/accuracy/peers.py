"""Accuracy-aware quantization against onnxruntime's plain tool and nncf: same models, data and limit.

    python benchmarks/accuracy/peers.py -o DIR --nncf PYTHON [--models minilm direction resnet vit] [--json FILE]

`PYTHON` is that of an environment with nncf and the same onnxruntime. A model is quantized by `quantize_static` as its
documentation shows it (u8s8 per tensor after `quant_pre_process`), by `nncf.quantize_with_accuracy_control`, by
`winml quantize -p int8`, and by `winml quantize --max-drop`. Calibration samples are the same for all; the limit is
held on one set of test samples, by whoever holds one, and accuracy is taken on another, too. What the last one comes to
against the float model is asked of `winml compare`. Ends with 1 where `winml quantize --max-drop` wrote a model that
does not hold the limit on the samples it was given.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fetch
import numpy as np
import train
from subjects import Samples, save, score, tokens

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "int8")]

import inputs  # noqa: E402 - they lie in folders beside this one
import record  # noqa: E402

MAX_DROP = 0.01
CALIBRATION = 128
LENGTH = 16
TESTS = 1000
LINES = 300
PEER_SECONDS = 1800


@dataclass(frozen=True)
class Subject:
    """A model, what all tools are given, and words for `winml`."""

    model: Path
    calibration: Samples
    limit: Samples
    test: Samples
    words: tuple[str, ...]
    """How `winml quantize` evaluates it."""
    data: Path | None = None
    """What it holds the limit on, where that is no array."""


class _Reader:
    """Calibration samples as onnxruntime's tool wants them."""

    def __init__(self, samples: Samples) -> None:
        self._feeds = iter(samples.feeds)

    def get_next(self) -> Any:
        return next(self._feeds, None)


def plain(subject: Subject, output: Path) -> dict[str, Any]:
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    ready = output.with_name("ready.onnx")
    quant_pre_process(str(subject.model), str(ready), skip_symbolic_shape=True)
    quantize_static(
        str(ready), str(output), _Reader(subject.calibration), quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
    )  # fmt: skip
    return {}


NNCF = """
import sys
sys.path.insert(0, sys.argv[1])
import nncf, numpy as np, onnx
from subjects import answer, judge, load
model, place, output, limit = sys.argv[2:]
calibration, held = load(f"{place}/calibration.all.npz"), load(f"{place}/limit.all.npz")
loaded = onnx.load(model)
read = {value.name for value in loaded.graph.input}
texts = "attention_mask" in read
pick = lambda item: {name: item[0][name] for name in read}

def validate(candidate, items):
    # The metric, and for each sample whether it is right; of texts, which have no metric alone, what the model gives.
    items = list(items)
    answers = answer(candidate.SerializeToString(), [feed for feed, _ in items])
    if texts:
        metric = judge(answers, held.labels) if len(items) == 2 * len(held.labels) else 0.0
        return metric, [[one] for one in answers]
    right = [float(one.argmax() == label) for one, (_, label) in zip(answers, items)]
    return float(np.mean(right)), right

labels = np.repeat(held.labels, 2) if texts else held.labels
quantized = nncf.quantize_with_accuracy_control(
    loaded, nncf.Dataset([(feed, None) for feed in calibration.feeds], pick),
    nncf.Dataset(list(zip(held.feeds, labels)), pick), validate, max_drop=float(limit),
    subset_size=len(calibration.feeds), **({"model_type": nncf.ModelType.TRANSFORMER} if texts else {}))
onnx.save(quantized, output)
"""


def peer(python: str, subject: Subject, output: Path) -> dict[str, Any]:
    argv = [python, "-c", NNCF, str(HERE), str(subject.model), str(output.parent), str(output), str(MAX_DROP)]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=PEER_SECONDS)
    except subprocess.TimeoutExpired:
        return {"error": f"not done after {PEER_SECONDS} s"}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["unknown"])[-1][:300]}
    return {}


def winml(*args: str | Path, codes: tuple[int, ...] = (0, 5)) -> dict[str, Any]:
    argv = [sys.executable, "-m", "winml.modelkit", *map(str, args), "--json"]
    with tempfile.TemporaryDirectory() as cache:  # so that no run takes what one before it has made
        env = {**os.environ, "WINML_CACHE": cache}
        done = subprocess.run(argv, capture_output=True, text=True, check=False, env=env)
    if done.returncode not in codes or not done.stdout:
        raise SystemExit(f"{' '.join(argv)}\n{done.stderr}")
    return json.loads(done.stdout)


def ours(subject: Subject, output: Path, *, limit: bool) -> dict[str, Any]:
    place = output.parent
    words: list[str | Path] = ["quantize", "-m", subject.model, "-o", output, "--overwrite", "-p", "int8"]
    words += ["--target", "cpu", "--calibration", place / "calibration.npz"]
    if not limit:
        return {"notes": winml(*words)["notes"]}
    words += ["--data", subject.data or place / "limit.npz", *subject.words, "--judge", "value"]
    found = winml(*words, "--max-drop", MAX_DROP)
    return {key: found[key] for key in ("attempts", "layers", "kept", "summary", "notes", "error") if key in found}


def compare(subject: Subject, candidate: Path) -> dict[str, Any]:
    """The verdict of `winml compare` on the candidate against the float model; several exit codes are answers."""
    shapes = [] if subject.data is None else ["--dim", f"sequence={LENGTH}"]
    words: list[str | Path] = [subject.model, candidate, "--target", "cpu", "--threads", "1", "--allow-different"]
    found = winml("compare", *words, *shapes, codes=(0, 1, 5))
    (one,) = found["candidates"]
    verdict = one["verdict"]
    return {"verdict": verdict, "speedup": one.get("speedup")}


def _digits(kind: str, folder: Path) -> Subject:
    splits = fetch.mnist(folder)
    exported = folder / f"{kind}-onnx"
    if not exported.is_dir():
        winml("export", "-m", train.train(kind, *splits["train"], folder / f"mnist-{kind}"), "-o", exported)
    (images, labels), (seen, answers) = splits["test"], splits["train"]
    return Subject(
        exported / "model.onnx",
        Samples({"pixel_values": seen[:CALIBRATION]}, answers[:CALIBRATION]),
        Samples({"pixel_values": images[:TESTS]}, labels[:TESTS]),
        Samples({"pixel_values": images[TESTS : 2 * TESTS]}, labels[TESTS : 2 * TESTS]),
        ("--task", "image-classification"),
    )


def _lines(folder: Path) -> Subject:
    """The text direction classifier of an OCR package, and lines that are drawn."""
    made, rng = inputs.SUBJECTS["text direction"], np.random.default_rng(11)
    drawn = []
    for count in (CALIBRATION, LINES, LINES):
        samples, labels = made.make(rng, count, folder)
        assert labels is not None
        drawn.append(Samples({"x": samples}, labels))
    calibration, limit, test = drawn
    return Subject(made.model(folder), calibration, limit, test, ("--task", "image-classification"))


def _sentences(folder: Path) -> Subject:
    """MiniLM: words of SimLex999 calibrate, pairs of WordSim353 hold the limit, other pairs of SimLex999 test."""
    exported, home = folder / "minilm-onnx", fetch.minilm(folder)
    if not exported.is_dir():
        winml("export", "-m", home, "-o", exported)
    held, other = (
        [json.loads(line) for line in fetch.similarity(name, folder).read_text("utf-8").splitlines()]
        for name in fetch.SIMILARITY
    )

    def pairs(rows: list[dict[str, Any]]) -> Samples:
        texts = [text for row in rows for text in (row["text"], row["text_pair"])]
        return Samples(tokens(home, texts, LENGTH), np.array([row["score"] for row in rows]))

    half = CALIBRATION // 2
    return Subject(
        exported / "model.onnx", pairs(other[:half]), pairs(held), pairs(other[half : half + LINES]),
        ("--task", "sentence-similarity", "--processor", str(home), "--length", str(LENGTH)),
        fetch.similarity("wordsim353", folder),
    )  # fmt: skip


def subject_of(kind: str, folder: Path) -> Subject:
    if kind == "minilm":
        return _sentences(folder)
    return _lines(folder) if kind == "direction" else _digits(kind, folder)


def rows(kind: str, folder: Path, python: str) -> list[dict[str, Any]]:
    """What every tool makes of a model."""
    subject = subject_of(kind, folder)
    place = folder / f"peers-{kind}"
    place.mkdir(exist_ok=True)
    save(subject.calibration, place / "calibration.all.npz")
    save(subject.limit, place / "limit.all.npz")
    np.savez(place / "calibration.npz", **subject.calibration.inputs)
    if subject.data is None:
        np.savez(place / "limit.npz", **subject.limit.inputs, label=subject.limit.labels)
    arms = {
        "float": lambda output: {},
        "winml quantize --max-drop": lambda output: ours(subject, output, limit=True),
        "winml quantize": lambda output: ours(subject, output, limit=False),
        "onnxruntime quantize_static": lambda output: plain(subject, output),
        "nncf with accuracy control": lambda output: peer(python, subject, output),
    }
    made = []
    for number, (arm, make) in enumerate(arms.items()):
        output = subject.model if arm == "float" else place / f"{number}.onnx"
        if arm != "float":
            output.unlink(missing_ok=True)
        started = time.monotonic(), sum(os.times()[:4])
        more = make(output)
        row = {"model": kind, "arm": arm, "seconds": round(time.monotonic() - started[0], 2),
               "cpu_seconds": round(sum(os.times()[:4]) - started[1], 2), **more}  # fmt: skip
        if output.is_file() and "error" not in more:
            row |= {"limit_score": score(str(output), subject.limit), "score": score(str(output), subject.test)}
            row |= {"bytes": output.stat().st_size}
            row |= {} if arm == "float" else {"compare": compare(subject, output)}
        print(json.dumps(row), flush=True)
        made.append(row)
    return made


def write(path: Path, found: list[dict[str, Any]]) -> None:
    shown = {"limit_score": "metric held", "score": "metric", "bytes": "bytes", "cpu_seconds": "CPU s to make"}
    measured = []
    for row in found:
        at = f"{row['model']}, {row['arm']}"
        measured += [(f"{at}: {words}", [row[key]]) for key, words in shown.items() if key in row]
    models = " ".join(dict.fromkeys(row["model"] for row in found))
    words = f"python benchmarks/accuracy/peers.py -o DIR --nncf PYTHON --models {models}"
    record.write_results(path, words, measured, conditions={"rows": found})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--nncf", required=True, metavar="PYTHON")
    kinds = ("minilm", "direction", "resnet", "vit")
    parser.add_argument("--models", nargs="+", choices=kinds, default=kinds)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    folder = given.output.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    found: list[dict[str, Any]] = []
    for kind in given.models:
        found += rows(kind, folder, given.nncf)
        if given.json:
            write(given.json, found)
    floats = {row["model"]: row["limit_score"] for row in found if row["arm"] == "float"}
    broken = [
        row["model"] for row in found
        if row["arm"].endswith("--max-drop") and floats[row["model"]] - row.get("limit_score", 1.0) > MAX_DROP
    ]  # fmt: skip
    print(f"the limit is not held: {', '.join(broken) or 'nowhere'}", file=sys.stderr)
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())

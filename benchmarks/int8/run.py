"""Accuracy of static int8 against `quantize_static` of onnxruntime as its documentation shows it, on models of others.

    python benchmarks/int8/run.py [--models dnsmos] [--calibrate 16] [--samples 96] [--seeds 0 1 2] [--emulate haswell]
        [--json FILE]

A seed draws calibration and test samples anew. Both arms get the same model and the same calibration samples: `plain`
is u8s8 per tensor after `quant_pre_process`, `ours` is what `winml quantize -p int8` does. Outputs are compared with
the float model's on the test samples. With `--emulate haswell` the quantized models run under `qemu-x86_64` as on a
processor without VNNI (much slower), and ours is made as it would be made there.

A sample is won by the arm that is right where the other is not (where there are labels), that gives more of the float
model's answers, or that has the smaller error; the samples of all seeds decide by a sign test. Ends with 1 where ours
is less accurate beyond noise (p < 0.05): by labels, by answers, or, where the answers do not differ, by errors.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import inputs
import numpy as np
import onnxruntime as ort

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import record

ROOT = Path(__file__).parents[2]
CACHE = ROOT / "build" / "int8"
EMULATORS = {"haswell": ["qemu-x86_64", "-cpu", "Haswell"]}


def outputs(model: str, data: str, file: str) -> None:
    """Write the first output of a model for every sample, one sample at a time."""
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    np.save(file, np.stack([session.run(None, {name: x[None]})[0][0] for x in np.load(data)]))


def run(model: Path, data: Path, emulator: list[str]) -> np.ndarray:
    """The outputs of a model, from a process of its own."""
    file = model.with_suffix(".npy")
    subprocess.run([*emulator, sys.executable, __file__, "--outputs", str(model), str(data), str(file)], check=True)
    found: np.ndarray = np.load(file)
    return found


class _Reader:
    """Calibration samples as onnxruntime's tool wants them."""

    def __init__(self, name: str, samples: np.ndarray) -> None:
        self._feeds = iter([{name: x[None]} for x in samples])

    def get_next(self) -> Any:
        return next(self._feeds, None)


def plain(model: Path, samples: np.ndarray, name: str, output: Path) -> None:
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    ready = output.with_name("ready.onnx")
    quant_pre_process(str(model), str(ready), skip_symbolic_shape=True)
    quantize_static(
        str(ready), str(output), _Reader(name, samples), quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
    )  # fmt: skip


class _Silent:
    """A caller that listens to nothing."""

    def __init__(self) -> None:
        self.stop = threading.Event()

    def tell(self, event: object) -> None:
        pass


def ours(model: Path, samples: np.ndarray, name: str, output: Path, *, saturates: bool) -> list[str]:
    from winml.modelkit.building.quantize import stage, weight_range
    from winml.modelkit.core import values
    from winml.modelkit.core.config import DataSection
    from winml.modelkit.core.target import Target
    from winml.modelkit.ep.precision import quantize_section

    data = output.with_name("calibration.npz")
    np.savez(data, **{name: samples})
    section = quantize_section(Target("cpu", "cpu"), "int8")
    assert section is not None
    section, _ = weight_range.resolve(replace(section, calibration=DataSection(str(data))), lambda: saturates)
    args = {"model": str(model), "output": str(output), "section": values.to_json(section)}
    return list(stage.run(args, _Silent()).outcome.notes)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Row:
    """How near the outputs of one quantized model are to those of its source."""

    equal: np.ndarray | None
    """The share of equal answers, by sample."""
    right: np.ndarray | None
    """Whether the answer is that of the label, by sample."""
    cosines: np.ndarray
    errors: np.ndarray
    """The root mean squared error, by sample."""

    def cells(self) -> list[str]:
        shares = ["-" if found is None else f"{found.mean():.4f}" for found in (self.right, self.equal)]
        return [*shares, f"{np.median(self.cosines):.5f}", f"{self.cosines.min():.4f}", f"{self.rmse:.4g}"]

    @property
    def rmse(self) -> float:
        return float(np.sqrt((self.errors**2).mean()))


def _answers(values: np.ndarray, kind: str) -> np.ndarray | None:
    if kind == "score":
        return None
    return values.argmax(-1) if kind == "class" else values > 0.3


def compared(found: np.ndarray, expected: np.ndarray, labels: np.ndarray | None, kind: str) -> Row:
    answers, wanted = _answers(found, kind), _answers(expected, kind)
    a, b = (values.reshape(len(values), -1).astype(np.float64) for values in (found, expected))
    return Row(
        equal=None if answers is None else (answers == wanted).reshape(len(found), -1).mean(1),
        right=None if labels is None or answers is None else (answers == labels).astype(float),
        cosines=(a * b).sum(1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1) + 1e-30),
        errors=np.sqrt(((a - b) ** 2).mean(1)),
    )


@dataclass(frozen=True)
class Tally:
    """On how many samples ours is nearer to the float model, and on how many the plain tool is."""

    ours: int
    plain: int

    @property
    def p(self) -> float:
        """The chance of so few won samples or fewer, were both equally good."""
        n = self.ours + self.plain
        return sum(math.comb(n, k) for k in range(self.ours + 1)) / 2**n

    def __str__(self) -> str:
        return f"{self.ours} : {self.plain}" + (f" (p {self.p:.2g})" if self.ours < self.plain else "")


def tally(pairs: list[tuple[np.ndarray, np.ndarray]]) -> Tally:
    return Tally(sum(int((a > b).sum()) for a, b in pairs), sum(int((a < b).sum()) for a, b in pairs))


def tallies(rows: list[dict[str, Row]]) -> tuple[Tally, Tally, Tally]:
    """Samples won by labels, by answers and by errors, over all seeds."""
    pairs = [(row["ours"], row["plain"]) for row in rows]
    right = [(a.right, b.right) for a, b in pairs if a.right is not None and b.right is not None]
    answers = [(a.equal, b.equal) for a, b in pairs if a.equal is not None and b.equal is not None]
    return tally(right), tally(answers), tally([(-a.errors, -b.errors) for a, b in pairs])


def is_worse(right: Tally, answers: Tally, errors: Tally) -> bool:
    return right.p < 0.05 or answers.p < 0.05 or (answers.ours == answers.plain and errors.p < 0.05)


def subject_rows(word: str, seed: int, args: argparse.Namespace, folder: Path) -> dict[str, Row]:
    subject, emulator = inputs.SUBJECTS[word], EMULATORS.get(args.emulate, [])
    model, rng = subject.model(CACHE), np.random.default_rng(seed)
    calibration, _ = subject.make(rng, args.calibrate, CACHE)
    samples, labels = subject.make(rng, args.samples, CACHE)
    data, source = folder / "samples.npy", folder / "source.onnx"
    np.save(data, samples)
    source.write_bytes(model.read_bytes())
    name = ort.InferenceSession(model, providers=["CPUExecutionProvider"]).get_inputs()[0].name
    plain(source, calibration, name, folder / "plain.onnx")
    for note in ours(source, calibration, name, folder / "ours.onnx", saturates=args.emulate is not None):
        print(f"  {word}, seed {seed}: {note}", file=sys.stderr)
    expected = run(source, data, [])
    return {
        arm: compared(run(folder / f"{arm}.onnx", data, emulator), expected, labels, subject.answer)
        for arm in ("plain", "ours")
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", choices=list(inputs.SUBJECTS), default=list(inputs.SUBJECTS))
    parser.add_argument("--calibrate", type=int, default=16)
    parser.add_argument("--samples", type=int, default=96)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--emulate", choices=list(EMULATORS))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--outputs", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.outputs:
        outputs(*args.outputs)
        return 0
    CACHE.mkdir(parents=True, exist_ok=True)
    worse, lines, measured = [], [], []
    print(
        f"{record.processor()}{f', as {args.emulate}' if args.emulate else ''}; onnxruntime {ort.__version__}; ", end=""
    )
    print(f"{args.calibrate} calibration samples, {args.samples} samples")
    print("| model | seed | arm | right | as float | median cosine | least cosine | rmse |\n" + "|---" * 8 + "|")
    for word in args.models:
        rows = []
        for seed in args.seeds:
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)  # the stage works in the folder it runs in
                rows.append(subject_rows(word, seed, args, Path(folder)))
                os.chdir(ROOT)
            for arm, row in rows[-1].items():
                print("|", " | ".join([word, str(seed), arm, *row.cells()]), "|", flush=True)
        measured += [(f"{word}: rmse, {arm}", [row[arm].rmse for row in rows]) for arm in ("plain", "ours")]
        found = tallies(rows)
        measured += [(f"{word}: samples won by errors, {arm}", [getattr(found[2], arm)]) for arm in ("plain", "ours")]
        lines.append("| " + " | ".join([word, *map(str, found)]) + " |")
        worse += [word] if is_worse(*found) else []
    print("\n| ours : plain | by labels | by answers | by errors |\n|---|---|---|---|", *lines, sep="\n")
    print(f"ours is less accurate: {', '.join(worse) or 'nowhere'}")
    if args.json:
        words = f"--models {' '.join(args.models)} --calibrate {args.calibrate} --samples {args.samples}"
        words += f" --seeds {' '.join(map(str, args.seeds))}" + (f" --emulate {args.emulate}" if args.emulate else "")
        record.write_results(args.json, f"python benchmarks/int8/run.py {words}", measured)
    return bool(worse)


if __name__ == "__main__":
    sys.exit(main())

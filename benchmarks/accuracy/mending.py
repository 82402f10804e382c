"""What every way to lose less does to models that others trained: bias correction, smoothing, methods of calibration.

    python benchmarks/accuracy/mending.py [--models ...] [--calibrate 16] [--samples 32] [--seeds 3] [--json FILE]

Models, inputs and measures are those of `benchmarks/int8`: each variant is static int8 for the CPU with one key of the
section changed, or all of them, on the same calibration samples; outputs are compared with the float model's on other
samples. The values are decibels of signal to noise over all samples, and the share of equal answers.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[1] / "int8")]

import inputs  # noqa: E402 - they lie in folders beside this one
import record  # noqa: E402
import run as int8  # noqa: E402

VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "bias correction": {"bias_correction": True},
    "mse": {"calibration_method": "mse"},
    "best": {"calibration_method": "best"},
    "smoothing": {"smoothing": 0.5},
    "all": {"bias_correction": True, "calibration_method": "best", "smoothing": 0.5},
}


def quantized(model: Path, data: Path, output: Path, changes: dict[str, Any]) -> None:
    from winml.modelkit.building.quantize import stage
    from winml.modelkit.core import values
    from winml.modelkit.core.config import DataSection
    from winml.modelkit.core.target import Target
    from winml.modelkit.ep.precision import quantize_section

    section = quantize_section(Target("cpu", "cpu"), "int8")
    assert section is not None
    section = replace(section, calibration=DataSection(str(data)), **changes)
    args = {"model": str(model), "output": str(output), "section": values.to_json(section)}
    stage.run(args, int8._Silent())  # type: ignore[arg-type]


def outputs(model: Path, name: str, samples: np.ndarray) -> np.ndarray:
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return np.stack([session.run(None, {name: x[None]})[0][0] for x in samples])


def rows(word: str, seed: int, given: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Decibels, equal answers and seconds of processor time of every variant of a model."""
    subject, rng = inputs.SUBJECTS[word], np.random.default_rng(seed)
    model = subject.model(given.cache)
    calibration, _ = subject.make(rng, given.calibrate, given.cache)
    samples, _ = subject.make(rng, given.samples, given.cache)
    name = ort.InferenceSession(model, providers=["CPUExecutionProvider"]).get_inputs()[0].name
    expected = outputs(model, name, samples)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # the stage works in the folder it runs in
        data = Path(folder, "calibration.npz")
        np.savez(data, **{name: calibration})
        for variant, changes in VARIANTS.items():
            started = time.process_time()
            quantized(model, data, Path(folder, "out.onnx"), changes)
            taken = time.process_time() - started
            made = outputs(Path(folder, "out.onnx"), name, samples)
            noise = float(((made - expected).astype(np.float64) ** 2).sum())
            answers = [int8._answers(values, subject.answer) for values in (made, expected)]
            found[variant] = {
                "dB": 10 * np.log10(float((expected.astype(np.float64) ** 2).sum()) / max(noise, 1e-30)),
                "CPU s": taken,
            }
            if answers[0] is not None:
                found[variant]["answers as float"] = float((answers[0] == answers[1]).mean())
            print(json.dumps({"model": word, "seed": seed, "variant": variant, **found[variant]}), flush=True)
        os.chdir("/")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=list(inputs.SUBJECTS), default=list(inputs.SUBJECTS))
    parser.add_argument("--calibrate", type=int, default=16)
    parser.add_argument("--samples", type=int, default=32)
    parser.add_argument("--seeds", type=int, nargs="+", default=[3])
    parser.add_argument("--cache", type=Path, default=int8.CACHE, help="folder of packages that were fetched")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    given.cache = given.cache.absolute()
    given.cache.mkdir(parents=True, exist_ok=True)
    json_file = given.json and given.json.absolute()
    measured: list[tuple[str, list[float]]] = []
    done = []
    for word in given.models:
        found = [rows(word, seed, given) for seed in given.seeds]
        for variant in VARIANTS:
            for measure in found[0][variant]:
                measured.append((f"{word}, {variant}: {measure}", [one[variant][measure] for one in found]))
        done.append(word)
        if json_file:
            words = f"--models {' '.join(f'{one!r}' for one in done)} --calibrate {given.calibrate}"
            words += f" --samples {given.samples} --seeds {' '.join(map(str, given.seeds))}"
            record.write_results(json_file, f"python benchmarks/accuracy/mending.py {words}", measured)


if __name__ == "__main__":
    main()

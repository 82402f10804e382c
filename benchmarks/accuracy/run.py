"""Real weights from export to verdict: what each precision costs in accuracy, and whether the gate sees it.

    python benchmarks/accuracy/run.py -o DIR [--models resnet vit minilm]

Every model is exported, quantized and judged by `winml` itself on the CPU; `DIR` keeps models, data and one JSON result
per evaluation, and goes on where it was. `results.jsonl` beside this file gets a line per evaluation;
`scripts/make_catalog.py` makes proofs of them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import fetch
import numpy as np
import train

RESULTS = Path(__file__).with_name("results.jsonl")
MAX_DROP = "0.01"
CALIBRATION = "256"
VARIANTS: dict[str, tuple[str, ...]] = {
    "dynamic per tensor": ("-p", "dynamic", "--per-tensor"),
    "dynamic per channel": ("-p", "dynamic", "--per-channel"),
    "static all ops per tensor": ("-p", "int8", "--per-tensor"),
    "static weights per channel": ("-p", "int8", "--per-channel"),
}
WEIGHTS = ("Conv", "Gather", "Gemm", "MatMul")
"""Operators of the last variant, as far as a model has them."""


def winml(*args: str | Path) -> dict[str, Any]:
    """The JSON of a command; one that a check answered with no or cannot tell is a result too."""
    argv = [sys.executable, "-m", "winml.modelkit", *map(str, args), "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 5) or not done.stdout:
        raise SystemExit(f"{' '.join(argv)}\n{done.stderr}")
    return json.loads(done.stdout) | {"exit": done.returncode}


def _exported(folder: Path, output: Path) -> Path:
    if not output.is_dir():
        winml("export", "-m", folder, "-o", output)
    return output


def _quantized(base: Path, name: str, words: tuple[str, ...], data: Path, processor: Path) -> Path:
    output = base.parent / f"{base.name}-{name.replace(',', '').replace(' ', '-')}.onnx"
    if not output.is_file():
        given = ("--calibration", data, "--samples", CALIBRATION) if name.startswith("static") else ()
        if name == "static weights per channel":
            there = winml("inspect", "-m", base)["facts"]["ops"]
            words += tuple(word for op in WEIGHTS if op in there for word in ("--op-types", op))
        winml(
            "quantize", "-m", base / "model.onnx", "-o", output, "--target", "cpu", *words, *given, "--processor",
            processor, "--no-verify",
        )  # fmt: skip
    return output


def _judged(model: Path, base: Path, data: Path, task: str, processor: Path) -> dict[str, Any]:
    length = ("--length", "16") if task == "sentence-similarity" else ()
    return winml(
        "eval", "-m", model, "--reference", base, "--data", data, "--task", task, "--target", "cpu", "--processor",
        processor, "--max-drop", MAX_DROP, "--judge", "value", *length,
    )  # fmt: skip


def _line(model: str, data: Path, variant: str, found: dict[str, Any]) -> dict[str, Any]:
    metric = found["metric"]
    return {
        "model": model,
        "data": data.stem,
        "variant": variant,
        "metric": metric,
        "value": found["metrics"][metric]["value"],
        "interval": found["metrics"][metric]["interval"],
        "drop": found["drop"][metric]["value"],
        "drop_interval": found["drop"][metric]["interval"],
        "max_drop": found["checks"][0]["answer"],
        "exit": found["exit"],
        "samples": found["samples"]["n"],
        "runtime": found["environment"]["runtime"]["version"],
    }


def measured(name: str, folder: Path, task: str, calibration: Path, tests: list[Path]) -> list[dict[str, Any]]:
    """Every variant of a model on every test, the model itself first."""
    base = _exported(folder, folder.parent / f"{name}-onnx")
    models = {"fp32": base} | {v: _quantized(base, v, words, calibration, folder) for v, words in VARIANTS.items()}
    lines = []
    for data in tests:
        for variant, model in models.items():
            lines.append(_line(name, data, variant, _judged(model, base, data, task, folder)))
            print(json.dumps(lines[-1]), flush=True)
    return lines


def _digits(kind: str, folder: Path) -> list[dict[str, Any]]:
    splits = fetch.mnist(folder)
    paths = {}
    for split, count in (("train", 1000), ("test", None)):
        paths[split] = folder / f"mnist-{split}.npz"
        images, labels = (array[:count] for array in splits[split])
        np.savez(paths[split], pixel_values=images, label=labels)
    trained = train.train(kind, *splits["train"], folder / f"mnist-{kind}")
    return measured(f"mnist-{kind}", trained, "image-classification", paths["train"], [paths["test"]])


def _sentences(folder: Path) -> list[dict[str, Any]]:
    tests = [fetch.similarity(name, folder) for name in fetch.SIMILARITY]
    return measured("minilm", fetch.minilm(folder), "sentence-similarity", tests[0], tests)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--models", nargs="+", choices=("resnet", "vit", "minilm"), default=("resnet", "vit", "minilm"))
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    lines = [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.is_file() else []
    for kind in given.models:
        made = _sentences(given.output) if kind == "minilm" else _digits(kind, given.output)
        lines = [line for line in lines if line["model"] != made[0]["model"]] + made
        RESULTS.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()

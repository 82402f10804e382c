"""Makes a contribution of every shipped recipe for tiny models of its families, and keeps a line per model and target.

The models are tiny and have random weights (`models.py`). Every line comes of `winml support produce`, some of `winml
support review` besides; parts that are built apart are run together as well. Goes on where it stopped: what is in the
results is not made again. `proofs.py` writes what recipes say of themselves from the results.

    python benchmarks/recipes/run.py [--only RECIPE] [--model NAME] [--target TARGET] [--again] [--results FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from winml.modelkit.core.target import Target
from winml.modelkit.knowledge import recipes
from winml.modelkit.session.composite import Composite

HERE = Path(__file__).parent
RESULTS = HERE / "results.jsonl"
MODELS: dict[str, tuple[str, ...]] = {
    "image-encoder-w8a16": (
        "vit", "resnet", "convnext_wide", "mobilevit_wide", "dinov2", "swin_wide", "segformer_wide", "detr_wide",
        "yolos",
    ),
    "image-encoder-fp16": ("swin_wide", "mobilevit_wide"),
    "text-encoder-w8a16": ("bert", "distilbert", "roberta"),
    "audio-encoder-w8a16": ("wav2vec2",),
    "decoder-fp16": ("gpt2", "qwen2"),
    "dual-encoder-fp16": ("clip",),
    "vision-encoder-decoder-fp16": ("vit_gpt2",),
    "encoder-decoder-fp16": ("marian", "bart", "t5", "whisper"),
    "bart-end-token": ("bart_classifier",),
}  # fmt: skip
"""By recipe."""
TARGETS = ("cpu", "qnn/npu")
LEFT_OUT = {"bart-end-token": ("qnn/npu",)}
"""It leaves the precision to the target, and that of the NPU needs data."""
REVIEWED = {"vit": TARGETS, "clip": TARGETS, "marian": TARGETS, "vit_gpt2": ("cpu",)}
"""Models whose evidence is reviewed too, which runs every command again without a cache."""
TIMEOUT_S = 1800
NEW_WORDS = 12


@dataclass(frozen=True)
class Case:
    """A recipe, a model and a target."""

    recipe: str
    model: str
    target: str

    @property
    def reviewed(self) -> bool:
        return self.target in REVIEWED.get(self.model, ())


def cases(recipe: str | None, model: str | None, targets: tuple[str, ...]) -> Iterator[Case]:
    for name, models in MODELS.items():
        for tiny in models:
            if recipe in (None, name) and model in (None, tiny):
                yield from (Case(name, tiny, target) for target in targets if target not in LEFT_OUT.get(name, ()))


def done(results: Path) -> set[Case]:
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    return {Case(row["recipe"], row["model"], row["target"]) for row in map(json.loads, lines)}


def winml(cache: Path, *words: str | Path) -> dict[str, Any]:
    """The JSON of a command."""
    run = subprocess.run(
        [sys.executable, "-m", "winml.modelkit", *map(str, words), "--json"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env={**os.environ, "WINML_CACHE": str(cache)},
        check=False,
    )
    if not run.stdout:
        raise SystemExit(run.stderr)
    value: dict[str, Any] = json.loads(run.stdout)
    return value


def row(case: Case, model: Path, folder: Path) -> dict[str, Any]:
    """One line: how far the contribution came, by which numbers, and what the review said."""
    started = time.monotonic()
    output = folder / f"{case.recipe}-{case.target.replace('/', '-')}"
    recipe = recipes.FOLDER / f"{case.recipe}.json"
    words = ("-m", model, "--target", case.target, "--recipe", recipe, "-o", output)
    made = winml(folder / "cache", "support", "produce", *words)
    found = made.get("contribution")
    if found is None:
        raise SystemExit(f"{case}: {made['error']['message']}")
    reviewed = winml(folder / "cache", "support", "review", output) if case.reviewed and made["ok"] else None
    return {
        "recipe": case.recipe,
        "family": found["model"]["family"],
        "model": case.model,
        "target": case.target,
        "ok": made["ok"],
        "reached": found["reached"],
        "precision": found["precision"],
        "error": None if made["ok"] else made["error"]["message"],
        "effect": found["effect"],
        **numbers(found),
        **placed(output),
        "default": together(model, output / "artifacts" / "default") if case.target == "cpu" else None,
        "together": together(model, output / "artifacts" / "recipe") if case.target == "cpu" else None,
        "review": None if reviewed is None else reviewed["verdict"],
        "items": [] if reviewed is None else [item["reason"] for item in reviewed["items"]],
        "wall_s": round(time.monotonic() - started, 1),
        "versions": found["environment"],
    }


def numbers(contribution: dict[str, Any]) -> dict[str, Any]:
    """The difference from PyTorch, and the worst part against its export."""
    found = contribution["numbers"]
    parity = [values for step, values in found.items() if step.startswith("parity")]
    return {
        "difference": found.get("export", {}).get("difference"),
        "cosine": min((values["cosine"] for values in parity), default=None),
        "max_abs": max((values["max_abs"] for values in parity), default=None),
    }


def placed(contribution: Path) -> dict[str, Any]:
    """Where nodes ran, and whether on a simulator; null when nothing was run."""
    results = [json.loads(path.read_bytes()) for path in contribution.glob("evidence/perf-*.result.json")]
    ran = [result for result in results if result["ok"]]
    nodes: dict[str, int] = {}
    for result in ran:
        for provider, count in result["placement"]["nodes"].items():
            nodes[provider] = nodes.get(provider, 0) + count
    return {"simulated": any(result["simulated"] for result in ran) if ran else None, "nodes": nodes or None}


def together(model: Path, built: Path) -> dict[str, Any] | None:
    """How parts that are run together compare with PyTorch; None for a model of one part, or one that did not build."""
    if not (built / "parts.json").is_file():
        return None
    with Composite(built, target=Target("cpu", "cpu")) as parts:
        return _words(model, parts) if (model / "greedy.npz").is_file() else _logits(parts)


def _words(model: Path, parts: Composite) -> dict[str, Any]:
    """Words of greedy decoding that are PyTorch's, up to the first that differs."""
    with np.load(model / "greedy.npz") as stored:
        inputs = dict(stored)
    expected = inputs.pop("words")
    made = parts.generate(inputs, new_tokens=NEW_WORDS)
    length = min(made.shape[1], expected.shape[1])
    same = np.cumprod(made[:, :length] == expected[:, :length], axis=1).sum(axis=1)
    return {"words": int(expected.size), "same": int(same.sum())}


def _logits(parts: Composite) -> dict[str, Any]:
    """How far the halves of a dual encoder are from the whole: their cosine times its scale."""
    rng = np.random.default_rng(0)
    pixels = {"pixel_values": rng.uniform(-1, 1, (1, 3, 32, 32)).astype(np.float32)}
    words = {"input_ids": rng.integers(3, 117, (2, 9)), "attention_mask": np.ones((2, 9), np.int64)}
    whole = parts.run("model", {**pixels, **words})["logits_per_image"].astype(np.float64)
    image = parts.run("image", pixels)["image_embeds"].astype(np.float64)
    text = parts.run("text", words)["text_embeds"].astype(np.float64)
    cosine = (image / np.linalg.norm(image)) @ (text / np.linalg.norm(text, axis=1, keepdims=True)).T
    scale = float((whole * cosine).sum() / (cosine * cosine).sum())
    return {"difference": float(np.abs(whole - scale * cosine).max() / np.abs(whole).max())}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=MODELS)
    parser.add_argument("--model", help="only this tiny model")
    parser.add_argument("--target", choices=TARGETS)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--again", action="store_true", help="make also what is in the results")
    asked = parser.parse_args()
    known = set() if asked.again else done(asked.results)
    wanted = [
        case
        for case in cases(asked.only, asked.model, (asked.target,) if asked.target else TARGETS)
        if case not in known
    ]
    for model in dict.fromkeys(case.model for case in wanted):
        with tempfile.TemporaryDirectory(prefix="winml-recipes-") as temporary:
            folder = Path(temporary)
            subprocess.run([sys.executable, HERE / "models.py", folder, model], check=True, capture_output=True)
            for case in (case for case in wanted if case.model == model):
                line = row(case, folder / model, folder)
                with asked.results.open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps(line) + "\n")
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()

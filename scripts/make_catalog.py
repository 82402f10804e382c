"""Write the catalog of `winml catalog` and its page in the docs from what was measured.

    python scripts/make_catalog.py

Architectures are those of `benchmarks/results/walk.json`. Families and tasks are those of the exporter. Proofs are the
lines of `benchmarks/catalog/results.jsonl` and `benchmarks/accuracy/results.jsonl`; what was tried of recipes
stands in them (`benchmarks/recipes/proofs.py`).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from winml.modelkit.building.export.families import FAMILIES, parts_of, task_of, tasks_of
from winml.modelkit.knowledge import catalog, files
from winml.modelkit.knowledge.catalog_command import show_catalog
from winml.modelkit.render.catalog import architectures_markdown, catalog_markdown

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks" / "catalog"))

import models  # noqa: E402 - it lies beside the benchmark

BUILT = ROOT / "benchmarks" / "catalog" / "results.jsonl"
JUDGEMENTS = ROOT / "benchmarks" / "accuracy" / "results.jsonl"
JUDGED = {
    "mnist-resnet": ("resnet", "image-classification"),
    "mnist-vit": ("vit", "image-classification"),
    "minilm": ("bert", "feature-extraction"),
}
"""Family and task, as the exporter names them, of the models that were judged."""
WALK = ROOT / "benchmarks" / "results" / "walk.json"
PAGE = ROOT / "docs" / "catalog.md"
BEGIN, END = "<!-- made by scripts/make_catalog.py -->", "<!-- end -->"
WALK_BEGIN, WALK_END = "<!-- architectures: made by scripts/make_catalog.py -->", "<!-- end of architectures -->"


def _families() -> list[catalog.Family]:
    found = []
    for name, family in FAMILIES.items():
        tasks = tasks_of(family)
        found.append(catalog.Family(name=name, modality=family.modality, parts=parts_of(family, tasks[0]), tasks=tasks))
    return found


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


def _built(row: dict[str, Any]) -> catalog.FamilyProof:
    """A build of `benchmarks/catalog`, whose only NPU so far was a simulated one."""
    config, architecture, _ = models.MODELS[row["model"]]
    family = config.removesuffix("Config").lower()
    placed = row.get("placement") or {}
    left = ", ".join(f"{op} x{count}" for op, count in placed.get("left", {}).items())
    said = f"off PyTorch by {row['difference']:.0e}, {left or 'nothing'} left on the CPU" if row["ok"] else row["error"]
    return catalog.FamilyProof(
        family=family,
        model=row["model"],
        weights="random",
        task=row.get("task") or task_of(architecture, FAMILIES[family]),
        target=row["target"],
        simulated=row.get("simulated", row["target"] == "qnn/npu"),
        precision=row.get("precision", "unknown"),
        step="build",
        outcome="proven" if row["ok"] else "failed",
        says=said,
        versions=row.get("versions", {}),
    )


def _judged(row: dict[str, Any]) -> catalog.FamilyProof:
    """An evaluation of `benchmarks/accuracy`."""
    family, task = JUDGED[row["model"]]
    low, high = (row["drop_interval"][end] for end in ("low", "high"))
    drop = "" if row["variant"] == "fp32" else f", drop {row['drop']:.4f} ({low:.4f} … {high:.4f})"
    return catalog.FamilyProof(
        family=family,
        model=row["model"],
        weights="trained",
        task=task,
        target="cpu",
        simulated=False,
        precision=row["variant"],
        step="eval",
        outcome="proven" if row["max_drop"] == "within" else "failed",
        says=f"{row['data']} {row['metric']} {row['value']:.4f}{drop}",
        versions={"onnxruntime": row["runtime"]},
    )


def _proofs() -> list[catalog.FamilyProof]:
    found = [*map(_built, _lines(BUILT)), *map(_judged, _lines(JUDGEMENTS))]
    order = list(FAMILIES)
    return sorted(found, key=lambda p: (order.index(p.family), p.model, p.target))


def make_architectures(walk: dict[str, Any]) -> catalog.Architectures:
    """The outcomes of the walk, as the command shows them."""
    packages = ("transformers", "torch", "onnxruntime", "onnxruntime-qnn")
    return catalog.Architectures(
        npu="qnn/npu",
        simulated=True,
        versions={name: version for name, version in walk["versions"].items() if name in packages},
        architectures=tuple(map(_architecture, walk["architectures"])),
    )


def _architecture(row: dict[str, Any]) -> catalog.Architecture:
    steps = dict(row["steps"])
    if steps.get("check", {}).get("outcome") == "wrong":
        # Another program compared it with PyTorch and found what the build did not.
        steps["cpu"] = steps["check"]
    missing = {"outcome": row["made"] if row["made"] != "made" else "not run", "reason": row["reason"]}
    cpu, npu = steps.get("cpu", missing), steps.get("npu", missing)
    reason = cpu["reason"] if cpu["outcome"] != "right" else npu["reason"]
    return catalog.Architecture(
        name=row["name"],
        model=row["class"],
        task=row["task"],
        cpu=cpu["outcome"],
        npu=npu["outcome"],
        left=npu.get("left", {}),
        reason=" ".join(reason.split()) or None,
    )


def _put(page: str, begin: str, end: str, text: str) -> str:
    before, _, rest = page.partition(begin)
    return f"{before}{begin}\n\n{text}\n\n{end}{rest.partition(end)[2]}"


def main() -> None:
    made = catalog.Catalog(families=tuple(_families()), proofs=tuple(_proofs()))
    catalog.FILE.write_bytes(files.text(made))
    walk = json.loads(WALK.read_bytes())
    catalog.ARCHITECTURES.write_bytes(files.text(make_architectures(walk)))
    page = PAGE.read_text(encoding="utf-8")
    page = _put(page, WALK_BEGIN, WALK_END, architectures_markdown(walk["shares"]))
    page = _put(page, BEGIN, END, catalog_markdown(show_catalog().families))
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()

"""The text of `winml catalog`, and its table for the docs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from winml.modelkit.render.table import table

HEAD = ("family", "model", "weights", "task", "target", "precision", "step", "outcome", "says")


def _target(proof: dict[str, Any]) -> str:
    return f"{proof['target']}{' (simulated)' if proof['simulated'] else ''}"


def _rows(families: Iterable[dict[str, Any]]) -> list[tuple[str, ...]]:
    return [
        tuple(_target(proof) if name == "target" else str(proof[name]) for name in HEAD)
        for family in families
        for proof in family["proofs"]
    ]


def _recipe(recipe: dict[str, Any]) -> str:
    """A recipe with the highest rung that was proven on each target."""
    best: dict[str, str] = {}
    for proof in recipe["proven"]:
        best[_target(proof)] = max(best.get(_target(proof), ""), proof["goal"])
    return " ".join([recipe["name"], *(f"{goal} on {target}" for target, goal in best.items())])


def catalog_text(result: dict[str, Any]) -> str:
    """Families with their tasks, then every proof."""
    families = result["families"]
    listed = [("family", "modality", "parts", "tasks", "proven", "failed", "recipes")]
    for family in families:
        outcomes = [proof["outcome"] for proof in family["proofs"]]
        counts = [str(outcomes.count(word) or "") for word in ("proven", "failed")]
        listed.append(
            (
                family["name"],
                family["modality"],
                ", ".join(family["parts"]),
                ", ".join(family["tasks"]),
                *counts,
                "; ".join(map(_recipe, family["recipes"])),
            )
        )
    proofs = _rows(families)
    return "\n".join([table(listed), *(("", table([HEAD, *proofs])) if proofs else ())])


def catalog_markdown(families: Iterable[dict[str, Any]]) -> str:
    """The proofs as a table of the docs."""
    lines = [HEAD, tuple("---" for _ in HEAD), *_rows(families)]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)

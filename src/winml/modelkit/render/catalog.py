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


def catalog_text(result: dict[str, Any]) -> str:
    """Families with their tasks, then every proof."""
    families = result["families"]
    listed = [("family", "modality", "parts", "tasks", "proven", "failed")]
    for family in families:
        outcomes = [proof["outcome"] for proof in family["proofs"]]
        counts = [str(outcomes.count(word) or "") for word in ("proven", "failed")]
        listed.append(
            (family["name"], family["modality"], ", ".join(family["parts"]), ", ".join(family["tasks"]), *counts)
        )
    proofs = _rows(families)
    return "\n".join([table(listed), *(("", table([HEAD, *proofs])) if proofs else ())])


def catalog_markdown(families: Iterable[dict[str, Any]]) -> str:
    """The proofs as a table of the docs."""
    lines = [HEAD, tuple("---" for _ in HEAD), *_rows(families)]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)

"""The text of `winml catalog`, and its table for the docs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from winml.modelkit.render.table import markdown_table, table

HEAD = ("family", "model", "weights", "task", "target", "precision", "step", "outcome", "says")
WIDTH = 120
"""Columns of a terminal that lists are broken for."""


def _target(proof: dict[str, Any]) -> str:
    return f"{proof['target']}{' (simulated)' if proof['simulated'] else ''}"


def _rows(families: Iterable[dict[str, Any]]) -> list[tuple[str, ...]]:
    return [
        tuple(_target(proof) if name == "target" else str(proof[name]) for name in HEAD)
        for family in families
        for proof in family["proofs"]
    ]


def _level(level: dict[str, Any]) -> str:
    return level["goal"] if level["outcome"] == "proven" else f"failed after {level['goal'] or 'nothing'}"


def _by_target(levels: Iterable[dict[str, Any]], targets: Sequence[str]) -> tuple[str, ...]:
    """A cell for every target; one where nothing was tried is empty."""
    told = {_target(level): _level(level) for level in levels}
    return tuple(told.get(target, "") for target in targets)


def _families(families: Sequence[dict[str, Any]], targets: Sequence[str]) -> Iterator[tuple[str, ...]]:
    yield ("family", "modality", "parts", *targets, "proven", "failed")
    for family in families:
        outcomes = [proof["outcome"] for proof in family["proofs"]]
        counts = [str(outcomes.count(word) or "") for word in ("proven", "failed")]
        parts = ", ".join(family["parts"])
        yield (family["name"], family["modality"], parts, *_by_target(family["levels"], targets), *counts)


def _tasks(families: Iterable[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Families of one modality and the same parts have the same tasks."""
    kinds = {(family["modality"], ", ".join(family["parts"])): ", ".join(family["tasks"]) for family in families}
    yield ("modality", "parts", "tasks")
    room = WIDTH - sum(max(map(len, column)) + 2 for column in zip(*kinds, strict=True))
    for kind, tasks in kinds.items():
        first, *others = textwrap.wrap(tasks, room, break_on_hyphens=False)
        yield (*kind, first)
        yield from (("", "", line) for line in others)


def _recipes(families: Iterable[dict[str, Any]], targets: Sequence[str]) -> Iterator[tuple[str, ...]]:
    yield ("recipe", "family", *targets)
    made = [(recipe, family["name"]) for family in families for recipe in family["recipes"]]
    for recipe, family in sorted(made, key=lambda pair: pair[0]["name"]):
        yield (recipe["name"], family, *_by_target(recipe["levels"], targets))


def catalog_text(result: dict[str, Any]) -> str:
    """Families with the rungs that recipes reached on each target, their tasks, the recipes, then every proof."""
    families = result["families"]
    targets = sorted({_target(level) for family in families for level in family["levels"]})
    listed = [[*_families(families, targets)], [*_tasks(families)], [*_recipes(families, targets)]]
    listed.append([HEAD, *_rows(families)])
    return "\n\n".join(table(rows) for rows in listed if len(rows) > 1)


def catalog_markdown(families: Sequence[dict[str, Any]]) -> str:
    """What was tried of recipes, and the proofs, as tables of the docs."""
    tried = sorted(
        (
            recipe["name"],
            proof["family"],
            proof["model"],
            _target(proof),
            _level(proof),
            proof["review"] or "",
            proof["shows"],
        )
        for family in families
        for recipe in family["recipes"]
        for proof in recipe["proven"]
    )
    head = ("recipe", "family", "model", "target", "rung", "review", "shows")
    return f"{markdown_table(head, tried)}\n\n{markdown_table(HEAD, _rows(families))}"

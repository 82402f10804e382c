"""The text of `winml catalog`, and its table for the docs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from winml.modelkit.render.marks import mark
from winml.modelkit.render.screen import current_screen
from winml.modelkit.render.table import markdown_table, table

if TYPE_CHECKING:
    from winml.modelkit.core.recipe import Proof
    from winml.modelkit.knowledge.catalog import Architecture, FamilyProof
    from winml.modelkit.knowledge.catalog_command import (
        ArchitecturesResult,
        CatalogFamily,
        CatalogLevel,
        CatalogResult,
    )

HEAD = ("family", "model", "weights", "task", "target", "precision", "step", "outcome", "result")
WIDTH = 120
"""Width in characters that lists are wrapped to in a file; a table on a terminal fits its width itself."""


def catalog_text(result: CatalogResult) -> str:
    """Families with the rungs that recipes reached on each target, their tasks, the recipes, then every proof."""
    families = result.families
    targets = sorted({_target(level) for family in families for level in family.levels})
    others = tuple(range(3 + len(targets), 5 + len(targets)))
    listed = [
        ([*_families(families, targets)], (1, *others, 2), None),
        ([*_tasks(families)], (), None),
        ([*_recipes(families, targets)], (1,), None),
        ([HEAD, *_proofs(families)], (2, 6, 3, 5), 8),
    ]
    return "\n\n".join(table(rows, head=True, drop=drop, below=below) for rows, drop, below in listed if len(rows) > 1)


def catalog_markdown(families: Sequence[CatalogFamily]) -> str:
    """The proofs of recipes and of families, as tables for the docs."""
    tried = sorted(
        (recipe.name, p.family, p.model, _target(p), _level(p), p.review or "", p.shows)
        for family in families
        for recipe in family.recipes
        for p in recipe.proven
    )
    head = ("recipe", "family", "model", "target", "rung", "review", "shows")
    return f"{markdown_table(head, tried)}\n\n{markdown_table(HEAD, _proofs(families))}"


def architectures_text(result: ArchitecturesResult) -> str:
    """Every architecture with its outcomes and the reason, then how many came how far."""
    npu = f"{result.npu}{' (simulated)' if result.simulated else ''}"
    rows = [
        (row.name, row.model or "", row.task or "", mark(row.cpu), mark(row.npu), _remark(row))
        for row in result.architectures
    ]
    shown = table([("architecture", "class", "task", "cpu", npu, "remark"), *rows], head=True, drop=(2, 1), below=5)
    counts = [
        f"{place}: {', '.join(f'{number} {outcome}' for outcome, number in result.counts[key].items())}"
        for place, key in (("cpu", "cpu"), (npu, "npu"))
    ]
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    about = f"{len(rows)} architecture{'' if len(rows) == 1 else 's'}, tiny models with random weights"
    return "\n".join([*([shown, ""] if rows else []), f"{about} ({versions})" if versions else about, *counts])


def architectures_markdown(counts: Mapping[str, Mapping[str, int]]) -> str:
    """How many architectures came how far, of all and of the families that were asked for, for the docs."""
    groups = list(counts)
    names = list(dict.fromkeys(name for group in counts.values() for name in group))
    rows = [(name, *(str(counts[group].get(name, 0)) for group in groups)) for name in names]
    return markdown_table(("tiny models with random weights", *groups), rows)


def _remark(row: Architecture) -> str:
    left = ", ".join(f"{op} x{count}" for op, count in row.left.items())
    return row.reason or (f"left on the CPU: {left}" if left else "")


def _target(proof: Proof | FamilyProof | CatalogLevel) -> str:
    return f"{proof.target}{' (simulated)' if proof.simulated else ''}"


def _proofs(families: Iterable[CatalogFamily]) -> list[tuple[str, ...]]:
    return [
        (p.family, p.model, p.weights, p.task, _target(p), p.precision, p.step, mark(p.outcome), p.says)
        for family in families
        for p in family.proofs
    ]


def _level(level: Proof | CatalogLevel) -> str:
    return level.goal or "" if level.outcome == "proven" else (f"failed after {level.goal}" if level.goal else "failed")


def _by_target(levels: Iterable[CatalogLevel], targets: Sequence[str]) -> tuple[str, ...]:
    """A cell for every target; one where nothing was tried is empty."""
    cells = {_target(level): _level(level) for level in levels}
    return tuple(cells.get(target, "") for target in targets)


def _families(families: Sequence[CatalogFamily], targets: Sequence[str]) -> Iterator[tuple[str, ...]]:
    yield ("family", "modality", "parts", *targets, "proven", "failed")
    for row in families:
        outcomes = [proof.outcome for proof in row.proofs]
        counts = (str(outcomes.count("proven") or ""), str(outcomes.count("failed") or ""))
        about = (row.family.name, row.family.modality, ", ".join(row.family.parts))
        yield (*about, *_by_target(row.levels, targets), *counts)


def _tasks(families: Iterable[CatalogFamily]) -> Iterator[tuple[str, ...]]:
    """Families of one modality and the same parts have the same tasks."""
    kinds = {(row.family.modality, ", ".join(row.family.parts)): ", ".join(row.family.tasks) for row in families}
    yield ("modality", "parts", "tasks")
    room = WIDTH - sum(max(map(len, column)) + 2 for column in zip(*kinds, strict=True))
    for kind, tasks in kinds.items():
        if current_screen().width is not None:
            yield (*kind, tasks)
            continue
        first, *others = textwrap.wrap(tasks, room, break_on_hyphens=False)
        yield (*kind, first)
        yield from (("", "", line) for line in others)


def _recipes(families: Iterable[CatalogFamily], targets: Sequence[str]) -> Iterator[tuple[str, ...]]:
    yield ("recipe", "family", *targets)
    tried = [(recipe, row.family.name) for row in families for recipe in row.recipes]
    for recipe, family in sorted(tried, key=lambda pair: pair[0].name):
        yield (recipe.name, family, *_by_target(recipe.levels, targets))

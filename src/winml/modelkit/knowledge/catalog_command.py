"""`winml catalog`: known model families, their tasks, and what was proven on which target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal, NoReturn

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.recipe import Proof, Recipe
from winml.modelkit.core.suggest import did_you_mean, near_names
from winml.modelkit.core.support import Goal
from winml.modelkit.core.values import Names, key
from winml.modelkit.ep import targets
from winml.modelkit.knowledge import catalog as catalogs
from winml.modelkit.knowledge import recipes
from winml.modelkit.knowledge.catalog import Architecture, Family, FamilyProof


@dataclass(frozen=True, kw_only=True)
class CatalogLevel:
    """The best outcome on a target."""

    target: str
    simulated: bool
    outcome: Literal["proven", "failed"]
    goal: Goal | None
    """The highest proven rung, otherwise how far it got."""


@dataclass(frozen=True, kw_only=True)
class CatalogRecipe:
    """A recipe with its proofs on a family."""

    name: str
    tasks: Names
    levels: tuple[CatalogLevel, ...]
    proven: tuple[Proof, ...]


@dataclass(frozen=True, kw_only=True)
class CatalogFamily:
    """A family with all its proofs and recipes."""

    family: Family = key(inline=True)
    levels: tuple[CatalogLevel, ...]
    proofs: tuple[FamilyProof, ...]
    recipes: tuple[CatalogRecipe, ...]


@dataclass(frozen=True, kw_only=True)
class CatalogResult:
    """Matching families, each with its matching proofs."""

    schema: Literal["winml/catalog/1"] = "winml/catalog/1"
    ok: Literal[True] = True
    families: tuple[CatalogFamily, ...]


@dataclass(frozen=True, kw_only=True)
class ArchitecturesResult:
    """Matching architectures of transformers, and what came of a tiny model of each."""

    schema: Literal["winml/catalog/1"] = "winml/catalog/1"
    ok: Literal[True] = True
    npu: str
    simulated: bool
    versions: Mapping[str, str]
    counts: Mapping[str, Mapping[str, int]]
    """Outcomes on `cpu` and on `npu`, of the architectures that are shown."""
    architectures: tuple[Architecture, ...]


def show_architectures(
    *, family: str | None = None, task: str | None = None, target: str | None = None
) -> ArchitecturesResult:
    """The walk over all architectures of transformers; `target` leaves those that were tried there."""
    walk = catalogs.load_architectures()
    names = [row.name for row in walk.architectures]
    if family is not None and family not in names:
        hint = near_names(family, names) or "`winml catalog --architectures` lists them"
        raise RequestError(f"the catalog has no architecture `{family}`", hint=hint)
    _require_known(task, "task", (row.task for row in walk.architectures if row.task is not None))
    asked = None if target is None else targets.parse_target(target)
    shown = tuple(
        row
        for row in walk.architectures
        if family in (None, row.name) and task in (None, row.task) and _was_tried(row, walk.npu, asked)
    )
    return ArchitecturesResult(
        npu=walk.npu,
        simulated=walk.simulated,
        versions=walk.versions,
        counts={
            "cpu": dict(Counter(row.cpu for row in shown).most_common()),
            "npu": dict(Counter(row.npu for row in shown).most_common()),
        },
        architectures=shown,
    )


_UNTRIED = ("not run", "not made", "no model", "skipped")


def _was_tried(row: Architecture, npu: str, asked: targets.TargetRequest | None) -> bool:
    if asked is None:
        return True
    return (_is_on("cpu", asked) and row.cpu not in _UNTRIED) or (_is_on(npu, asked) and row.npu not in _UNTRIED)


def show_catalog(*, family: str | None = None, task: str | None = None, target: str | None = None) -> CatalogResult:
    """The families of the catalog with their proofs and recipes; an unknown family or task is an error."""
    whole = catalogs.load()
    if family is not None and family not in {f.name for f in whole.families}:
        _refuse_family(family, [f.name for f in whole.families])
    _require_known(task, "task", (t for f in whole.families for t in f.tasks))
    asked = None if target is None else targets.parse_target(target)
    rows = []
    for found in whole.families:
        if family not in (None, found.name) or (task is not None and task not in found.tasks):
            continue
        tried = [
            _describe_recipe(recipe, found.name, asked)
            for recipe in recipes.recipes_tried_on(found.name)
            if task is None or task in recipe.tasks
        ]
        tried = [recipe for recipe in tried if recipe.proven or asked is None]
        rows.append(
            CatalogFamily(
                family=found,
                levels=_best_levels(proof for recipe in tried for proof in recipe.proven),
                proofs=tuple(
                    p
                    for p in whole.proofs
                    if p.family == found.name and task in (None, p.task) and _is_on(p.target, asked)
                ),
                recipes=tuple(tried),
            )
        )
    return CatalogResult(families=tuple(rows))


def _refuse_family(family: str, known: Iterable[str]) -> NoReturn:
    """A family that is in no table may be an architecture that the walk tried."""
    hint = did_you_mean(family, sorted(known))
    if any(row.name == family for row in catalogs.load_architectures().architectures):
        hint = f"`winml catalog --architectures --family {family}` shows what came of a tiny model of it"
    raise RequestError(f"the catalog has no family `{family}`", hint=hint)


def _require_known(word: str | None, option: str, known: Iterable[str]) -> None:
    choices = sorted(set(known))
    if word is not None and word not in choices:
        raise RequestError(f"the catalog has no {option} `{word}`", hint=did_you_mean(word, choices))


def _is_on(target: str, asked: targets.TargetRequest | None) -> bool:
    """Whether a target is the requested one; an EP alone means all of its devices."""
    if asked is None:
        return True
    ep, _, device = target.partition("/")
    # A target is written without its device when that has the name of the EP.
    return (asked.ep is None or asked.ep.name == ep) and asked.device in (None, device or ep)


def _describe_recipe(recipe: Recipe, family: str, asked: targets.TargetRequest | None) -> CatalogRecipe:
    tried = tuple(p for p in recipe.proven if p.family == family and _is_on(p.target, asked))
    return CatalogRecipe(name=recipe.name, tasks=recipe.tasks, levels=_best_levels(tried), proven=tried)


def _best_levels(proofs: Iterable[Proof]) -> tuple[CatalogLevel, ...]:
    """The best outcome on each target: the highest proven rung, otherwise how far it got."""
    best: dict[tuple[str, bool], CatalogLevel] = {}
    for proof in proofs:
        level = CatalogLevel(target=proof.target, simulated=proof.simulated, outcome=proof.outcome, goal=proof.goal)
        place = (proof.target, proof.simulated)
        best[place] = max(best.get(place, level), level, key=lambda v: (v.outcome == "proven", v.goal or ""))
    return tuple(best[place] for place in sorted(best))

"""`winml catalog`: which families of models are known, for which tasks, and what was proven where."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from winml.modelkit.core import sections
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.recipe import Recipe
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.ep import targets
from winml.modelkit.knowledge import catalog as catalogs
from winml.modelkit.knowledge import recipes

SCHEMA = "winml/catalog/1"


def _known(word: str | None, option: str, known: Iterable[str]) -> str | None:
    """The word, if the catalog has it."""
    choices = sorted(set(known))
    if word is not None and word not in choices:
        raise RequestError(f"the catalog has no {option} `{word}`", hint=did_you_mean(word, choices))
    return word


def _on(target: str, asked: targets.TargetRequest | None) -> bool:
    """Whether a target is the one that was asked for; an EP alone means all of its devices."""
    if asked is None:
        return True
    ep, _, device = target.partition("/")
    # A target is written without its device where that has the name of the EP.
    return (asked.ep is None or asked.ep.name == ep) and asked.device in (None, device or ep)


def _levels(proofs: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The best that came of each target: the highest rung that was proven, else how far it came."""
    best: dict[tuple[str, bool], dict[str, Any]] = {}
    for proof in proofs:
        level = {name: proof[name] for name in ("target", "simulated", "outcome", "goal")}
        place = (proof["target"], proof["simulated"])
        best[place] = max(best.get(place, level), level, key=lambda v: (v["outcome"] == "proven", v["goal"] or ""))
    return [best[place] for place in sorted(best)]


def _recipe(recipe: Recipe, family: str, asked: targets.TargetRequest | None) -> dict[str, Any]:
    """A recipe with what was tried of it on a family."""
    tried = [sections.plain(p) for p in recipe.proven if p.family == family and _on(p.target, asked)]
    return {"name": recipe.name, "tasks": list(recipe.tasks), "levels": _levels(tried), "proven": tried}


def catalog(*, family: str | None = None, task: str | None = None, target: str | None = None) -> dict[str, Any]:
    """The JSON object of the contract: families that fit, each with the proofs that fit."""
    whole = catalogs.load()
    _known(family, "family", (f.name for f in whole.families))
    _known(task, "task", (t for f in whole.families for t in f.tasks))
    asked = None if target is None else targets.parse_target(target)
    chosen = [f for f in whole.families if family in (None, f.name) and (task is None or task in f.tasks)]
    rows = []
    for found in chosen:
        proofs = [
            sections.plain(p)
            for p in whole.proofs
            if p.family == found.name and task in (None, p.task) and _on(p.target, asked)
        ]
        known = recipes.tried_on(found.name)
        made = [_recipe(r, found.name, asked) for r in known if task is None or task in r.tasks]
        made = [recipe for recipe in made if recipe["proven"] or asked is None]
        levels = _levels(proof for recipe in made for proof in recipe["proven"])
        rows.append({**sections.plain(found), "levels": levels, "proofs": proofs, "recipes": made})
    return {"schema": SCHEMA, "ok": True, "families": rows}

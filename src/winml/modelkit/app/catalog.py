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


def _recipe(recipe: Recipe, asked: targets.TargetRequest | None) -> dict[str, Any]:
    """A recipe with the rungs it was proven on."""
    proven = [sections.plain(proof) for proof in recipe.proven if _on(proof.target, asked)]
    return {"name": recipe.name, "tasks": list(recipe.tasks), "proven": proven}


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
        made = [_recipe(r, asked) for r in recipes.for_family(found.name) if task is None or task in r.tasks]
        rows.append({**sections.plain(found), "proofs": proofs, "recipes": made})
    return {"schema": SCHEMA, "ok": True, "families": rows}

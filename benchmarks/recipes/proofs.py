"""Writes what recipes say of themselves from the results of `run.py`: the families they are for, and what is proven.

    python benchmarks/recipes/proofs.py

A template changes nothing: what it says is what the default build of its recipes came to, parts run together.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from winml.modelkit.core.recipe import Proof, Recipe
from winml.modelkit.knowledge import files, recipes
from winml.modelkit.support.review.derive import COSINE

RESULTS = Path(__file__).with_name("results.jsonl")
Row = dict[str, Any]


def rows() -> list[Row]:
    return [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]


def proven(recipe: Recipe, shipped: dict[str, Recipe], found: list[Row]) -> Recipe:
    """The recipe with the proofs that the results give it, for the families that one of them holds for."""
    made = tuple(_template(recipe, shipped, found) if recipe.changes_nothing else _own(recipe, found))
    families = dict.fromkeys(proof.family for proof in made if proof.outcome == "proven")
    return replace(recipe, families=tuple(families), proven=made)


def _own(recipe: Recipe, found: list[Row]) -> Iterator[Proof]:
    for row in (row for row in found if row["recipe"] == recipe.name):
        yield Proof(
            family=row["family"],
            model=_model(row),
            target=row["target"],
            simulated=row["simulated"],
            outcome="proven" if row["ok"] and _agrees(row) else "failed",
            goal=row["reached"] if _agrees(row) else "L1",
            review=row["review"],
            shows=_shown(row) if row["ok"] else row["error"],
        )


def _template(recipe: Recipe, shipped: dict[str, Recipe], found: list[Row]) -> Iterator[Proof]:
    for row in found:
        if shipped[row["recipe"]].template != recipe.name or row["default"] is None:
            continue
        holds = _holds(row["default"])
        yield Proof(
            family=row["family"],
            model=_model(row),
            target=row["target"],
            simulated=row["simulated"],
            outcome="proven" if holds else "failed",
            goal="L2" if holds else "L1",
            review=None,
            shows=f"fp32: {_apart(row)}; {_together(row['default'])}",
        )


def _agrees(row: Row) -> bool:
    """By the cosine: outputs close to zero pass L2 by their difference alone, which proves nothing."""
    return row["cosine"] is None or row["cosine"] >= COSINE[row["precision"]]


def _model(row: Row) -> str:
    return f"tiny {row['model']} with random weights"


def _shown(row: Row) -> str:
    effect = row["effect"]
    words = [f"{row['precision']}: {_apart(row)}", f"cosine {row['cosine']:.4f} with the export", _placed(row)]
    if row["together"] is not None:
        words.append(_together(row["together"]))
    words.append(effect["because"] if effect["kind"] == "builds" else f"{effect['gain_pct']:.0f} % smaller")
    return "; ".join(words)


def _apart(row: Row) -> str:
    return f"the export is off PyTorch by {row['difference']:.0e}"


def _placed(row: Row) -> str:
    return "nodes on " + ", ".join(f"{provider} {count}" for provider, count in row["nodes"].items())


def _holds(found: dict[str, Any]) -> bool:
    """Whether parts together say every word of PyTorch, or give the numbers of the whole."""
    return bool(found["same"] == found["words"] if "words" in found else found["difference"] < 1e-3)


def _together(found: dict[str, Any]) -> str:
    if "words" in found:
        return f"parts together say {found['same']} of {found['words']} greedy words as PyTorch does"
    return f"halves together are off the whole by {found['difference']:.0e}"


def main() -> None:
    shipped, found = recipes.load_recipes(), rows()
    for recipe in shipped.values():
        made = proven(recipe, shipped, found)
        (recipes.FOLDER / f"{recipe.name}.json").write_bytes(files.text(made))


if __name__ == "__main__":
    main()

"""Recipes that ship with the program: one file each, named by the recipe."""

from __future__ import annotations

from pathlib import Path

from winml.modelkit.core.errors import DataError
from winml.modelkit.core.recipe import Recipe
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.knowledge import files
from winml.modelkit.knowledge.findings import SHIPPED

FOLDER = SHIPPED / "recipes"


def find_recipe(word: str) -> Recipe:
    """The recipe in a file, or the shipped one of that name."""
    path = Path(word)
    if path.is_file() or path.suffix == ".json":
        return files.load(path, Recipe)
    shipped = load_recipes()
    if word not in shipped:
        raise DataError(f"no recipe is called `{word}`, and there is no such file", hint=did_you_mean(word, shipped))
    return shipped[word]


def load_recipes(folder: Path = FOLDER) -> dict[str, Recipe]:
    """Every recipe of a folder by its name."""
    found: dict[str, Recipe] = {}
    for path in files.json_files(folder):
        recipe = files.load(path, Recipe)
        if recipe.name != path.stem:
            raise DataError(f"`{path}`: `name` must be the file's name but is `{recipe.name}`")
        found[recipe.name] = recipe
    return found


def recipes_for(family: str | None) -> tuple[Recipe, ...]:
    return tuple(recipe for recipe in load_recipes().values() if family in recipe.families)


def recipes_tried_on(family: str) -> tuple[Recipe, ...]:
    """Recipes that are for a family, and those that failed on it."""
    return tuple(r for r in load_recipes().values() if family in (*r.families, *(proof.family for proof in r.proven)))

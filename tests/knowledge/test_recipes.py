from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from published import validator
from winml.modelkit.building.export import families
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.recipe import BuildPart
from winml.modelkit.knowledge import files, recipes

SHIPPED = recipes.load_recipes()
MADE = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "recipes" / "proofs.py"))


@pytest.mark.parametrize("path", list(files.json_files(recipes.FOLDER)), ids=lambda path: path.stem)
def test_every_shipped_recipe_fits_its_published_schema(path: Path) -> None:
    validator("recipe").validate(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", SHIPPED)
def test_a_recipe_says_what_the_results_say_and_is_for_the_families_they_prove(name: str) -> None:
    recipe = SHIPPED[name]
    assert recipe == MADE["proven"](recipe, SHIPPED, MADE["rows"]())
    assert recipe.families


def test_every_family_that_tests_export_has_a_recipe_or_a_failure() -> None:
    tried = {proof.family for recipe in SHIPPED.values() for proof in recipe.proven}
    assert tried == {name for name, family in families.FAMILIES.items() if family.proven}


@pytest.mark.parametrize("name", SHIPPED)
def test_the_parts_of_a_recipe_are_those_of_the_exporter(name: str) -> None:
    recipe = SHIPPED[name]
    assert recipe.template is None or recipe.template in SHIPPED
    for family in recipe.families:
        built = [families.parts_of(families.FAMILIES[family], task) for task in recipe.tasks]
        assert recipe.parts in [tuple(part for part in parts if part != families.WHOLE) for parts in built]


def test_a_recipe_that_failed_on_a_family_is_known_but_not_for_it() -> None:
    failed = {
        (recipe.name, proof.family)
        for recipe in SHIPPED.values()
        for proof in recipe.proven
        if proof.outcome == "failed" and proof.family not in recipe.families
    }
    for name, family in failed:
        assert name in {recipe.name for recipe in recipes.recipes_tried_on(family)}
        assert name not in {recipe.name for recipe in recipes.recipes_for(family)}


def test_a_recipe_is_named_like_its_file(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_bytes(files.text(SHIPPED["dual-encoder"]))
    with pytest.raises(DataError, match="`name` must be the file's name"):
        recipes.load_recipes(tmp_path)


def test_a_recipe_is_found_by_file_or_by_name(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_bytes(files.text(SHIPPED["decoder-fp16"]))
    assert (
        recipes.find_recipe(str(tmp_path / "mine.json"))
        == recipes.find_recipe("decoder-fp16")
        == SHIPPED["decoder-fp16"]
    )
    with pytest.raises(DataError, match="no recipe is called `decoder-fp61`") as caught:
        recipes.find_recipe("decoder-fp61")
    assert "`decoder-fp16`" in (caught.value.hint or "")


def test_made_up_calibration_is_part_of_what_a_build_is_given() -> None:
    words = BuildPart(precision="w8a16", calibration="random", samples=8).words()
    assert words == ["-p", "w8a16", "--calibration", "random", "--samples", "8"]

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import hf_zoo
import support_zoo
from published import validator
from winml.modelkit.core.errors import DataError
from winml.modelkit.knowledge import files, recipes
from winml.modelkit.stages.export import families

SHIPPED = recipes.recipes()
PROVEN = {*hf_zoo.FAMILIES, "vit_gpt2", *support_zoo.MODELS}
"""Tiny models that tests export, compare with PyTorch and let generate, or make contributions of."""


@pytest.mark.parametrize("path", list(files.json_files(recipes.FOLDER)), ids=lambda path: path.stem)
def test_every_shipped_recipe_fits_its_published_schema(path: Path) -> None:
    validator("recipe").validate(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", SHIPPED)
def test_a_recipe_is_proven_on_models_that_tests_run(name: str) -> None:
    recipe = SHIPPED[name]
    assert recipe.proven
    for proof in recipe.proven:
        found = re.fullmatch(r"tiny (\w+) with random weights", proof.model)
        assert found is not None
        assert found[1] in PROVEN


@pytest.mark.parametrize("name", SHIPPED)
def test_the_parts_of_a_recipe_are_those_of_the_exporter(name: str) -> None:
    recipe = SHIPPED[name]
    assert recipe.template is None or recipe.template in SHIPPED
    for family in recipe.families:
        built = [families.parts_of(families.FAMILIES[family], task) for task in recipe.tasks]
        assert recipe.parts in [tuple(part for part in parts if part != families.WHOLE) for parts in built]


def test_a_recipe_is_named_like_its_file(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_bytes(files.text(SHIPPED["dual-encoder"].to_json()))
    with pytest.raises(DataError, match="`name` must be the file's name"):
        recipes.recipes(tmp_path)

"""The shipped catalog, and the page that is made of it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from winml.modelkit.building.export.families import FAMILIES, tasks_of
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.knowledge import catalog as catalogs
from winml.modelkit.knowledge.catalog_command import show_catalog
from winml.modelkit.render.catalog import catalog_markdown

ROOT = Path(__file__).parents[2]
SCHEMAS = Path(catalogs.__file__).parents[1] / "schemas"


def test_the_file_is_what_its_schema_says_and_has_every_family_of_the_exporter() -> None:
    value = json.loads(catalogs.FILE.read_bytes())
    jsonschema.validate(value, json.loads((SCHEMAS / "catalog-file-1.json").read_bytes()))
    assert {f.name: f.tasks for f in catalogs.load().families} == {n: tasks_of(f) for n, f in FAMILIES.items()}


def test_the_page_and_the_file_are_made_of_the_same_results() -> None:
    page = (ROOT / "docs" / "catalog.md").read_text(encoding="utf-8")
    assert catalog_markdown(show_catalog().families) in page
    results = [ROOT / "benchmarks" / name / "results.jsonl" for name in ("catalog", "accuracy")]
    lines = [line for path in results if path.is_file() for line in path.read_bytes().splitlines()]
    assert len(catalogs.load().proofs) == len(lines)


def test_a_filter_leaves_what_fits() -> None:
    found = show_catalog(family="bert", target="cpu").families
    assert [row.family.name for row in found] == ["bert"]
    assert {p.target for p in found[0].proofs} == {"cpu"}
    assert all("object-detection" in row.family.tasks for row in show_catalog(task="object-detection").families)
    assert not any(row.proofs or row.recipes for row in show_catalog(target="dml").families)


def test_words_the_catalog_does_not_have_are_refused() -> None:
    with pytest.raises(RequestError, match="no family `bret`") as caught:
        show_catalog(family="bret")
    assert "`bert`" in (caught.value.hint or "")
    with pytest.raises(RequestError, match="no task `ner`"):
        show_catalog(task="ner")


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text('{"schema": "winml/catalog-file/1", "families": [], "proof": []}')
    with pytest.raises(DataError, match="proof"):
        catalogs.load(tmp_path / "c.json")

"""The shipped catalog, and the page that is made of it."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import jsonschema
import pytest

from winml.modelkit.building.export.families import FAMILIES, tasks_of
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.knowledge import catalog as catalogs
from winml.modelkit.knowledge import files
from winml.modelkit.knowledge.catalog import Architecture, Architectures
from winml.modelkit.knowledge.catalog_command import show_architectures, show_catalog
from winml.modelkit.render.catalog import architectures_markdown, architectures_text, catalog_markdown

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


def test_the_architectures_are_those_of_the_walk_and_so_are_the_shares_on_the_page() -> None:
    value = json.loads(catalogs.ARCHITECTURES.read_bytes())
    jsonschema.validate(value, json.loads((SCHEMAS / "architectures-file-1.json").read_bytes()))
    walk = json.loads((ROOT / "benchmarks" / "results" / "walk.json").read_bytes())
    made = runpy.run_path(str(ROOT / "scripts" / "make_catalog.py"))["make_architectures"](walk)
    assert catalogs.load_architectures() == made, "run `python scripts/make_catalog.py`"
    assert architectures_markdown(walk["shares"]) in (ROOT / "docs" / "catalog.md").read_text(encoding="utf-8")


def test_every_named_family_of_the_issue_was_made_tiny() -> None:
    walk = json.loads((ROOT / "benchmarks" / "results" / "walk.json").read_bytes())
    named = [row for row in walk["architectures"] if row["named"]]
    assert len(named) == 65
    assert [row["name"] for row in named if row["made"] != "made"] == []


@pytest.fixture
def walked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A walk of which every outcome is known."""

    def row(name: str, task: str | None, cpu: str, npu: str, reason: str | None = None, **left: int) -> Architecture:
        model = None if cpu == "no model" else f"{name.title()}Model"
        return Architecture(
            name=name,
            model=model,
            task=task,
            cpu=cpu,  # type: ignore[arg-type]
            npu=npu,  # type: ignore[arg-type]
            left=left,
            reason=reason,
        )

    rows = (
        row("albert", "fill-mask", "right", "right", GatherND=1),
        row("dpt", "depth-estimation", "right", "wrong", "`depth` has a cosine of 0.3"),
        row("odd", None, "refused", "skipped", "`odd` cannot be traced"),
        row("part", None, "no model", "no model", "no model class"),
    )
    made = Architectures(npu="qnn/npu", simulated=True, versions={"transformers": "5.22.2"}, architectures=rows)
    (tmp_path / "architectures.json").write_bytes(files.text(made))
    whole = catalogs.load_architectures(tmp_path / "architectures.json")
    monkeypatch.setattr(catalogs, "load_architectures", lambda: whole)


@pytest.mark.usefixtures("walked")
def test_architectures_show_their_outcomes_the_reason_and_what_is_left_on_the_cpu() -> None:
    assert architectures_text(show_architectures()) == (
        "architecture  class        task              cpu       qnn/npu (simulated)  remark\n"
        "albert        AlbertModel  fill-mask         right     right                left on the CPU: GatherND x1\n"
        "dpt           DptModel     depth-estimation  right     wrong                `depth` has a cosine of 0.3\n"
        "odd           OddModel                       refused   skipped              `odd` cannot be traced\n"
        "part                                         no model  no model             no model class\n"
        "\n"
        "4 architectures, tiny models with random weights (transformers 5.22.2)\n"
        "cpu: 2 right, 1 refused, 1 no model\n"
        "qnn/npu (simulated): 1 right, 1 wrong, 1 skipped, 1 no model"
    )


@pytest.mark.usefixtures("walked")
def test_architectures_are_filtered_by_name_by_task_and_by_where_they_were_tried() -> None:
    def names(**asked: str) -> list[str]:
        return [row.name for row in show_architectures(**asked).architectures]

    assert names(family="dpt") == ["dpt"]
    assert names(task="fill-mask") == ["albert"]
    assert names(target="cpu") == ["albert", "dpt", "odd"]
    assert names(target="qnn/npu") == ["albert", "dpt"]
    assert names(target="dml") == []
    with pytest.raises(RequestError, match="no architecture `dptt`") as caught:
        show_architectures(family="dptt")
    assert "`dpt`" in (caught.value.hint or "")


@pytest.mark.usefixtures("walked")
def test_a_family_that_only_the_walk_knows_is_shown_there() -> None:
    with pytest.raises(RequestError, match="no family `odd`") as caught:
        show_catalog(family="odd")
    assert "winml catalog --architectures --family odd" in (caught.value.hint or "")

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from published import validator
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.core.values import read
from winml.modelkit.knowledge import files, recipes
from winml.modelkit.knowledge.findings import SHIPPED
from winml.modelkit.knowledge.models import ModelFinding, ModelKnowledge

FINDING: dict[str, Any] = {
    "id": "toy-001",
    "title": "A toy needs nothing",
    "observation": "It builds by itself.",
    "status": "reported",
    "source": "a test",
    "added": "2026-11-16",
}


def test_every_shipped_file_fits_its_published_schema() -> None:
    found = [*files.json_files(SHIPPED / "models"), SHIPPED / "methodology.json"]
    assert len(found) >= 9
    for path in found:
        validator("model-knowledge").validate(json.loads(path.read_text(encoding="utf-8")))


def test_shipped_findings_name_nothing_that_is_not_there() -> None:
    assert ModelKnowledge().problems(frozenset(recipes.load_recipes())) == []


def test_the_families_of_the_notes_are_there() -> None:
    expected = {"bart", "depth_pro", "m2m_100", "marian", "mgp_str", "pix2struct", "vilt", "vision-encoder-decoder"}
    assert expected <= set(ModelKnowledge().families)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"status": "observed"}, "is observed, which needs `evidence` and `scope.validated_on`"),
        ({"status": "refuted"}, "is refuted, which needs `scope.falsified_on`"),
        ({"mechanism": {"why": "so", "confirmed": True}}, "which needs `mechanism.source`"),
        ({"goal_reached": "L2"}, "claims that L2 was reached, which needs `evidence`"),
        ({"effort": "L9"}, "`effort` cannot be 'L9'"),
        ({"id": "toy"}, "must be a family and three digits"),
        ({"added": "today"}, "must be a date"),
        ({"titel": "x"}, "unknown key `titel`"),
    ],
)
def test_a_finding_cannot_say_more_than_it_shows(change: dict[str, Any], told: str) -> None:
    with pytest.raises(RequestError, match=told):
        read(ModelFinding, {**FINDING, **change})


def test_findings_are_added_and_never_changed(tmp_path: Path) -> None:
    known = ModelKnowledge(tmp_path)
    known.add(read(ModelFinding, FINDING))
    known.add(read(ModelFinding, {**FINDING, "id": "toy-002"}))
    again = ModelKnowledge(tmp_path)
    assert [f.id for f in again.about("toy")] == ["toy-001", "toy-002"]
    with pytest.raises(RequestError, match="`toy-001` already exists; findings are added, never changed") as caught:
        again.add(read(ModelFinding, {**FINDING, "title": "other"}))
    assert "toy-003" in str(caught.value.hint)
    with pytest.raises(RequestError, match="already exists"):
        again.add(read(ModelFinding, {**FINDING, "id": "bart-001"}))


def test_a_users_file_cannot_replace_a_shipped_finding(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    value = {"schema": "winml/model-knowledge/1", "family": "bart", "findings": [{**FINDING, "id": "bart-001"}]}
    (tmp_path / "models" / "bart.json").write_text(json.dumps(value), encoding="utf-8")
    with pytest.raises(DataError, match="`bart-001` is in"):
        ModelKnowledge(tmp_path)

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from published import validator
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.core.ladder import finding_from_json
from winml.modelkit.knowledge import files
from winml.modelkit.knowledge.findings import SHIPPED, Knowledge, ReplayOutcome, experiment_digest


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return Knowledge()


@pytest.mark.parametrize(("folder", "schema"), [("findings", "finding"), ("gaps", "gap"), ("presets", "preset")])
def test_every_shipped_file_fits_its_published_schema(folder: str, schema: str) -> None:
    found = list(files.json_files(SHIPPED / folder))
    assert found
    for path in found:
        validator(schema).validate(json.loads(path.read_text(encoding="utf-8")))


def test_no_finding_or_gap_refers_to_one_that_is_not_there(knowledge: Knowledge) -> None:
    assert knowledge.find_broken_links() == []


def test_only_findings_with_evidence_of_two_runs_are_confirmed(knowledge: Knowledge) -> None:
    confirmed = {e.finding.id for e in knowledge if e.finding.status == "confirmed"}
    assert confirmed == {"cpu-101", "cpu-102", "npu-006", "npu-101", "npu-102", "npu-103", "npu-104"}
    assert all(len(knowledge.entry(name).finding.runs) >= 2 for name in confirmed)


def test_claims_that_their_own_data_contradict_do_not_stand(knowledge: Knowledge) -> None:
    statuses = {e.finding.id: e.finding.status for e in knowledge}
    assert [statuses[name] for name in ("cpu-007", "cpu-008", "cpu-009")] == ["retracted"] * 3
    assert [statuses[name] for name in ("npu-001", "cpu-001", "gpu-007")] == ["contested"] * 3


def test_an_unknown_finding_suggests_the_nearest(knowledge: Knowledge) -> None:
    with pytest.raises(RequestError, match="unknown finding `npu-06`") as caught:
        knowledge.entry("npu-06")
    assert "npu-006" in str(caught.value.hint)


def _written(folder: Path, name: str, **changes: Any) -> Path:
    value = json.loads((SHIPPED / "findings" / "npu-104.json").read_text(encoding="utf-8"))
    path = folder / "findings" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**value, "id": name, **changes}), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"scope": {"ep": "qqn"}}, "scope.ep"),
        ({"scope": {"ep": "qnn", "graph": [{"fact": "op.Conv", "at_least": 1}]}}, "scope.graph[0].fact"),
        ({"evidence": []}, "status"),
        ({"experiment": {"measures": "placement"}}, "experiment"),
        ({"verdict": 1}, "verdict"),
    ],
)
def test_a_corrupt_file_is_named_with_its_field(tmp_path: Path, changes: dict[str, Any], field: str) -> None:
    path = _written(tmp_path, "npu-904", **changes)
    with pytest.raises(DataError) as caught:
        Knowledge(tmp_path)
    assert str(path) in caught.value.message
    assert field in caught.value.message


def test_a_model_builder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    value = json.loads((SHIPPED / "findings" / "npu-104.json").read_text(encoding="utf-8"))
    value["experiment"]["base"]["builder"] = "conv_nett"
    _written(tmp_path, "npu-904", experiment=value["experiment"])
    with pytest.raises(DataError, match="experiment.base.builder") as caught:
        Knowledge(tmp_path)
    assert "conv_net" in str(caught.value.hint)


def test_broken_json_and_a_wrong_name_are_named(tmp_path: Path) -> None:
    path = _written(tmp_path, "npu-904")
    renamed = path.rename(path.with_name("npu-905.json"))
    with pytest.raises(DataError, match="`id` must be the file's name"):
        Knowledge(tmp_path)
    renamed.write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match="npu-905.json` is not JSON"):
        Knowledge(tmp_path)


def test_a_users_finding_replaces_the_shipped_one(tmp_path: Path) -> None:
    _written(tmp_path, "npu-104", title="mine")
    assert Knowledge(tmp_path).entry("npu-104").finding.title == "mine"


def test_a_replay_that_did_not_hold_makes_a_finding_contested(tmp_path: Path) -> None:
    shipped = json.loads((SHIPPED / "findings" / "npu-104.json").read_text(encoding="utf-8"))
    finding = finding_from_json(shipped)
    assert finding.experiment is not None
    outcome = {
        "schema": "winml/outcome/1",
        "finding": "npu-104",
        "answer": "does not hold",
        "reason": "the EP took all nodes",
        "experiment": experiment_digest(finding.experiment),
        "winml": "0.1.0",
        "evidence": {**shipped["evidence"][-1], "speaks": "against", "run": "replay later"},
    }
    path = tmp_path / "outcomes" / "npu-104-001.json"
    path.parent.mkdir()
    path.write_text(json.dumps(outcome), encoding="utf-8")
    path.with_name("npu-104-002.json").write_text(json.dumps({**outcome, "experiment": "sha256:0"}), encoding="utf-8")
    found = Knowledge(tmp_path).entry("npu-104")
    assert len(found.outcomes) == 1, "an outcome of another experiment says nothing"
    assert found.finding.status == "confirmed"
    assert found.effective.status == "contested"
    assert "the EP took all nodes" in found.effective.falsified_by


def test_evidence_of_a_replay_is_added_once(knowledge: Knowledge) -> None:
    entry = knowledge.entry("npu-104")
    known = entry.finding.evidence[-1]
    made = [
        ReplayOutcome(
            finding="npu-104",
            answer=answer,  # type: ignore[arg-type]  # mypy widens the words of a tuple
            reason="seen",
            experiment="sha256:0",
            winml="0.1.0",
            evidence=replace(known, run=run),
        )
        for answer, run in (("holds", known.run), ("holds", "later"), ("unclear", "last"))
    ]
    more = replace(entry, outcomes=tuple(made)).with_outcomes
    assert [e.run for e in more.evidence] == [*(e.run for e in entry.finding.evidence), "later"]

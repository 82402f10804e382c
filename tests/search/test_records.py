"""Journals of searches: what they hold, what is refused, and what another search counts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from search_world import World, make_trial, search
from winml.modelkit import __version__
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import to_json
from winml.modelkit.graph.input_settings import InputSettings
from winml.modelkit.search.records import (
    GateLimits,
    Identity,
    Record,
    StudyRecord,
    TrialRecord,
    read_records,
    replay,
    reuse_trials,
)
from winml.modelkit.search.space import Choice
from winml.modelkit.search.trial import exact_series
from winml.modelkit.store import journal
from winml.modelkit.store.journal import Journal

WORLD = World({"scheme": 3, "fuse": 2}, {("scheme", "l1"): 0.7, ("scheme", "l2"): 0.3, ("fuse", "l1"): 0.05})
GATE = GateLimits(
    kind="agreement",
    data=None,
    task="outputs",
    min_metric=None,
    max_drop=None,
    min_agreement=0.99,
    judge="interval",
    digest="sha256:1",
)
IDENTITY = Identity(
    model="sha256:2",
    targets=(Target("cpu", "cpu"),),
    objective="size",
    baseline={"target": "cpu"},
    calibration=None,
    gate=GATE,
    knobs={"hypothesis": ("default", "h3", "h7")},
    inputs=InputSettings(),
    versions={"cpu": {"onnxruntime": "1.31.1"}},
)
OPTIONS = (("hypothesis", "h3"), ("hypothesis", "h7"))


def lines_of(records: list[Record]) -> list[dict[str, Any]]:
    """Records as a journal has them."""
    found: list[dict[str, Any]] = json.loads(json.dumps(to_json(records)))
    return found


def test_the_state_is_what_the_records_say() -> None:
    records: list[Record] = []
    study, _ = search(WORLD, records=records)
    assert replay(read_records(lines_of(records), "j")) == study.state


def test_rounds_of_earlier_versions_have_no_medians_and_records_of_later_ones_are_skipped() -> None:
    records: list[Record] = []
    study, _ = search(WORLD, records=records)
    lines = lines_of(records)
    for line in lines:
        series = line["trial"]["series"] if line["kind"] == "trial" else line.get("series")
        if series is not None:
            assert series.pop("medians_ms") == {}
        line["of_a_later_version"] = 1
    assert replay(read_records([*lines, {"kind": "of a later version"}], "j")) == study.state


BEFORE = Path(__file__).parents[1] / "goldens" / "before"
JOURNALS = ("search", "stopped-search", "sweep/tiny", "sweep/small")


@pytest.mark.parametrize("name", JOURNALS)
def test_journals_of_the_version_before_are_read_whole_and_written_the_same(name: str) -> None:
    path = BEFORE / name / "journal.jsonl"
    lines = journal.read(path).records
    records = read_records(lines, str(path))
    assert to_json(records) == list(lines)
    assert replay(records).trials[0].outcome == "baseline"


WRONG: list[Any] = ["x", 7, -1.5, True, None, [], {}, ["x", "y"], {"a": "b"}]


def _damage(value: Any, path: tuple[Any, ...], wrong: Any) -> Any:
    copy = json.loads(json.dumps(value))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = wrong
    return copy


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if not isinstance(value, dict) or len(path) > 2:
        return []
    return [found for key in value for found in ((*path, key), *_places(value[key], (*path, key)))]


def test_a_journal_with_right_checksums_and_wrong_fields_is_refused_or_the_search_goes_on() -> None:
    records: list[Record] = []
    search(WORLD, records=records)
    whole = lines_of(records)
    by_kind = {record["kind"]: index for index, record in reversed(list(enumerate(whole)))}
    refused = 0
    for index in by_kind.values():
        for path in _places(whole[index]):
            for wrong in WRONG:
                damaged = [*whole[:index], _damage(whole[index], path, wrong), *whole[index + 1 :]]
                lines = b"".join(journal.encode(seq, value) for seq, value in enumerate(damaged))
                try:
                    state = replay(read_records(journal.parse(lines, source="j").records, "j"))
                except DataError as error:
                    assert error.message
                    refused += 1
                    continue
                assert state.seconds >= -1.5 * len(records)
    assert refused > 200


def test_what_does_not_fit_is_named_with_its_line_and_place() -> None:
    records: list[Record] = []
    search(WORLD, records=records)
    lines = lines_of(records)
    lines[1]["trial"]["seconds"] = "long"
    with pytest.raises(
        DataError, match=r"journal `j` cannot be used: line 2: `trial.trial.seconds` must be a number"
    ) as caught:
        read_records(lines, "j")
    assert caught.value.hint == "restore it from a copy"
    with pytest.raises(DataError, match="line 1: `kind` must name the kind of the record"):
        read_records([{"kind": 7}], "j")


def test_a_journal_that_speaks_of_trials_it_does_not_have_is_refused() -> None:
    records: list[Record] = []
    search(WORLD, records=records)
    with pytest.raises(DataError, match="before it exists"):
        replay([record for record in records if not isinstance(record, TrialRecord)])
    first = next(record for record in records if isinstance(record, TrialRecord))
    with pytest.raises(DataError, match="twice"):
        replay([first, first])


def write_journal(folder: Path, *choices: Choice, version: str = __version__, identity: Identity = IDENTITY) -> str:
    with Journal(folder / "journal.jsonl") as opened:
        opened.append(StudyRecord(winml=version, identity=identity))
        for number, choice in enumerate(choices):
            trial = make_trial(f"t{number}", choice, "measured" if number else "baseline", series=exact_series(0.1))
            opened.append(TrialRecord(trial=trial, seconds=3.0))
    return str(folder)


def test_hypotheses_of_an_earlier_search_keep_their_ids(tmp_path: Path) -> None:
    folder = write_journal(tmp_path, (), (("hypothesis", "h9"),), (("hypothesis", "h7"),))
    found = [record for record in reuse_trials(folder, IDENTITY, OPTIONS) if isinstance(record, TrialRecord)]
    assert [(record.trial.id, record.trial.facts.reused_from, record.seconds) for record in found] == [
        ("h0", folder, 0.0),
        ("h7", folder, 0.0),
    ]


def test_a_search_with_other_knobs_is_reused(tmp_path: Path) -> None:
    knobs: Mapping[str, tuple[str, ...]] = {"hypothesis": ("default", "h1")}
    assert reuse_trials(write_journal(tmp_path, (), identity=replace(IDENTITY, knobs=knobs)), IDENTITY, OPTIONS)


def test_trials_of_another_version_are_not_reused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"was run by winml 0\.0\.0, this is"):
        reuse_trials(write_journal(tmp_path / "winml", version="0.0.0"), IDENTITY, OPTIONS)
    other = replace(IDENTITY, versions={"cpu": {"onnxruntime": "1.0"}})
    with pytest.raises(RequestError, match="cannot be reused: versions differ"):
        reuse_trials(write_journal(tmp_path / "runtime", identity=other), IDENTITY, OPTIONS)
    with pytest.raises(RequestError, match="holds no search"):
        reuse_trials(str(tmp_path / "nothing"), IDENTITY, OPTIONS)

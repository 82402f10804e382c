from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from winml.modelkit.build_matrix.progress import tally
from winml.modelkit.build_matrix.state import (
    Build,
    CellPlan,
    CellState,
    NodeRecord,
    RunRecord,
    Upload,
    make_record,
    make_row,
    read_records,
    replay,
)
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.values import to_json
from winml.modelkit.store import journal

BUILT = Build("ok", "complete", 2.0, "t", digest="sha256:a", objects=("sha256:b",), computed=("optimize",))
FAILED = Build("failed", "quantize", 4.0, "t", error="no data")
SENT = Upload("uploaded", "f", "t", digest="sha256:a", reference="r", sent_bytes=7)


CELL = CellPlan(
    version="v1", package="p", run_stamp="s", hf_id="m", source="m.onnx", task=None, priority=None, ep="cpu",
    device="cpu", combo="cpu", target="cpu", precision="fp32", compile=False, folder="m",
)  # fmt: skip
RUN = RunRecord(run_stamp="s", feed=None, cells=(CELL,), jobs=1, max_disk=None, keep_local=False, at="t")


def test_replaying_gives_back_what_was_recorded() -> None:
    records = [RUN, make_record("v1", BUILT), make_record("v1", SENT), make_record("v2", FAILED)]
    assert replay(records) == {"v1": CellState(BUILT, SENT), "v2": CellState(FAILED)}


def test_a_new_build_takes_back_what_was_said_of_publishing_the_old_one() -> None:
    assert replay([make_record("v", one) for one in (BUILT, SENT, FAILED)]) == {"v": CellState(FAILED)}


def test_a_record_that_lacks_something_is_an_error() -> None:
    with pytest.raises(DataError, match="journal `j` cannot be used: line 1: `build.status` is missing"):
        read_records([{"record": "build", "version": "v"}], "j")


def test_records_of_a_kind_that_is_not_known_are_skipped() -> None:
    assert read_records([{"record": "weather", "rain": True}], "j") == []


@pytest.mark.parametrize(
    ("state", "proven"),
    [
        (CellState(BUILT, SENT), True),
        (CellState(BUILT, replace(SENT, digest="sha256:other")), False),
        (CellState(BUILT, replace(SENT, digest=None)), False),
        (CellState(replace(BUILT, digest=None), replace(SENT, digest=None)), False),
        (CellState(BUILT, replace(SENT, status="exists-skipped")), False),
        (CellState(BUILT, replace(SENT, status="timeout")), False),
        (CellState(BUILT), False),
        (CellState(None, SENT), False),
    ],
)
def test_a_folder_may_go_only_when_the_feed_has_what_was_built(state: CellState, proven: bool) -> None:
    assert state.is_proven == proven


@pytest.mark.parametrize(
    ("state", "feed", "word"),
    [
        (CellState(BUILT), None, "n/a"),
        (CellState(BUILT, SENT), "f", "uploaded"),
        (CellState(FAILED), "f", "skipped"),
        (CellState(FAILED), None, "n/a"),
        (CellState(BUILT, Upload("timeout", "f", "t")), "f", "timeout"),
    ],
)
def test_upload_status(state: CellState, feed: str | None, word: str) -> None:
    assert make_row(CELL, state, feed).upload_status == word


def test_every_cell_is_done_failed_or_pending_and_the_rest_takes_as_long_as_what_was_built() -> None:
    states = {"a": CellState(BUILT, SENT), "b": CellState(FAILED), "c": CellState(BUILT)}
    found = tally("abcde", states, feed="f").progress(2)
    assert (found.total, found.done, found.failed, found.pending) == (5, 1, 1, 3)
    assert found.seconds_left == pytest.approx(3 * (2 + 4 + 2) / 3 / 2)
    assert tally("ab", {}, feed=None).progress(1).seconds_left is None
    assert tally("c", states, feed=None).progress(1).seconds_left == 0.0


NODE = NodeRecord(name="n", environment={})
JOURNAL: list[dict[str, Any]] = [to_json(one) for one in (RUN, NODE, make_record("v1", BUILT), make_record("v1", SENT))]
WRONG: list[Any] = ["x", 7, -1.5, True, None, [], {}, [7], {"a": 7}, 10**18]


def _journal(records: list[dict[str, Any]]) -> bytes:
    return b"".join(journal.encode(seq, value) for seq, value in enumerate(records))


def test_what_was_written_is_read_again() -> None:
    found = read_records(journal.parse(_journal(JOURNAL), source="j").records, "j")
    assert found == [RUN, NODE, make_record("v1", BUILT), make_record("v1", SENT)]


@pytest.mark.parametrize("place", [(i, key) for i, value in enumerate(JOURNAL) for key in value])
def test_a_journal_with_right_checksums_and_wrong_fields_is_refused_or_can_be_shown(place: tuple[int, str]) -> None:
    index, key = place
    refused = 0
    for wrong in WRONG:
        records = [*JOURNAL[:index], {**JOURNAL[index], key: wrong}, *JOURNAL[index + 1 :]]
        try:
            states = replay(read_records(journal.parse(_journal(records), source="j").records, "j"))
        except DataError as error:
            assert "journal" in error.message
            refused += 1
            continue
        assert json.dumps(to_json(make_row(CELL, states.get("v1", CellState()), None)))
        assert json.dumps(to_json(tally(["v1"], states, feed=None).progress(1)))
    assert refused or key in ("cluster",)

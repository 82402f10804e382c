from __future__ import annotations

from dataclasses import replace

import pytest

from winml.modelkit.core.errors import DataError
from winml.modelkit.matrix.progress import tally
from winml.modelkit.matrix.state import Build, CellState, Upload, record, replayed, upload_word

BUILT = Build("ok", "complete", 2.0, "t", digest="sha256:a", objects=("sha256:b",), computed=("optimize",))
FAILED = Build("failed", "quantize", 4.0, "t", error="no data")
SENT = Upload("uploaded", "f", "t", digest="sha256:a", reference="r", sent_bytes=7)


def test_replaying_gives_back_what_was_recorded() -> None:
    lines = [{"record": "run", "cells": []}, record("v1", BUILT), record("v1", SENT), record("v2", FAILED)]
    assert replayed(lines) == {"v1": CellState(BUILT, SENT), "v2": CellState(FAILED)}


def test_a_new_build_takes_back_what_was_said_of_publishing_the_old_one() -> None:
    assert replayed([record("v", BUILT), record("v", SENT), record("v", FAILED)]) == {"v": CellState(FAILED)}


def test_a_record_that_lacks_something_is_an_error() -> None:
    with pytest.raises(DataError, match="cannot be read"):
        replayed([{"record": "build", "version": "v"}])


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
    assert upload_word(state, feed) == word


def test_every_cell_is_done_failed_or_pending_and_the_rest_takes_as_long_as_what_was_built() -> None:
    states = {"a": CellState(BUILT, SENT), "b": CellState(FAILED), "c": CellState(BUILT)}
    found = tally("abcde", states, feed="f").progress(2)
    assert (found.total, found.done, found.failed, found.pending) == (5, 1, 1, 3)
    assert found.seconds_left == pytest.approx(3 * (2 + 4 + 2) / 3 / 2)
    assert tally("ab", {}, feed=None).progress(1).seconds_left is None
    assert tally("c", states, feed=None).progress(1).seconds_left == 0.0

from __future__ import annotations

import pytest

from winml.modelkit.build_matrix.resume import Decision, FeedVersion, decide
from winml.modelkit.build_matrix.state import Build, CellState, Upload

FEED = "folder:f"
BUILT = Build("ok", "complete", 1.0, "t", digest="sha256:a")
FAILED = Build("failed", "quantize", 1.0, "t", error="no")
SENT = Upload("uploaded", FEED, "t", digest="sha256:a", reference="r1")
NOTHING = CellState()
LIVE, ABSENT, RESERVED, UNASKED = (
    FeedVersion("live"),
    FeedVersion("absent"),
    FeedVersion("reserved"),
    FeedVersion("not-asked"),
)


@pytest.mark.parametrize(
    ("state", "there", "is_here", "step"),
    [
        # Nothing is known here: the feed alone says whether there is anything to do.
        (NOTHING, ABSENT, False, "build"),
        (NOTHING, LIVE, False, "adopt"),
        (NOTHING, RESERVED, False, "refuse"),
        (NOTHING, UNASKED, False, "build"),
        # Built: published from here as long as the folder is what was built.
        (CellState(BUILT), ABSENT, True, "publish"),
        (CellState(BUILT), ABSENT, False, "build"),
        (CellState(BUILT), LIVE, True, "publish"),
        (CellState(BUILT), LIVE, False, "adopt"),
        (CellState(BUILT), UNASKED, True, "publish"),
        (CellState(BUILT), RESERVED, True, "refuse"),
        # Published: done, unless the feed says otherwise.
        (CellState(BUILT, SENT), LIVE, False, "done"),
        (CellState(BUILT, SENT), UNASKED, False, "done"),
        (CellState(BUILT, SENT), ABSENT, False, "build"),
        (CellState(BUILT, SENT), FeedVersion("live", "sha256:a", "r1"), False, "done"),
        (CellState(BUILT, SENT), FeedVersion("live", "sha256:b", "r2"), False, "refuse"),
        (CellState(BUILT, SENT), FeedVersion("damaged", problem="it lies"), False, "refuse"),
        # Failures are tried again.
        (CellState(FAILED), ABSENT, False, "build"),
        (CellState(BUILT, Upload("timeout", FEED, "t")), ABSENT, True, "publish"),
        (CellState(BUILT, Upload("failed", FEED, "t")), ABSENT, False, "build"),
        # Published elsewhere is not published here.
        (CellState(BUILT, Upload("uploaded", "folder:other", "t")), ABSENT, False, "build"),
    ],
)
def test_what_is_left_to_do(state: CellState, there: FeedVersion, is_here: bool, step: str) -> None:
    assert decide(state, there, feed=FEED, is_here=is_here).step == step


def test_without_a_feed_the_journal_and_the_folder_decide() -> None:
    def step(state: CellState, is_here: bool) -> str:
        return decide(state, UNASKED, feed=None, is_here=is_here).step

    assert step(NOTHING, False) == "build"
    assert step(CellState(BUILT), True) == "done"
    assert step(CellState(BUILT), False) == "build"
    assert step(CellState(FAILED), False) == "build"
    assert step(CellState(BUILT, SENT), False) == "done"


def test_a_moved_version_is_said_with_both_references() -> None:
    found = decide(CellState(BUILT, SENT), FeedVersion("live", "sha256:b", "r2"), feed=FEED, is_here=False)
    assert found == Decision("refuse", "another writer moved its version: r1 was published, the feed now has r2")

"""The next step for a cell, from the journal and the feed together."""

from __future__ import annotations

from typing import Literal

from winml.modelkit.build_matrix.state import CellState
from winml.modelkit.core.dataclass import dataclass

Step = Literal["done", "adopt", "publish", "build", "refuse"]
"""`adopt`: it is in the feed but not in this journal; `refuse`: it cannot be published from here."""


@dataclass(frozen=True)
class FeedVersion:
    """The state of a version in the feed; `reference` only where a version can move or is not in the journal."""

    state: Literal["live", "reserved", "absent", "damaged", "not-asked"]
    digest: str | None = None
    reference: str | None = None
    problem: str | None = None
    """What is wrong with a damaged one."""


@dataclass(frozen=True)
class Decision:
    """What to do, and why where that is not obvious."""

    step: Step
    reason: str | None = None


def decide(state: CellState, there: FeedVersion, *, feed: str | None, is_here: bool) -> Decision:
    """The next step for a cell; `is_here` means that its folder exists with the digest of the journal."""
    built = state.build is not None and state.build.status == "ok" and is_here
    if feed is None:
        # What an earlier run published is done as well, although its files are gone.
        gone = state.upload is not None and not state.has_failed
        return Decision("done" if built or gone else "build")
    published = state.is_published(feed)
    if there.state == "not-asked":
        return Decision("done") if published else Decision("publish" if built else "build")
    if there.state == "damaged":
        return Decision("refuse", there.problem)
    if there.state == "reserved":
        return Decision("refuse", "its version was deleted from the feed and stays reserved; use another `--run-stamp`")
    if there.state == "absent":
        reason = "it was published, but is no longer in the feed" if published else None
        return Decision("publish" if built else "build", reason)
    return _live(state, there, published=published, built=built)


def _live(state: CellState, there: FeedVersion, *, published: bool, built: bool) -> Decision:
    upload = state.upload
    if published and upload is not None:
        if there.reference is not None and upload.reference is not None and there.reference != upload.reference:
            moved = f"{upload.reference} was published, the feed now has {there.reference}"
            return Decision("refuse", f"another writer moved its version: {moved}")
        return Decision("done")
    if built:
        # The feed compares: the same content is accepted, different content is a conflict.
        return Decision("publish")
    return Decision("adopt", "it is already in the feed")

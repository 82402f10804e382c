"""What is left to do for a cell, from the journal and the feed together."""

from __future__ import annotations

from typing import Literal

from winml.modelkit.build_matrix.state import CellState
from winml.modelkit.core.dataclass import dataclass

Step = Literal["done", "adopt", "publish", "build", "refuse"]
"""`adopt`: it is in the feed and this journal does not know; `refuse`: nothing that is done here can publish it."""


@dataclass(frozen=True)
class FeedVersion:
    """What the feed says of a version; `reference` only where a version can be moved or was not known here."""

    state: Literal["live", "reserved", "absent", "damaged", "not-asked"]
    digest: str | None = None
    reference: str | None = None
    problem: str | None = None
    """What is wrong with a damaged one."""


@dataclass(frozen=True)
class Decision:
    """What to do, and why where that is not plain."""

    step: Step
    reason: str | None = None


def decide(state: CellState, there: FeedVersion, *, feed: str | None, is_here: bool) -> Decision:
    """What to do for a cell; `is_here` says that its folder is there with the digest of the journal."""
    built = state.build is not None and state.build.status == "ok" and is_here
    if feed is None:
        # What an earlier run published is done as well, though its files are not here any more.
        gone = state.upload is not None and not state.has_failed
        return Decision("done" if built or gone else "build")
    published = state.is_published(feed)
    if there.state == "not-asked":
        return Decision("done") if published else Decision("publish" if built else "build")
    if there.state == "damaged":
        return Decision("refuse", there.problem)
    if there.state == "reserved":
        return Decision("refuse", "its version was deleted from the feed and stays taken; use another `--run-stamp`")
    if there.state == "absent":
        reason = "it was published, but the feed does not have it any more" if published else None
        return Decision("publish" if built else "build", reason)
    return _live(state, there, published=published, built=built)


def _live(state: CellState, there: FeedVersion, *, published: bool, built: bool) -> Decision:
    upload = state.upload
    if published and upload is not None:
        if there.reference is not None and upload.reference is not None and there.reference != upload.reference:
            reason = (
                f"its version was moved by another writer: {upload.reference} was published, {there.reference} is there"
            )
            return Decision("refuse", reason)
        return Decision("done")
    if built:
        # The feed compares: the same content is there already, another one is a conflict.
        return Decision("publish")
    return Decision("adopt", "it is in the feed already")

"""The feed of a matrix: what it has of a run, and publishing a cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from winml.modelkit.build_matrix.plan import Cell
from winml.modelkit.build_matrix.resume import FeedVersion
from winml.modelkit.build_matrix.run_folder import MatrixFolder, now
from winml.modelkit.build_matrix.state import CellState, Upload, UploadStatus
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import UnavailableError
from winml.modelkit.core.events import OnEvent
from winml.modelkit.feed.base import (
    AlreadyThere,
    Conflict,
    Feed,
    Published,
    Rejected,
    Unavailable,
    is_proven,
)
from winml.modelkit.feed.content import FeedDamaged, scan

ABSENT = FeedVersion("absent")
NOT_ASKED = FeedVersion("not-asked")


def ask(feed: Feed, cells: Iterable[Cell], states: Mapping[str, CellState]) -> dict[str, FeedVersion]:
    """What the feed has of every cell; raises when it cannot be queried.

    A version is read only where that gives more than its existence: when it is not in the journal, or may have moved.
    """
    listed: dict[str, dict[str, str]] = {}
    found: dict[str, FeedVersion] = {}
    for cell in cells:
        if cell.package not in listed:
            listed[cell.package] = {item.version: item.state for item in feed.versions(cell.package) or ()}
        state = listed[cell.package].get(cell.version)
        if state is None:
            found[cell.version] = ABSENT
        elif state == "reserved":
            found[cell.version] = FeedVersion("reserved")
        else:
            found[cell.version] = _live(feed, cell, states.get(cell.version, CellState()))
    return found


def _live(feed: Feed, cell: Cell, state: CellState) -> FeedVersion:
    if state.is_published(feed.address) and not feed.versions_move:
        return FeedVersion("live")
    try:
        stored = feed.find(cell.package, cell.version)
    except FeedDamaged as error:  # the feed answers, so only this cell is affected
        return FeedVersion("damaged", problem=error.message)
    return ABSENT if stored is None else FeedVersion("live", stored.content.digest, stored.reference)


@dataclass(frozen=True)
class Publisher:
    """Publishes the folders of cells."""

    feed: Feed
    folder: MatrixFolder
    skip_existing: bool
    on_event: OnEvent

    def publish(self, cell: Cell) -> Upload:
        """How publishing ended; a feed that cannot be used raises, because every other cell would fail too."""
        tree = scan(self.folder.of(cell))
        outcome = self.feed.publish(cell.package, cell.version, tree, self.on_event)
        if isinstance(outcome, Unavailable):
            raise UnavailableError(outcome.reason, hint=outcome.hint)
        address = self.feed.address
        if isinstance(outcome, Published | AlreadyThere) and is_proven(outcome, tree.content.digest):
            return Upload("uploaded", address, now(), None, outcome.digest, outcome.reference, outcome.sent_bytes)
        if isinstance(outcome, Conflict):
            status: UploadStatus = "exists-skipped" if self.skip_existing else "failed"
            return Upload(status, address, now(), outcome.reason, outcome.digest)
        if isinstance(outcome, Rejected):
            return Upload("timeout" if outcome.timed_out else "failed", address, now(), outcome.reason)
        return Upload("failed", address, now(), "the feed answered with another digest than that of the folder")

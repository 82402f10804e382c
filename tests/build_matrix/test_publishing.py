from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from feed_zoo import StandInAz, filled, quiet
from winml.modelkit.build_matrix.models import MatrixModel
from winml.modelkit.build_matrix.plan import COMBOS, Cell, plan
from winml.modelkit.build_matrix.publishing import Publisher, ask
from winml.modelkit.build_matrix.resume import decide
from winml.modelkit.build_matrix.run_folder import MatrixFolder
from winml.modelkit.build_matrix.state import CellState
from winml.modelkit.core.errors import UnavailableError
from winml.modelkit.feed.azure import AzureFeed
from winml.modelkit.feed.base import Conflict, Published, Rejected, Unavailable
from winml.modelkit.feed.content import scan

ADDRESS = "azure:org/project/feed"
CELLS = plan([MatrixModel("m", "m")], COMBOS[:2], run_stamp="s")


@pytest.fixture
def folder(tmp_path: Path) -> MatrixFolder:
    for cell in CELLS:
        filled(tmp_path / "out" / cell.folder, model=cell.label.encode())
    return MatrixFolder(tmp_path / "out")


class Answering:
    """A feed that answers a publish with what it was told."""

    address = "folder:f"

    def __init__(self, outcome: Any) -> None:
        self._outcome = outcome

    def publish(self, *_: object) -> Any:
        return self._outcome


def _published(folder: MatrixFolder, feed: Any, cell: Cell = CELLS[0], *, skip: bool = False) -> Any:
    return Publisher(feed, folder, skip, quiet).publish(cell)


@pytest.mark.parametrize(
    ("outcome", "skip", "status"),
    [
        (Published("sha256:" + "0" * 64, "r", 1), False, "failed"),  # not the digest of the folder: proves nothing
        (Conflict("sha256:" + "0" * 64, "other content"), False, "failed"),
        (Conflict("sha256:" + "0" * 64, "other content"), True, "exists-skipped"),
        (Conflict(None, "not ours"), True, "exists-skipped"),
        (Rejected("no"), True, "failed"),
        (Rejected("slow", timed_out=True), False, "timeout"),
    ],
)
def test_only_the_digest_of_the_folder_counts_as_published(
    folder: MatrixFolder, outcome: Any, skip: bool, status: str
) -> None:
    upload = _published(folder, Answering(outcome), skip=skip)
    assert upload.status == status
    assert upload.error


def test_a_proven_digest_is_published_and_a_feed_that_cannot_be_used_raises(folder: MatrixFolder) -> None:
    digest = scan(folder.of(CELLS[0])).content.digest
    upload = _published(folder, Answering(Published(digest, "r", 5)))
    assert (upload.status, upload.reference, upload.sent_bytes) == ("uploaded", "r", 5)
    with pytest.raises(UnavailableError, match="no login") as caught:
        _published(folder, Answering(Unavailable("no login", "log in")))
    assert caught.value.hint == "log in"


def test_azure_an_az_that_hangs_is_ended_and_the_next_cell_is_published(az: StandInAz, folder: MatrixFolder) -> None:
    feed = AzureFeed(ADDRESS, "org", "project", "feed", transfer_timeout_s=5.0)
    az.mood("hang")
    assert _published(folder, feed).status == "timeout"
    az.mood("")
    assert _published(folder, feed, CELLS[1]).status == "uploaded"
    found = ask(feed, CELLS, {})
    assert [found[cell.version].state for cell in CELLS] == ["absent", "live"]


def test_azure_a_publish_that_came_through_before_az_hung_is_published(az: StandInAz, folder: MatrixFolder) -> None:
    az.mood("hang-after")
    feed = AzureFeed(ADDRESS, "org", "project", "feed", transfer_timeout_s=5.0)
    assert _published(folder, feed).status == "uploaded"


def test_azure_a_deleted_version_is_not_built_again_for_it_stays_taken(az: StandInAz, folder: MatrixFolder) -> None:
    feed = AzureFeed.at(ADDRESS)
    _published(folder, feed)
    (az.folder / "feed" / CELLS[0].package / CELLS[0].version / ".deleted").touch()
    there = ask(feed, CELLS[:1], {})[CELLS[0].version]
    decision = decide(CellState(), there, feed=ADDRESS, is_here=False)
    assert decision.step == "refuse"
    assert "another `--run-stamp`" in (decision.reason or "")


def test_a_feed_that_cannot_be_asked_raises(az: StandInAz) -> None:
    az.mood("conflict")
    with pytest.raises(UnavailableError):
        ask(AzureFeed.at(ADDRESS), CELLS, {})

"""The folder feed: what versions share, what it refuses to be, what a deletion leaves."""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path

import pytest

from feed_zoo import contents, filled, quiet
from winml.modelkit.core.errors import RequestError, UnavailableError
from winml.modelkit.feed.base import AlreadyThere, Conflict, Published, Unavailable
from winml.modelkit.feed.content import FeedDamaged, scan
from winml.modelkit.feed.folder import GRACE_S, FolderFeed
from winml.modelkit.feed.table import open_feed


def _feed(tmp_path: Path) -> FolderFeed:
    return FolderFeed.at(f"folder:{tmp_path / 'feed'}")


def _objects(tmp_path: Path) -> list[Path]:
    return [path for path in (tmp_path / "feed" / "objects").rglob("*") if path.is_file()]


def test_versions_share_the_files_they_have_in_common(tmp_path: Path) -> None:
    feed = _feed(tmp_path)
    feed.publish("m", "0.0.0-1-m", scan(filled(tmp_path / "a", model=b"m" * 100, one=b"1")), quiet)
    outcome = feed.publish("n", "0.0.0-1-n", scan(filled(tmp_path / "b", model=b"m" * 100, two=b"2")), quiet)
    assert isinstance(outcome, Published)
    assert outcome.sent_bytes == 1
    assert len(_objects(tmp_path)) == 3


def test_a_folder_with_other_files_never_becomes_a_feed(tmp_path: Path) -> None:
    filled(tmp_path / "feed", mine=b"mine")
    tree = scan(filled(tmp_path / "a", m=b"m"))
    with pytest.raises(RequestError, match="is not a feed"):
        _feed(tmp_path).publish("m", "0.0.0-1-m", tree, quiet)
    assert contents(tmp_path / "feed") == {"mine.bin": b"mine"}


def test_a_package_named_like_a_device_of_windows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="package `nul` cannot be stored in a folder"):
        _feed(tmp_path).publish("nul", "0.0.0-1-m", scan(filled(tmp_path / "a", m=b"m")), quiet)


def test_a_folder_that_is_not_there_is_not_an_empty_feed(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="no feed in folder"):
        _feed(tmp_path).versions("m")


def test_a_full_disk_publishes_nothing(small_disk: Path, tmp_path: Path) -> None:
    tree = scan(filled(tmp_path / "a", m=secrets.token_bytes(2 << 20)))
    feed = FolderFeed.at(f"folder:{small_disk / 'feed'}")
    outcome = feed.publish("m", "0.0.0-1-m", tree, quiet)
    assert isinstance(outcome, Unavailable)
    assert "disk full" in outcome.reason
    assert feed.find("m", "0.0.0-1-m") is None


def test_a_damaged_list_of_files_is_an_error_and_not_absent(tmp_path: Path) -> None:
    feed = _feed(tmp_path)
    feed.publish("m", "0.0.0-1-m", scan(filled(tmp_path / "a", m=b"m")), quiet)
    (tmp_path / "feed/packages/m/0.0.0-1-m.json").write_bytes(b"{")
    with pytest.raises(FeedDamaged):
        feed.find("m", "0.0.0-1-m")


def test_pushing_again_heals_what_a_verification_set_aside(tmp_path: Path) -> None:
    feed = _feed(tmp_path)
    tree = scan(filled(tmp_path / "a", m=b"m"))
    feed.publish("m", "0.0.0-1-m", tree, quiet)
    (file,) = _objects(tmp_path)
    file.unlink()
    file.write_bytes(b"x")
    stored = feed.find("m", "0.0.0-1-m")
    assert stored is not None
    assert feed.verify(stored, quiet).damaged == ("m.bin",)
    outcome = feed.publish("m", "0.0.0-1-m", tree, quiet)
    assert isinstance(outcome, AlreadyThere)
    assert outcome.sent_bytes == 1
    assert feed.verify(stored, quiet).damaged == ()


@pytest.mark.not_wine(
    "its GetFileType, which Python's stat calls, moves the access time of a file to now; on Windows that is when it "
    "was last read from or written to (Win32, File Times)"
)
def test_a_deletion_removes_files_that_nothing_names_once_nobody_can_be_using_them(tmp_path: Path) -> None:
    feed = _feed(tmp_path)
    feed.publish("m", "0.0.0-1-m", scan(filled(tmp_path / "a", model=b"m", one=b"1")), quiet)
    feed.publish("m", "0.0.0-2-m", scan(filled(tmp_path / "b", model=b"m", two=b"2")), quiet)
    feed.delete("m", "0.0.0-1-m")
    assert len(_objects(tmp_path)) == 3
    long_ago = time.time() - 2 * GRACE_S
    for path in _objects(tmp_path):
        os.utime(path, (long_ago, long_ago))
    feed.publish("m", "0.0.0-3-m", scan(filled(tmp_path / "c", three=b"3")), quiet)
    feed.delete("m", "0.0.0-3-m")
    assert sorted(path.read_bytes() for path in _objects(tmp_path)) == [b"2", b"3", b"m"]


def test_of_two_that_publish_other_content_one_wins(tmp_path: Path) -> None:
    feed = _feed(tmp_path)
    first, second = (scan(filled(tmp_path / name, m=name.encode())) for name in "ab")

    def overtake(event: dict[str, object]) -> None:
        feed.publish("m", "0.0.0-1-m", second, quiet)

    outcome = feed.publish("m", "0.0.0-1-m", first, overtake)
    assert isinstance(outcome, Conflict)
    assert outcome.digest == second.content.digest


def test_a_plain_path_is_a_folder_and_other_schemes_are_unknown(tmp_path: Path) -> None:
    assert isinstance(open_feed(str(tmp_path / "x")), FolderFeed)
    assert isinstance(open_feed("C:\\feed"), FolderFeed)
    for address in ("ftp://host/x", "http://host/x", "ocl://host/x", "", "  "):
        with pytest.raises(RequestError, match="unknown kind of feed"):
            open_feed(address)
    with pytest.raises(RequestError, match="names no folder"):
        open_feed("folder:")


def test_a_version_that_somebody_else_deletes_meanwhile_does_not_stop_a_deletion(tmp_path: Path) -> None:
    feed = _feed(tmp_path)
    feed.publish("m", "0.0.0-1-m", scan(filled(tmp_path / "a", model=b"m")), quiet)
    # Listed and not there any more when it is read, as in the moment after another deletion.
    (feed.root / "packages" / "m" / "0.0.0-2-m.json").symlink_to(tmp_path / "gone")
    feed.delete("m", "0.0.0-1-m")
    assert feed.find("m", "0.0.0-1-m") is None


def test_a_folder_that_somebody_makes_meanwhile_is_a_feed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder appears between two questions about it, and its marker a moment later."""
    feed = _feed(tmp_path)
    before = Path.is_dir

    def is_dir(path: Path) -> bool:
        answer = before(path)
        if path == feed.root:
            path.mkdir(parents=True, exist_ok=True)
        return answer

    monkeypatch.setattr(Path, "is_dir", is_dir)
    feed.check()


@pytest.mark.parametrize("address", ["oci://me:pw@host/models", "ftp://me:pw@host/x", "oci+http://pw@h:1/m"])
def test_a_login_in_an_address_is_refused_and_not_shown(address: str) -> None:
    with pytest.raises(RequestError, match="must not contain a user name or password") as caught:
        open_feed(address)
    assert "pw" not in caught.value.message

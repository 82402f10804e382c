"""What every feed must keep, on a real folder, a real registry and the stand-in for `az`."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from feed_zoo import contents, filled, quiet
from winml.modelkit.core.errors import RequestError, UnavailableError
from winml.modelkit.feed.base import (
    AlreadyThere,
    Conflict,
    Feed,
    NotPublished,
    Published,
    PublishOutcome,
    Rejected,
    Stored,
    Unavailable,
    is_proven,
)
from winml.modelkit.feed.content import FeedDamaged, Tree, scan
from winml.modelkit.feed.table import FEEDS, open_feed

pytestmark = pytest.mark.usefixtures("no_logins")
KINDS = ["folder", pytest.param("oci", marks=pytest.mark.registry), "azure"]


@dataclass
class Place:
    """A feed under test: how it is reached, how its storage is damaged, and an address where nothing answers."""

    address: str
    dead_address: str
    storage: Any

    @cached_property
    def feed(self) -> Feed:
        return open_feed(self.address)

    def damage(self, stored: Stored, path: str) -> None:
        name = stored.content.files[path].digest
        if self.address.startswith("folder:"):
            file = self.storage / "objects" / name[7:9] / name[9:]
        elif self.address.startswith("oci:"):
            file = self.storage.blob_file(name)
        else:
            file = self.storage.folder / "feed" / stored.package / stored.version / path
        raw = bytearray(file.read_bytes())
        raw[0] ^= 1
        file.unlink()
        file.write_bytes(raw)


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    made = _place(request, tmp_path)
    yield made
    made.feed.close()


def _place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "folder":
        (tmp_path / "file").touch()
        return Place(f"folder:{tmp_path / 'feed'}", f"folder:{tmp_path / 'file' / 'feed'}", tmp_path / "feed")
    if request.param == "oci":
        server = request.getfixturevalue("registry")
        return Place(f"{server.address}/{secrets.token_hex(4)}", "oci://127.0.0.1:9/models", server)
    az = request.getfixturevalue("az")
    return Place("azure:org/project/feed", "azure:org/project/gone", az)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Nested names, an empty file, one content twice, a name that is not ASCII; the registry saw none of it before."""
    twice = secrets.token_bytes(3000)
    files = {"model": twice, "qnn_npu__model": secrets.token_bytes(5000), "a__b__c": twice, "none": b""}
    folder = filled(tmp_path / "source", **files)
    (folder / "größe.txt").write_bytes(b"g")
    return scan(folder)


def _publish(place: Place, tree: Tree, version: str = "0.0.0-1-m") -> PublishOutcome:
    return place.feed.publish("m", version, tree, quiet)


def _stored(place: Place, version: str = "0.0.0-1-m") -> Stored:
    found = place.feed.find("m", version)
    assert found is not None
    return found


def _fetch(place: Place, into: Path, pattern: str = "**", **options: Any) -> Any:
    stored = _stored(place)
    chosen = {"overwrite": False, "on_event": quiet, **options}
    return place.feed.fetch(stored, into, only=stored.content.select(pattern), **chosen)


def test_the_suite_covers_every_row_of_the_table() -> None:
    assert {prefix.partition(":")[0] for prefix in FEEDS} == {"folder", "oci", "oci+http", "azure"}


def test_what_was_published_is_found_listed_and_fetched_as_it_was(place: Place, tree: Tree, tmp_path: Path) -> None:
    place.feed.check()
    outcome = _publish(place, tree)
    assert isinstance(outcome, Published)
    assert is_proven(outcome, tree.content.digest)
    stored = _stored(place)
    assert (stored.content, stored.reference) == (tree.content, outcome.reference)
    assert [(v.version, v.state) for v in place.feed.versions("m") or ()] == [("0.0.0-1-m", "live")]
    assert place.feed.packages() == ("m",)
    fetched = _fetch(place, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tree.root)
    assert fetched.files == tuple(sorted(tree.content.files))
    assert fetched.received_bytes + fetched.kept_bytes == tree.content.bytes


def test_publishing_again_finds_it_there_and_other_content_conflicts(place: Place, tree: Tree, tmp_path: Path) -> None:
    _publish(place, tree)
    again = _publish(place, tree)
    assert isinstance(again, AlreadyThere)
    assert is_proven(again, tree.content.digest)
    other = scan(filled(tmp_path / "other", model=b"other"))
    clash = _publish(place, other)
    assert isinstance(clash, Conflict)
    assert clash.digest == tree.content.digest
    assert not is_proven(clash, other.content.digest)
    assert _stored(place).content == tree.content


def test_a_renamed_file_is_other_content(place: Place, tmp_path: Path) -> None:
    _publish(place, scan(filled(tmp_path / "a", one=b"x")))
    assert isinstance(_publish(place, scan(filled(tmp_path / "b", two=b"x"))), Conflict)


def test_absent_is_none_and_not_an_error(place: Place, tree: Tree) -> None:
    _publish(place, tree)
    assert place.feed.versions("other") is None
    assert place.feed.find("other", "0.0.0-1-m") is None
    assert place.feed.find("m", "0.0.0-2-m") is None


def test_one_file_is_fetched_alone_with_its_path(place: Place, tree: Tree, tmp_path: Path) -> None:
    _publish(place, tree)
    fetched = _fetch(place, tmp_path / "out", "qnn_npu/model*")
    assert fetched.files == ("qnn_npu/model.bin",)
    assert contents(tmp_path / "out") == {"qnn_npu/model.bin": (tree.root / "qnn_npu/model.bin").read_bytes()}


def test_fetching_again_moves_nothing(place: Place, tree: Tree, tmp_path: Path) -> None:
    _publish(place, tree)
    _fetch(place, tmp_path / "out")
    (tmp_path / "out" / "model.bin").unlink()
    assert _fetch(place, tmp_path / "out").received_bytes == 3000
    assert _fetch(place, tmp_path / "out").received_bytes == 0


def test_other_content_in_the_way_is_replaced_only_when_told(place: Place, tree: Tree, tmp_path: Path) -> None:
    _publish(place, tree)
    filled(tmp_path / "out", model=b"mine")
    with pytest.raises(RequestError, match="different content"):
        _fetch(place, tmp_path / "out")
    assert contents(tmp_path / "out") == {"model.bin": b"mine"}
    _fetch(place, tmp_path / "out", overwrite=True)
    assert contents(tmp_path / "out") == contents(tree.root)


def test_damage_is_found_and_never_delivered(place: Place, tree: Tree, tmp_path: Path) -> None:
    _publish(place, tree)
    clean = place.feed.verify(_stored(place), quiet)
    assert (clean.files, clean.bytes, clean.damaged) == (5, tree.content.bytes, ())
    place.damage(_stored(place), "qnn_npu/model.bin")
    with pytest.raises(FeedDamaged, match=r"qnn_npu/model\.bin"):
        _fetch(place, tmp_path / "out")
    assert [p for p in contents(tmp_path / "out") if not p.startswith(".winml-pull/")] == []
    assert place.feed.verify(_stored(place), quiet).damaged == ("qnn_npu/model.bin",)
    assert _fetch(place, tmp_path / "rest", "model.bin").files == ("model.bin",)


def test_a_file_that_changed_since_it_was_read_is_rejected(place: Place, tree: Tree) -> None:
    (tree.root / "model.bin").write_bytes(b"n" * 3000)
    (tree.root / "a/b/c.bin").write_bytes(b"n" * 3000)
    assert isinstance(_publish(place, tree), Rejected)
    assert place.feed.find("m", "0.0.0-1-m") is None


def test_a_file_that_shrank_since_it_was_read_is_rejected(place: Place, tree: Tree) -> None:
    (tree.root / "qnn_npu/model.bin").write_bytes(b"q" * 10)
    outcome = _publish(place, tree)
    assert isinstance(outcome, Rejected)
    assert "changed while it was being published" in outcome.reason


def test_a_feed_that_cannot_be_asked_is_unavailable_and_never_empty(place: Place, tree: Tree) -> None:
    feed = open_feed(place.dead_address)
    outcome = feed.publish("m", "0.0.0-1-m", tree, quiet)
    assert isinstance(outcome, Unavailable)
    assert not is_proven(outcome, tree.content.digest)
    for question in (feed.check, feed.packages, lambda: feed.versions("m"), lambda: feed.find("m", "0.0.0-1-m")):
        with pytest.raises(UnavailableError) as caught:
            question()
        assert caught.value.exit_code == 3


def test_many_versions_are_all_listed(place: Place, tmp_path: Path) -> None:
    tree = scan(filled(tmp_path / "t", m=b"m"))
    count = 3 if place.address.startswith("azure") else 30
    wanted = [f"0.0.0-{n}-m" for n in range(count)]
    for version in wanted:
        assert isinstance(_publish(place, tree, version), Published)
    assert [v.version for v in place.feed.versions("m") or ()] == sorted(wanted)


def test_two_that_publish_one_content_at_once_both_have_it(place: Place, tree: Tree) -> None:
    outcomes: list[PublishOutcome] = []
    threads = [threading.Thread(target=lambda: outcomes.append(_publish(place, tree))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [is_proven(outcome, tree.content.digest) for outcome in outcomes] == [True] * 3


def test_a_version_is_deleted_alone_or_the_feed_says_that_it_cannot(place: Place, tree: Tree, tmp_path: Path) -> None:
    _publish(place, tree)
    _publish(place, tree, "0.0.0-2-m")
    if not place.feed.can_delete:
        with pytest.raises(UnavailableError, match="does not allow versions to be deleted"):
            place.feed.delete("m", "0.0.0-2-m")
        return
    place.feed.delete("m", "0.0.0-2-m")
    assert place.feed.find("m", "0.0.0-2-m") is None
    assert place.feed.verify(_stored(place), quiet).damaged == ()
    with pytest.raises(NotPublished):
        place.feed.delete("m", "0.0.0-2-m")


def test_a_full_disk_is_exit_3_and_the_fetch_goes_on_later(place: Place, small_disk: Path, tmp_path: Path) -> None:
    big = scan(filled(tmp_path / "big", first=secrets.token_bytes(400_000), second=secrets.token_bytes(900_000)))
    _publish(place, big)
    with pytest.raises(UnavailableError, match="disk full"):
        _fetch(place, small_disk / "out")
    assert not [p for p in contents(small_disk / "out") if not p.startswith(".winml-pull/")]
    assert _fetch(place, small_disk / "out", "first*").kept_bytes == 400_000

"""The Azure feed against a stand-in `az` that behaves as the real one was seen to."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

import psutil
import pytest

from ctrl_c import press_ctrl_c, start
from feed_zoo import StandInAz, contents, filled, quiet
from winml.modelkit.core.errors import RequestError, UnavailableError
from winml.modelkit.feed.azure import CONTENT, AzureFeed
from winml.modelkit.feed.base import AlreadyThere, Conflict, Published, Rejected, Unavailable
from winml.modelkit.feed.content import FeedDamaged, Tree, scan

pytestmark = pytest.mark.usefixtures("no_logins")
VERSION = "0.0.0-20260609-qnn-npu-m"


@pytest.fixture
def feed(az: StandInAz) -> AzureFeed:
    return AzureFeed.at("azure:org/project/feed")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return scan(filled(tmp_path / "409 already exists invalid_grant", model=b"m" * 100, sub__data=b"d"))


def _hasty(**options: float) -> AzureFeed:
    return AzureFeed("azure:org/project/feed", "org", "project", "feed", **options)


def test_a_version_is_published_with_scope_and_its_list_of_files(az: StandInAz, feed: AzureFeed, tree: Tree) -> None:
    outcome = feed.publish("m", VERSION, tree, quiet)
    assert outcome == Published(tree.content.digest, f"m@{VERSION}", None)
    assert set(contents(az.folder / "feed" / "m" / VERSION)) == {*tree.content.files, CONTENT}
    call = az.calls[0]
    assert call.startswith("artifacts universal publish --organization https://dev.azure.com/org --project project")
    assert "--scope project --feed feed --name m" in call
    assert [p.name for p in tree.root.parent.iterdir() if p.name.startswith(".winml")] == []


@pytest.mark.parametrize(
    ("mood", "message", "hint"),
    [
        ("logged-out", "az login", "run `az login`"),
        ("no-extension", "no extension `azure-devops`", "az extension add"),
        ("invalid-grant", "invalid_grant", "run `az login`"),
        ("conflict", "Conflict", None),
        ("garbled", "did not answer with JSON", None),
    ],
)
def test_the_check_up_front_is_exit_3_with_the_next_step(
    az: StandInAz, feed: AzureFeed, mood: str, message: str, hint: str | None
) -> None:
    feed.check()
    az.mood(mood)
    with pytest.raises(UnavailableError, match=message) as caught:
        feed.check()
    assert caught.value.exit_code == 3
    assert hint is None or hint in (caught.value.hint or "")


def test_the_extension_is_installed_only_when_the_user_agrees(az: StandInAz, feed: AzureFeed) -> None:
    az.mood("no-extension")
    with pytest.raises(UnavailableError, match="no extension") as caught:
        feed.check()
    assert "--install-extension" in (caught.value.hint or "")
    assert not any(call.startswith("extension add") for call in az.calls)
    feed.install_extension = True
    feed.check()
    assert any(call.startswith("extension add --name azure-devops --yes") for call in az.calls)


def test_without_az_the_way_to_get_it_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError, match="not on PATH") as caught:
        AzureFeed.at("azure:org/project/feed").check()
    assert "az login" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("mood", "outcome"),
    [
        ("logged-out", Unavailable),
        ("invalid-grant", Unavailable),
        ("wants-more", Unavailable),
        ("tool 19", Unavailable),
        ("tool 20", Rejected),
        ("tool 1", Rejected),
        ("refreshing", Rejected),
        ("ctrl-c", Rejected),
    ],
)
def test_a_login_stops_everything_and_other_failures_only_this_version(
    az: StandInAz, feed: AzureFeed, tree: Tree, mood: str, outcome: type
) -> None:
    az.mood(mood)
    assert isinstance(feed.publish("m", VERSION, tree, quiet), outcome)
    az.mood("")
    assert feed.find("m", VERSION) is None


def test_return_code_17_is_compared_by_content_and_never_by_words(
    az: StandInAz, feed: AzureFeed, tree: Tree, tmp_path: Path
) -> None:
    feed.publish("m", VERSION, tree, quiet)
    assert isinstance(feed.publish("m", VERSION, tree, quiet), AlreadyThere)
    other = scan(filled(tmp_path / "other", model=b"other"))
    assert feed.publish("m", VERSION, other, quiet) == Conflict(
        tree.content.digest, f"version `{VERSION}` already exists with different content"
    )
    az.mood("foreign")
    taken = feed.publish("m", VERSION, tree, quiet)
    assert isinstance(taken, Conflict)
    assert taken.digest is None


def test_a_deleted_version_is_reserved_and_cannot_be_published_again(
    az: StandInAz, feed: AzureFeed, tree: Tree
) -> None:
    feed.publish("m", VERSION, tree, quiet)
    (az.folder / "feed" / "m" / VERSION / ".deleted").touch()
    assert [(v.version, v.state) for v in feed.versions("m") or ()] == [(VERSION, "reserved")]
    assert feed.find("m", VERSION) is None
    outcome = feed.publish("m", VERSION, tree, quiet)
    assert isinstance(outcome, Rejected)
    assert "reserved" in outcome.reason


def _gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def _hanging(az: StandInAz) -> list[int]:
    return [int(pid) for pid in (az.folder / "hanging").read_text().split()]


HASTE_S = 15.0 if sys.platform == "win32" else 1.5
"""Long enough for a stand-in to start, which takes seconds under Wine."""


def test_an_az_that_hangs_is_ended_with_its_children_and_the_feed_is_asked(az: StandInAz, tree: Tree) -> None:
    az.mood("hang")
    outcome = _hasty(transfer_timeout_s=HASTE_S).publish("m", VERSION, tree, quiet)
    assert outcome == Rejected(f"`az` took longer than {HASTE_S:g} s and was stopped", timed_out=True)
    assert [_gone(pid) for pid in _hanging(az)] == [True, True]
    assert az.calls[-1].startswith("rest ")
    az.mood("")
    assert isinstance(_hasty().publish("m", VERSION, tree, quiet), Published)


def test_a_publish_that_came_through_before_it_was_ended_counts(az: StandInAz, tree: Tree) -> None:
    az.mood("hang-after")
    assert isinstance(_hasty(transfer_timeout_s=HASTE_S).publish("m", VERSION, tree, quiet), Published)


def test_a_feed_that_cannot_be_asked_after_a_timeout_is_unavailable(az: StandInAz, tree: Tree) -> None:
    az.mood("mute")
    outcome = _hasty(transfer_timeout_s=HASTE_S, ask_timeout_s=HASTE_S).publish("m", VERSION, tree, quiet)
    assert isinstance(outcome, Unavailable)
    assert [call.split()[0] for call in az.calls] == ["artifacts", "rest"]


INTERRUPTED = """
import sys
from pathlib import Path
from winml.modelkit.feed.azure import AzureFeed
from winml.modelkit.feed.content import scan
try:
    AzureFeed.at("azure:org/project/feed").publish("m", "0.0.0-1-m", scan(Path(sys.argv[1])), lambda _: None)
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_ctrl_c_ends_az_and_what_it_started(az: StandInAz, tree: Tree) -> None:
    az.mood("hang")
    with start([sys.executable, "-c", INTERRUPTED, str(tree.root)], env=dict(os.environ)) as program:
        while not (az.folder / "hanging").exists() or len(_hanging(az)) < 2:
            assert program.poll() is None
            time.sleep(0.05)
        press_ctrl_c(program)
        program.communicate(timeout=60)
        assert program.returncode == 130
    assert [_gone(pid) for pid in _hanging(az)] == [True, True]
    assert [p.name for p in tree.root.parent.iterdir() if p.name.startswith(".winml")] == []


def test_pages_that_are_shorter_than_asked_for_are_not_the_last(az: StandInAz, feed: AzureFeed, tree: Tree) -> None:
    feed.publish("m", VERSION, tree, quiet)
    made = az.folder / "feed" / "m"
    wanted = [f"0.0.0-{number}-m" for number in range(5)]
    for version in wanted:
        shutil.copytree(made / VERSION, made / version)
    for name in ("a", "b", "c", "n"):
        (az.folder / "feed" / name).mkdir()
    az.mood("cut")
    assert [v.version for v in feed.versions("m") or ()] == sorted([VERSION, *wanted])
    assert feed.packages() == ("a", "b", "c", "m", "n")
    assert not any("&" in call for call in az.calls)
    assert any("$top=1000 $skip=4" in call for call in az.calls)


def test_a_few_files_are_asked_for_by_name(az: StandInAz, feed: AzureFeed, tree: Tree, tmp_path: Path) -> None:
    feed.publish("m", VERSION, tree, quiet)
    stored = feed.find("m", VERSION)
    assert stored is not None
    only = stored.content.select("sub/*")
    feed.fetch(stored, tmp_path / "out", only=only, overwrite=False, on_event=quiet)
    assert contents(tmp_path / "out") == {"sub/data.bin": b"d"}
    assert "--file-filter sub/data.bin" in az.calls[-1]
    count = len(az.calls)
    feed.fetch(stored, tmp_path / "out", only=only, overwrite=False, on_event=quiet)
    assert len(az.calls) == count


def test_other_bytes_than_were_published_are_never_delivered(
    az: StandInAz, feed: AzureFeed, tree: Tree, tmp_path: Path
) -> None:
    feed.publish("m", VERSION, tree, quiet)
    stored = feed.find("m", VERSION)
    assert stored is not None
    az.mood("lies")
    with pytest.raises(FeedDamaged):
        feed.fetch(stored, tmp_path / "out", only=stored.content, overwrite=False, on_event=quiet)
    assert feed.verify(stored, quiet).damaged == tuple(sorted(tree.content.files))


def test_a_file_with_the_name_of_the_list_is_rejected(feed: AzureFeed, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / CONTENT).write_bytes(b"{}")
    assert isinstance(feed.publish("m", VERSION, scan(tmp_path / "t"), quiet), Rejected)


@pytest.mark.parametrize("address", ["azure:", "azure:org/project", "azure:a/b/c/d", "azure:a//c", "azure:a/b&c/d"])
def test_malformed_addresses_are_wrong_requests(address: str) -> None:
    with pytest.raises(RequestError, match="not an address of an Azure feed"):
        AzureFeed.at(address)

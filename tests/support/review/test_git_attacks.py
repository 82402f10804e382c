"""A contribution whose author wants the reviewer's git to work for them: nothing runs, nothing is written."""

from __future__ import annotations

import contextlib
import os
import shutil
import tracemalloc
from pathlib import Path

import pytest

import git_attack_zoo as zoo
from winml.modelkit.core.errors import CheckFailed, RequestError
from winml.modelkit.store import digest
from winml.modelkit.support.review import git_copy, repository
from winml.modelkit.support.review.command import NoContribution, ReviewRequest, ReviewResult, review
from winml.modelkit.support.review.embedded import repositories_inside

pytestmark = [
    pytest.mark.xdist_group("support"),
    pytest.mark.posix("the marks are left by shell scripts"),
]

INSIDE = (
    "bare_in_the_contribution", "bare_deep_in_the_contribution", "bare_by_common_folder", "file_in_the_contribution",
    "folder_in_the_contribution",
)  # fmt: skip
ANSWERED = (
    "bare_in_the_contribution", "bare_deep_in_the_contribution", "bare_above_the_contribution",
    "bare_by_common_folder", "file_monitor", "text_conversion", "submodule", "aliases_and_pagers",
    "program_in_the_folder",
)  # fmt: skip
"""What is harmless without the author's settings, and is told as ever."""


@pytest.fixture
def pull_request(tmp_path: Path) -> zoo.Attack:
    return zoo.pull_request(tmp_path)


@pytest.mark.parametrize("how", zoo.ATTACKS)
def test_git_runs_and_writes_nothing_for_the_author(
    how: str, pull_request: zoo.Attack, monkeypatch: pytest.MonkeyPatch
) -> None:
    attack = zoo.ATTACKS[how](pull_request)
    before = zoo.files_of(attack.place.parent)
    for name, value in attack.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(attack.folder)
    # Also where a repository inside the contribution is refused before git is asked.
    refused = (repository.NotAsked, RequestError)
    with contextlib.nullcontext() if how in ANSWERED else pytest.raises(refused):
        repository.find_change(attack.folder, attack.repo, None)
    assert not attack.mark.exists(), attack.mark.read_text()
    assert zoo.files_of(attack.place.parent) == before
    assert bool(list(repositories_inside(attack.folder))) == (how in INSIDE)


@pytest.mark.parametrize("how", INSIDE)
def test_a_repository_inside_a_contribution_is_refused_before_anything_is_read(
    how: str, pull_request: zoo.Attack
) -> None:
    attack = zoo.ATTACKS[how](pull_request)
    (attack.folder / "contribution.json").write_bytes(b"not even read")
    with pytest.raises(RequestError, match="a contribution must not contain any") as caught:
        review(ReviewRequest(str(attack.folder)), lambda event: None)
    assert isinstance(caught.value.result, NoContribution)
    assert not attack.mark.exists()


@pytest.mark.parametrize("how", ["missing_file", "bare_above_the_contribution"])
def test_a_whole_review_runs_nothing_for_the_author(how: str, contribution: Path, pull_request: zoo.Attack) -> None:
    attack = zoo.ATTACKS[how](pull_request)
    shutil.rmtree(attack.folder)
    shutil.copytree(contribution, attack.folder)
    with pytest.raises(CheckFailed, match="the model cannot be read") as caught:
        review(ReviewRequest(str(attack.folder), model="gone.onnx"), lambda event: None)
    assert isinstance(caught.value.result, ReviewResult)
    assert caught.value.result.scope.asked == (how != "missing_file")
    assert not attack.mark.exists(), attack.mark.read_text()


def test_files_come_before_git(contribution: Path, pull_request: zoo.Attack) -> None:
    shutil.rmtree(pull_request.folder)
    shutil.copytree(contribution, pull_request.folder)
    (pull_request.folder / "more.txt").write_bytes(b"")
    with pytest.raises(CheckFailed, match="not in the list of files") as caught:
        review(ReviewRequest(str(pull_request.folder)), lambda event: None)
    assert isinstance(caught.value.result, ReviewResult)
    assert str(caught.value.result.scope.reason).startswith("the files do not match the contribution")


@pytest.mark.parametrize(
    "name", [".git", ".GIT", ".Git ", ".git.", "git~1", "GIT~2", ".git::$INDEX_ALLOCATION", ".g\u200cit", ".git\ufeff"]
)
def test_other_spellings_of_a_repository_are_found(name: str, tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert list(repositories_inside(tmp_path)) == []
    (tmp_path / "a" / "b" / name).write_bytes(b"gitdir: x")
    assert list(repositories_inside(tmp_path)) == [f"a/b/{name}"]


def test_replaced_objects_and_grafts_are_not_believed(pull_request: zoo.Attack) -> None:
    place = pull_request.place
    (place / "other").write_bytes(b"harmless\n")
    other = zoo.git(place, "hash-object", "-w", "other")
    zoo.git(place, "replace", zoo.git(place, "rev-parse", f"HEAD:{zoo.CHANGED}"), other)
    (place / ".git" / "info").mkdir(exist_ok=True)
    (place / ".git" / "info" / "grafts").write_text(f"{zoo.git(place, 'rev-parse', 'main')} {'1' * 40}\n")
    assert repository.find_change(place, None, None).files == {zoo.CHANGED: digest.of_bytes(zoo.CONTENT)}


@pytest.mark.parametrize("kind", ["packed", "sha256", "worktree", "shallow", "detached"])
def test_repositories_of_every_kind_are_told_alike(kind: str, pull_request: zoo.Attack) -> None:
    place = pull_request.place
    if kind == "packed":
        zoo.git(place, "repack", "-q", "-a", "-d")
        zoo.git(place, "pack-refs", "--all")
    elif kind == "sha256":
        shutil.rmtree(place / ".git")
        zoo.git(place, "init", "-q", "-b", "main", "--object-format=sha256")
        zoo.git(place, "commit", "-q", "--allow-empty", "-m", "first")
        zoo.git(place, "switch", "-q", "-c", "change")
        zoo.git(place, "add", zoo.CHANGED)
        zoo.git(place, "commit", "-q", "-m", "change")
    elif kind == "worktree":
        zoo.git(place, "switch", "-q", "main")
        zoo.git(place, "worktree", "add", "-q", "../tree", "change")
        place = place.parent / "tree"
    elif kind == "shallow":
        zoo.git(place.parent, "clone", "-q", "--depth", "2", "--no-single-branch", f"file://{place}", "clone")
        place = place.parent / "clone"
    else:
        zoo.git(place, "switch", "-q", "--detach")
    found = repository.find_change(place / "src", None, None)
    assert found.files == {zoo.CHANGED: digest.of_bytes(zoo.CONTENT)}
    assert (found.repository, len(found.head)) == (place, 64 if kind == "sha256" else 40)


def test_a_pipe_or_a_link_in_a_repository_is_not_read(pull_request: zoo.Attack) -> None:
    names = pull_request.git / "refs" / "heads"
    os.mkfifo(names / "pipe")
    (names / "link").symlink_to("/etc/passwd")
    assert repository.find_change(pull_request.place, None, None).base == "main"
    (pull_request.git / "packed-refs").symlink_to("/etc/passwd")
    with pytest.raises(repository.NotAsked, match="is not a file"):
        repository.find_change(pull_request.place, None, None)
    (pull_request.git / "packed-refs").unlink()
    (pull_request.git / "objects").rename(pull_request.place / "elsewhere")
    (pull_request.git / "objects").symlink_to("../elsewhere")
    with pytest.raises(repository.NotAsked, match="is not a folder"):
        repository.find_change(pull_request.place, None, None)


def test_a_repository_without_end_is_not_copied(pull_request: zoo.Attack) -> None:
    with (pull_request.git / "objects" / "pack" / f"pack-{'0' * 40}.pack").open("wb") as stream:
        stream.truncate(git_copy.LARGEST_BYTES + 1)
    with pytest.raises(repository.NotAsked, match="more than 8 GiB"):
        repository.find_change(pull_request.place, None, None)


def test_a_small_object_that_stands_for_a_large_file_is_read_in_pieces(pull_request: zoo.Attack) -> None:
    place = pull_request.place
    with (place / zoo.CHANGED).open("wb") as stream:
        stream.truncate(64 * 2**20)
    zoo.git(place, "commit", "-q", "-a", "-m", "large")
    tracemalloc.start()
    try:
        found = repository.find_change(place, None, None)
        assert tracemalloc.get_traced_memory()[1] < 16 * 2**20
    finally:
        tracemalloc.stop()
    assert found.files == {zoo.CHANGED: digest.of_file(place / zoo.CHANGED)}

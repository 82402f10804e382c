"""The files that a change touches, asked of real repositories."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from winml.modelkit.core.errors import CheckFailed, RequestError
from winml.modelkit.store import digest
from winml.modelkit.support.review import repository, scope
from winml.modelkit.support.review.command import ReviewRequest, ReviewResult, review
from winml.modelkit.support.review.git_copy import decode_name, encode_name

pytestmark = pytest.mark.xdist_group("support")

JUDGE = "src/winml/modelkit/measuring/judge.py"
PARTS = "src/winml/modelkit/building/export/parts.py"
RECIPE = "src/winml/modelkit/knowledge/recipes/toy.json"


def _git(repo: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *words], cwd=repo, check=True, capture_output=True)


def _write(repo: Path, *paths: str) -> None:
    for path in paths:
        (repo / path).parent.mkdir(parents=True, exist_ok=True)
        (repo / path).write_text(f"{path}\n")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository of the project on a branch off main."""
    found = tmp_path / "repo"
    found.mkdir()
    _git(found, "init", "-q", "-b", "main")
    _write(found, JUDGE, PARTS)
    _git(found, "add", ".")
    _git(found, "commit", "-q", "-m", "first")
    _git(found, "switch", "-q", "-c", "change")
    return found


def _commit(repo: Path) -> None:
    _git(repo, "add", "-A")
    _git(repo, "commit", "-q", "-m", "change")


def _review(folder: Path, **given: Any) -> ReviewResult:
    """A review that stops before anything is run again: nobody has the model."""
    with pytest.raises(CheckFailed) as caught:
        review(ReviewRequest(str(folder), model="gone.onnx", **given), lambda event: None)
    assert isinstance(caught.value.result, ReviewResult)
    return caught.value.result


def _told(result: ReviewResult) -> list[str]:
    return [item.reason for item in result.items if item.check == "scope"]


@pytest.mark.git
def test_a_change_is_what_differs_from_where_it_branched_off(repo: Path) -> None:
    _write(repo, RECIPE, "docs/naïve one.md")
    _git(repo, "mv", JUDGE, "src/winml/modelkit/measuring/jury.py")
    _commit(repo)
    _git(repo, "switch", "-q", "main")
    _write(repo, "later.md")
    _commit(repo)
    _git(repo, "switch", "-q", "change")
    found = repository.find_change(repo / "src", None, None)
    assert (found.base, found.repository) == ("main", repo)
    assert found.files == {
        RECIPE: digest.of_file(repo / RECIPE),
        "docs/naïve one.md": digest.of_file(repo / "docs/naïve one.md"),
        "src/winml/modelkit/measuring/jury.py": digest.of_file(repo / "src/winml/modelkit/measuring/jury.py"),
        JUDGE: None,
    }


@pytest.mark.git
def test_a_recipe_that_lies_in_a_repository_may_bring_itself_and_data(contribution: Path, repo: Path) -> None:
    shutil.copytree(contribution, repo / "contribution")
    _write(repo, RECIPE, "docs/catalog.md")
    _commit(repo)
    result = _review(repo / "contribution")
    assert _told(result) == []
    assert result.scope.asked
    assert {RECIPE, "docs/catalog.md", "contribution/contribution.json"} <= set(result.scope.files)


@pytest.mark.git
def test_files_outside_of_an_effort_are_rejected_wherever_the_contribution_lies(contribution: Path, repo: Path) -> None:
    _write(repo, "src/winml/modelkit/support/review/more.py")
    (repo / JUDGE).unlink()
    _commit(repo)
    result = _review(contribution, repo=str(repo), base="main")
    assert result.verdict == "REJECT"
    assert _told(result) == [
        f"effort L0* must not change `{path}`, but the repository does"
        for path in (JUDGE, "src/winml/modelkit/support/review/more.py")
    ]


def test_code_is_the_same_in_the_contribution_and_in_the_repository() -> None:
    changed: dict[str, str | None] = {PARTS: "sha256:1", "tests/hf_zoo.py": "sha256:2"}
    brought = {PARTS: "sha256:1", "tests/hf_zoo.py": "sha256:2"}
    assert list(scope.find_change_problems(changed, "L1", own=None, code=brought)) == []
    (told,) = scope.find_change_problems(changed, "L1", own=None, code={PARTS: "sha256:1"})
    assert "does not include it" in told
    (told,) = scope.find_change_problems({**changed, PARTS: None}, "L1", own=None, code=brought)
    assert "differs between" in told


@pytest.mark.git
def test_where_git_cannot_be_asked_that_is_said(contribution: Path, repo: Path) -> None:
    assert _review(contribution).scope.asked is False, "no repository"
    _git(repo, "branch", "-q", "-m", "main", "trunk")
    shutil.copytree(contribution, repo / "contribution")
    found = _review(repo / "contribution").scope
    assert (found.asked, found.files) == (False, None)
    assert "has no `origin/main` or `main`" in found.reason


@pytest.mark.git
@pytest.mark.parametrize("base", ["nowhere", "--output=written", ""])
def test_a_base_that_was_named_and_is_none_is_a_wrong_request(contribution: Path, repo: Path, base: str) -> None:
    with pytest.raises(RequestError, match="the change cannot be determined"):
        review(ReviewRequest(str(contribution), repo=str(repo), base=base), lambda event: None)
    assert not (repo / "written").exists()


@pytest.mark.git
def test_a_repository_of_something_else_is_not_asked(contribution: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    _git(other, "init", "-q", "-b", "main")
    _write(other, "a.txt")
    _commit(other)
    shutil.copytree(contribution, other / "contribution")
    assert "is not a repository of this project" in _review(other / "contribution").scope.reason
    with pytest.raises(RequestError, match="is not a repository of this project"):
        review(ReviewRequest(str(contribution), repo=str(other)), lambda event: None)


def test_a_name_of_any_bytes_comes_back_as_it_was() -> None:
    raw = b"refs/heads/gr\xc3\xb6\xc3\x9fe-\xff\xfe"
    assert encode_name(decode_name(raw)) == raw

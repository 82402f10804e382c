"""The tree of errors is the one its docstring draws, and every error survives the trip between processes."""

from __future__ import annotations

import errno
import inspect
import json
import os
import re
from pathlib import Path

import pytest

from winml.modelkit.core import errors
from winml.modelkit.core.errors import (
    BY_CODE,
    EXIT_BUG,
    DiskFull,
    ModelkitError,
    UnavailableError,
    from_json,
    of_system,
)

LINE = re.compile(r"^ {4}(?P<branch>[│├└─ ]*)(?P<name>[A-Z]\w+) +(?P<exit>\d+)", re.MULTILINE)


def drawn() -> list[tuple[int, str, int]]:
    """Depth, class and exit code of every line of the tree below its root."""
    return [(len(m["branch"]) // 4, m["name"], int(m["exit"])) for m in LINE.finditer(errors.__doc__ or "")]


def classes() -> list[type[ModelkitError]]:
    """Every error class the module defines, its root included."""
    found = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, ModelkitError)]
    return sorted(found, key=lambda c: c.__name__)


def test_the_docstring_draws_every_class() -> None:
    assert {name for _, name, _ in drawn()} | {"ModelkitError"} == {c.__name__ for c in classes()}


@pytest.mark.parametrize(("name", "code"), [(name, code) for _, name, code in drawn()])
def test_every_class_has_the_exit_code_its_docstring_says(name: str, code: int) -> None:
    assert getattr(errors, name).exit_code == code


def test_every_class_hangs_where_the_docstring_draws_it() -> None:
    parents = {0: "ModelkitError"}
    for depth, name, _ in drawn():
        assert getattr(errors, name).__base__.__name__ == parents[depth - 1], name
        parents[depth] = name


def test_exit_codes_are_those_of_the_contract() -> None:
    page = (Path(__file__).parents[2] / "docs" / "contract.md").read_text(encoding="utf-8")
    section = page.partition("## Exit codes")[2].partition("## ")[0]
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)}
    assert {code for _, _, code in drawn()} == listed - {0}
    assert listed >= {0, 1, 2, 3, 4, 5, 6, 130}
    assert ModelkitError.exit_code == 1


def test_codes_are_unique() -> None:
    codes = [c.code for c in classes()]
    assert sorted(codes) == sorted(set(codes))
    assert {c.code: c for c in classes()} == BY_CODE


def test_codes_are_words_joined_by_hyphens() -> None:
    assert [c.code for c in classes() if not re.fullmatch(r"[a-z]+(-[a-z]+)*", c.code)] == []


def test_no_error_ends_like_a_bug_or_like_success() -> None:
    assert not {c.exit_code for c in classes()} & {0, EXIT_BUG}


@pytest.mark.parametrize("kind", classes(), ids=lambda c: c.__name__)
@pytest.mark.parametrize("hint", [None, "name the .onnx file inside it"])
def test_every_error_survives_the_trip_through_json(kind: type[ModelkitError], hint: str | None) -> None:
    sent = kind("model `a ü.onnx` is a directory", hint=hint)
    received = from_json(json.loads(json.dumps(sent.to_json())), {"log": ["last line"]})
    assert type(received) is kind
    assert received.to_json() == sent.to_json()
    assert received.details == {"log": ["last line"]}


def test_an_error_that_another_package_refined_comes_back_as_itself() -> None:
    class FeedOffline(errors.UnavailableError):
        code = "feed-offline"

    received = from_json(FeedOffline("the feed does not answer").to_json())
    assert type(received) is FeedOffline
    assert received.exit_code == 3


@pytest.mark.parametrize("kind", classes(), ids=lambda c: c.__name__)
def test_json_has_the_fields_of_the_contract(kind: type[ModelkitError]) -> None:
    assert kind("what", hint="do").to_json() == {
        "code": kind.code,
        "message": "what",
        "hint": "do",
        "exit": kind.exit_code,
    }


def test_an_error_reads_as_its_message() -> None:
    assert str(ModelkitError("model file not found", hint="look elsewhere")) == "model file not found"


def test_details_belong_to_one_error_alone() -> None:
    known = {"log": ["line"]}
    first, second = ModelkitError("a", details=known), ModelkitError("b")
    first.details["measurement"] = {}
    assert known == {"log": ["line"]}
    assert second.details == {}


def refusal(number: int, filename: str | None = None) -> OSError:
    return OSError(number, os.strerror(number), filename)


@pytest.mark.parametrize(
    "error",
    [
        refusal(errno.ENOSPC), refusal(errno.EDQUOT), refusal(errno.EFBIG),
        OSError("1024 requested and 0 written"),  # numpy, to a full disk
    ],
)  # fmt: skip
def test_a_full_disk_is_one_error_for_the_whole_program(error: OSError) -> None:
    path = Path("cache/x")
    for found in (of_system(error, str(path)), of_system(error, path, writing=True)):
        assert type(found) is DiskFull
        assert found.message == f"disk full while writing `{path}`"
        assert found.hint is not None


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENODEV])
def test_what_a_machine_refuses_is_fine_elsewhere(number: int) -> None:
    for writing in (False, True):
        found = of_system(refusal(number, "a/b"), writing=writing)
        assert type(found) is UnavailableError
        assert "`a/b`" in found.message
        assert os.strerror(number) in found.message


@pytest.mark.parametrize("number", [errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EINVAL])
def test_a_path_that_cannot_be_made_is_told_apart_from_one_that_is_missing(number: int) -> None:
    made = of_system(refusal(number, "/proc/foo"), "/proc/foo/out", writing=True)
    assert type(made) is UnavailableError
    assert made.message == f"cannot write `/proc/foo/out`: {os.strerror(number)}"
    assert of_system(refusal(number, "/proc/foo")) is None
    assert of_system(refusal(number, "/elsewhere/source"), "/proc/foo/out", writing=True) is None


@pytest.mark.posix("Windows keeps the folder that a process works in")
def test_a_deleted_current_folder_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(FileNotFoundError) as refused:
        Path.cwd()
    found = of_system(refused.value)
    assert type(found) is UnavailableError
    assert found.message == "the current folder was deleted"
    assert of_system(refusal(errno.ENOENT, "x")) is None, "a file that is missing there is another matter"


def test_other_refusals_stay_bugs() -> None:
    assert of_system(refusal(errno.EBADF)) is None
    assert of_system(refusal(errno.ECONNREFUSED)) is None
    assert of_system(OSError("no number at all")) is None

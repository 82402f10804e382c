"""`wk.report`: pages of runs on disk, of results of this process, and of findings."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import winml.modelkit as wk
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.search.run_folder import SearchFolder, read_result

SEARCH = Path(__file__).parents[1] / "goldens" / "before" / "search"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of a search that has ended."""
    made = tmp_path / "search"
    made.mkdir()
    shutil.copy(SEARCH / "autoconfig.json", made)
    return made


@pytest.mark.parametrize("name", ["report.html", "report.md"])
def test_a_search_is_reported_as_autoconfig_does(name: str, folder: Path, tmp_path: Path) -> None:
    made = wk.report(folder, output=tmp_path / name)
    assert made.runs[0].kind == "autoconfig"
    own = tmp_path / "own"
    own.mkdir()
    written = SearchFolder(own, resume=False)
    written.report(read_result(folder))
    ours, theirs = ((one / name).read_text(encoding="utf-8") for one in (tmp_path, own))
    # Only the footer differs: it names the place of the run.
    assert (
        re.sub(r"<(footer|sub)>.*</(footer|sub)>", "", ours).strip()
        == re.sub(r"<(footer|sub)>.*</(footer|sub)>", "", theirs).strip()
    )


def test_findings_are_reported(tmp_path: Path) -> None:
    knowledge = tmp_path / "knowledge"
    (knowledge / "findings").mkdir(parents=True)
    made = wk.report(knowledge, output=tmp_path / "out.html")
    assert made.runs[0].kind == "kb"
    assert made.to_json()["schema"] == "winml/report/1"
    assert str(made).startswith(made.runs[0].title)


def test_without_a_run_it_is_about_the_findings_of_this_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINML_KNOWLEDGE", str(tmp_path / "none"))
    made = wk.report(output=tmp_path / "out.html")
    assert made.runs[0].kind == "kb"
    assert "npu-006" in (tmp_path / "out.html").read_text(encoding="utf-8"), "those that ship with the package"


def test_nothing_is_replaced_unasked(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "out.html"
    page.write_text("mine")
    with pytest.raises(RequestError, match="output file exists and is no report"):
        wk.report(folder, output=page)
    assert page.read_text() == "mine"
    wk.report(folder, output=page, overwrite=True)
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_what_cannot_be_reported_is_an_error_that_says_why(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "out.html"
    empty = tmp_path / "empty"
    empty.mkdir()
    (tmp_path / "empty.html").mkdir()
    for given, output, message in (
        (tmp_path / "serch", page, "not found"),
        (empty, page, "is no run"),
        (wk.sample.MODEL, page, "is no run"),
        (folder, tmp_path / "out.pdf", "must end with `.html`, `.md` or `.svg`"),
        (folder, tmp_path / "out.svg", "a picture needs its name"),
        (folder, tmp_path / "empty.html", "is a directory"),
        ("", page, "`run` is empty"),
        (7, page, "`run` must be a path"),
    ):
        with pytest.raises((RequestError, DataError)) as caught:
            wk.report(given, output=output)  # type: ignore[arg-type]
        assert message in caught.value.message
    with pytest.raises(RequestError, match="`other` stands beside `run`"):
        wk.report(other=folder)


def test_a_search_without_a_record_has_not_begun(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").touch()
    with pytest.raises(RequestError, match="no whole line yet"):
        wk.report(tmp_path, output=tmp_path / "out.html")


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": "winml/autoconfig/1"}'])
def test_a_damaged_result_is_an_error_of_its_file(text: str, folder: Path, tmp_path: Path) -> None:
    (folder / "autoconfig.json").write_text(text)
    with pytest.raises(DataError, match="autoconfig.json"):
        wk.report(folder, output=tmp_path / "out.html")

"""`wk.report`: the pages of a search and of findings, from what is on disk."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import winml.modelkit as wk
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.findings import kb_command
from winml.modelkit.render.pages.autoconfig import autoconfig_page
from winml.modelkit.render.pages.html import page_html
from winml.modelkit.render.pages.kb import kb_page
from winml.modelkit.render.pages.markdown import page_markdown

SEARCH = Path(__file__).parents[1] / "goldens" / "before" / "search"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of a search that has ended."""
    made = tmp_path / "search"
    made.mkdir()
    shutil.copy(SEARCH / "autoconfig.json", made)
    return made


@pytest.mark.parametrize(("name", "write"), [("out.html", page_html), ("out.md", page_markdown)])
def test_a_search_is_reported_as_autoconfig_does(name: str, write: object, folder: Path, tmp_path: Path) -> None:
    result = wk.report(folder, output=tmp_path / name)
    assert isinstance(result, wk.SearchResult)
    assert callable(write)
    assert (tmp_path / name).read_text(encoding="utf-8") == write(autoconfig_page(result))
    assert result.trials[0].id in (tmp_path / name).read_text(encoding="utf-8")


def test_findings_are_reported_as_kb_report_does(tmp_path: Path) -> None:
    knowledge = tmp_path / "knowledge"
    (knowledge / "findings").mkdir(parents=True)
    page = tmp_path / "out.html"
    result = wk.report(knowledge, output=page)
    assert isinstance(result, wk.KbReport)
    assert result == kb_command.report(str(knowledge), str(page))
    assert page.read_text(encoding="utf-8") == page_html(kb_page(result))
    assert str(result) == f"{len(result.entries)} findings and {len(result.gaps)} gaps"
    assert result.to_json()["schema"] == "winml/kb/1"


def test_without_a_folder_it_is_about_the_findings_of_this_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINML_KNOWLEDGE", str(tmp_path / "none"))
    result = wk.report(output=tmp_path / "out.html")
    assert isinstance(result, wk.KbReport)
    assert result.entries, "those that ship with the package"


def test_nothing_is_replaced_unasked(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "out.html"
    page.write_text("mine")
    with pytest.raises(RequestError, match="output file exists"):
        wk.report(folder, output=page)
    assert page.read_text() == "mine"
    wk.report(folder, output=page, overwrite=True)
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_what_cannot_be_reported_is_an_error_that_says_why(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "out.html"
    empty = tmp_path / "empty"
    empty.mkdir()
    for given, output, message in (
        (tmp_path / "serch", page, "folder not found"),
        (empty, page, "holds neither a search nor findings"),
        (wk.sample.MODEL, page, "folder not found"),
        (folder, tmp_path / "out.pdf", "must end with `.html` or `.md`"),
        (None, tmp_path / "out.md", "a report of findings is HTML"),
        (folder, empty, "is a directory"),
    ):
        with pytest.raises(RequestError, match=message):
            wk.report(given, output=output)
    assert not page.exists()


def test_a_search_that_has_not_ended_is_named(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").touch()
    with pytest.raises(RequestError, match="has not ended"):
        wk.report(tmp_path, output=tmp_path / "out.html")


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": "winml/autoconfig/1"}'])
def test_a_damaged_result_is_an_error_of_its_file(text: str, folder: Path, tmp_path: Path) -> None:
    (folder / "autoconfig.json").write_text(text)
    with pytest.raises(DataError, match="autoconfig.json"):
        wk.report(folder, output=tmp_path / "out.html")

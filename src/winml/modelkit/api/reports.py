"""Reports of what is on disk already: of a search, and of what is known about execution providers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from winml.modelkit.api.arguments import path_of, require_new_file, text_of
from winml.modelkit.api.call import calling
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.suggest import near_path

if TYPE_CHECKING:
    from winml.modelkit.api.arguments import PathLike
    from winml.modelkit.findings.result import KbReport
    from winml.modelkit.search.result import SearchResult


def report(folder: PathLike | None = None, *, output: PathLike, overwrite: bool = False) -> SearchResult | KbReport:
    """Write a report to the file `output` and return what it is about.

    `folder` is one that `autoconfig` has written: `.html` is its `report.html`, `.md` its `report.md`. Or it holds
    findings: `.html` is the page of `winml kb report`. Without a folder that page is about the findings of this user.
    """
    with calling():
        place = require_new_file(output, overwrite=overwrite)
        if place.suffix not in (".html", ".md"):
            raise RequestError(f"`output` must end with `.html` or `.md` but is `{place.name}`")
        source = None if folder is None else Path(path_of(folder, "folder"))
        if source is not None and not source.is_dir():
            raise RequestError(f"folder not found: `{source}`", hint=near_path(source))
        if source is not None and _is_search(source):
            return _report_search(source, place)
        if source is None or (source / "findings").is_dir():
            return _report_findings(source, place)
        raise RequestError(
            f"`{source}` holds neither a search nor findings", hint="give a folder that `autoconfig` has written"
        )


def _is_search(folder: Path) -> bool:
    from winml.modelkit.search.records import JOURNAL
    from winml.modelkit.search.run_folder import RESULT

    return (folder / JOURNAL).is_file() or (folder / RESULT).is_file()


def _report_search(folder: Path, place: Path) -> SearchResult:
    from winml.modelkit.render.pages.autoconfig import autoconfig_page
    from winml.modelkit.render.pages.html import page_html
    from winml.modelkit.render.pages.markdown import page_markdown
    from winml.modelkit.search.run_folder import read_result
    from winml.modelkit.store import atomic

    result = read_result(folder)
    write = page_html if place.suffix == ".html" else page_markdown
    atomic.write_bytes(place, write(autoconfig_page(result)).encode())
    return result


def _report_findings(folder: Path | None, place: Path) -> KbReport:
    from winml.modelkit.findings import kb_command
    from winml.modelkit.render.pages.html import page_html
    from winml.modelkit.render.pages.kb import kb_page
    from winml.modelkit.store import atomic

    if place.suffix != ".html":
        raise RequestError(f"a report of findings is HTML, and `{place.name}` is not", hint="name a file with `.html`")
    result = kb_command.report(text_of(folder), str(place))
    atomic.write_bytes(place, page_html(kb_page(result)).encode())
    return result

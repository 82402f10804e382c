"""`winml report`: a run, or two side by side, as a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from winml.modelkit import __version__
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.result import CommandResult
from winml.modelkit.core.suggest import did_you_mean, near_path
from winml.modelkit.render.figures.canvas import WIDE
from winml.modelkit.render.figures.pictures import with_style
from winml.modelkit.render.pages.html import GENERATOR, page_html
from winml.modelkit.render.pages.markdown import page_markdown
from winml.modelkit.render.pages.page import Figure, Notices, Page, figures
from winml.modelkit.reporting.pairs import pair_page
from winml.modelkit.reporting.runs import KINDS, Run, load_class, read_known_findings, read_run, run_of_value
from winml.modelkit.store import atomic

Format = Literal["html", "markdown", "svg"]
MOST_RUNS = 2


@dataclass(frozen=True)
class ReportRequest:
    """Everything the user decided."""

    runs: tuple[str | CommandResult, ...]
    """Paths, or results as they are; none for the findings of this user."""
    output: str | None = None
    """Null: the text is in the result and in no file."""
    format: Format = "html"
    figure: str | None = None
    """The picture to write with `svg`."""
    overwrite: bool = False


@dataclass(frozen=True, kw_only=True)
class ReportedRun:
    """A run that the report is about."""

    path: str
    kind: str
    title: str
    answer: str
    """What a reader wants to know first."""
    finished: bool
    """False for one that is being written, or was interrupted."""


@dataclass(frozen=True, kw_only=True)
class ReportedFigure:
    """A picture of the report."""

    name: str
    """What `--svg` calls it."""
    title: str
    sentence: str
    """What it shows for these data."""


@dataclass(frozen=True, kw_only=True, repr=False)
class ReportResult(CommandResult):
    """A report that was made."""

    schema: Literal["winml/report/1"] = "winml/report/1"
    ok: Literal[True] = True
    format: Format
    file: str | None
    """Null where the report is in `text`."""
    bytes: int
    runs: tuple[ReportedRun, ...]
    figures: tuple[ReportedFigure, ...]
    text: str | None
    """The report itself where it went to no file."""


def report(request: ReportRequest) -> ReportResult:
    """Read the runs, make their page and write it."""
    if len(request.runs) > MOST_RUNS:
        raise RequestError(f"a report is about one run or two, but {len(request.runs)} were given")
    if (request.format == "svg") != (request.figure is not None):
        raise RequestError("a picture needs its name", hint="`winml report RUN --json` lists the pictures of a run")
    place = None if request.output is None else _check_place(Path(request.output), overwrite=request.overwrite)
    runs = [_take(one) for one in request.runs] or [read_known_findings()]
    pages = [make_page(run) for run in runs]
    page = pages[0] if len(pages) == 1 else pair_page(runs, pages)
    text = _write(page, request, runs)
    if place is not None:
        atomic.write_bytes(place.absolute(), text.encode())
    return ReportResult(
        format=request.format,
        file=None if place is None else str(place),
        bytes=len(text.encode()),
        runs=tuple(
            ReportedRun(path=str(run.path), kind=run.kind, title=one.title, answer=one.answer, finished=run.finished)
            for run, one in zip(runs, pages, strict=True)
        ),
        figures=tuple(ReportedFigure(name=one.name, title=one.title, sentence=one.sentence) for one in figures(page)),
        text=text if place is None else None,
    )


def _take(given: str | CommandResult) -> Run:
    return run_of_value(given) if isinstance(given, CommandResult) else read_run(Path(given))


def make_page(run: Run) -> Page:
    """The page of a run."""
    make = load_class(f"render.pages.{KINDS[run.kind].page}")
    page: Page = make(run.value, *run.beside)
    if run.failure is None:
        return page
    return replace(page, blocks=(Notices((f"the command failed: {run.failure}",)), *page.blocks))


def footer(runs: Sequence[Run]) -> str:
    """Where a report comes from."""
    return f"winml {__version__}, from {' and '.join(str(run.path) for run in runs)}"


def _write(page: Page, request: ReportRequest, runs: Sequence[Run]) -> str:
    if request.figure is not None:
        return draw_figure(page, request.figure)
    make = page_html if request.format == "html" else page_markdown
    return make(page, footer(runs))


def draw_figure(page: Page, name: str) -> str:
    """One picture with its style, for a slide."""
    known: dict[str, Figure] = {one.name: one for one in figures(page)}
    if name not in known:
        if not known:
            raise RequestError("this report has no picture")
        raise RequestError(f"no picture `{name}`", hint=did_you_mean(name, known))
    return with_style(known[name].draw(WIDE)) + "\n"


def _check_place(place: Path, *, overwrite: bool) -> Path:
    """The file to write, checked before anything is read; an earlier report may be replaced."""
    if place.is_dir():
        raise RequestError(f"output `{place}` is a directory", hint="name a file")
    if not place.parent.is_dir():
        raise RequestError(f"output folder not found: `{place.parent}`", hint=near_path(place.parent))
    if place.exists() and not overwrite and not _is_report(place):
        raise RequestError(
            f"output file exists and is no report: `{place}`", hint="add `--overwrite` to replace it, or name another"
        )
    return place


def _is_report(place: Path) -> bool:
    try:
        with place.open("rb") as stream:
            return GENERATOR.encode() in stream.read(1000)
    except OSError:
        return False

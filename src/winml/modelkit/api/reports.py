"""Reports: the page of a run that is on disk or was just made, and of what is known about execution providers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from winml.modelkit.api.arguments import path_of, text_of
from winml.modelkit.api.call import calling
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.result import CommandResult

if TYPE_CHECKING:
    from winml.modelkit.api.arguments import PathLike
    from winml.modelkit.reporting.command import Format, ReportResult

_FORMATS: dict[str, Format] = {".html": "html", ".md": "markdown", ".svg": "svg"}


def report(
    run: PathLike | CommandResult | None = None,
    other: PathLike | CommandResult | None = None,
    *,
    output: PathLike | None = None,
    figure: str | None = None,
    overwrite: bool = False,
) -> ReportResult:
    """Write the report of a run to the file `output`: a page (`.html`), Markdown (`.md`) or one picture (`.svg`).

    `run` is a file that a command wrote with `-o`, the folder of a search, a matrix, a build or a contribution, a
    folder with findings, or a result of this package. With `other` both stand side by side. Without a run the report
    is about the findings of this user. `figure` names the picture; without `output` the report is in `text` of the
    result.
    """
    from winml.modelkit.reporting.command import ReportRequest
    from winml.modelkit.reporting.command import report as make_report

    with calling():
        place = None if output is None else Path(path_of(output, "output"))
        suffix = (".html" if figure is None else ".svg") if place is None else place.suffix
        if suffix not in _FORMATS:
            raise RequestError(f"`output` must end with `.html`, `.md` or `.svg` but is `{place and place.name}`")
        given = [_run(one) for one in (run, other) if one is not None]
        if run is None and other is not None:
            raise RequestError("`other` stands beside `run`, which is not given")
        return make_report(
            ReportRequest(
                runs=tuple(given),
                output=text_of(place),
                format=_FORMATS[suffix],
                figure=figure,
                overwrite=overwrite,
            )
        )


def _run(given: PathLike | CommandResult) -> str | CommandResult:
    return given if isinstance(given, CommandResult) else path_of(given, "run")

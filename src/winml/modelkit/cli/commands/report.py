"""`winml report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.help import Command
from winml.modelkit.cli.options import HELP, examples, json_option, output_option

if TYPE_CHECKING:
    from winml.modelkit.reporting.command import Format, ReportResult

DEFAULT = "report.html"


@click.command(
    "report",
    help="Write a page with the pictures and numbers of a run, or of two runs side by side.",
    epilog=examples(
        "winml report perf.json --open",
        "winml report search -o search.html",
        "winml report before.json after.json",
        "winml report compare.json --markdown > comment.md",
        "winml report search --svg front -o front.svg",
    ),
    cls=Command,
    context_settings=HELP,
)
@click.argument("reported", metavar="RUN...", nargs=-1, required=True)
@output_option("FILE", f"The file to write (default: {DEFAULT}; Markdown and pictures go to stdout).")
@click.option("--markdown", is_flag=True, help="Write Markdown, as for a comment on a pull request.")
@click.option("--svg", "figure", metavar="FIGURE", help="Write one picture; --json lists their names.")
@click.option("--open", "opens", is_flag=True, help="Open the page in a browser.")
@click.option("--overwrite", is_flag=True, help="Replace an existing file that is no report.")
@json_option
def command(
    reported: tuple[str, ...],
    output: str | None,
    markdown: bool,
    figure: str | None,
    opens: bool,
    overwrite: bool,
    as_json: bool,
) -> None:
    from winml.modelkit.reporting.command import ReportRequest, report

    if markdown and (figure is not None or opens):
        raise click.UsageError(f"`--markdown` cannot be combined with `{'--open' if figure is None else '--svg'}`")
    if output is None and not markdown and figure is None:
        output = DEFAULT
    if output is None and opens:
        raise click.UsageError("`--open` opens a file; name it with `-o`")
    written: Format = "markdown" if markdown else "html" if figure is None else "svg"
    result = report(ReportRequest(reported, output, written, figure, overwrite))
    _show(result, as_json=as_json)
    if opens and result.file is not None:
        _open(Path(result.file))


def _show(result: ReportResult, *, as_json: bool) -> None:
    from winml.modelkit.render.report import report_text

    if as_json:
        console.data_json(result)
    elif result.text is not None:
        console.data(result.text)
    else:
        console.show(report_text, result)
    for run in result.runs:
        if not run.finished:
            console.say("note", f"{run.path} has not ended; this is what it has so far")
    if result.file is not None and not as_json:
        console.say("wrote", result.file)


def _open(page: Path) -> None:
    import webbrowser

    if not webbrowser.open(page.absolute().as_uri()):
        console.say("warning", f"no browser was found; open {page} yourself")

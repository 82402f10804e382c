"""`winml dashboard`."""

from __future__ import annotations

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.help import Command
from winml.modelkit.cli.options import HELP, examples, json_option


@click.command(
    "dashboard",
    help="Show the runs below a folder in a browser, until Ctrl-C: a list with search and filters, the report of every "
    "run, two runs side by side, and searches and matrices while they run. It listens on this machine only, needs the "
    "token in its address, and changes no file.",
    epilog=examples(
        "winml dashboard", "winml dashboard runs --open", "winml dashboard runs --port 9000 --json"
    ),
    cls=Command,
    context_settings=HELP,
)  # fmt: skip
@click.argument("root", metavar="[ROOT]", default=".")
@click.option(
    "--port",
    type=click.IntRange(min=0, max=65535),
    metavar="N",
    help="Port of 127.0.0.1 (default: 8642, or a free one where that is taken).",
)
@click.option("--open", "browse", is_flag=True, help="Open the page in a browser.")
@click.option("--no-token", is_flag=True, help="Let every user and program of this machine see the pages.")
@json_option
def command(root: str, port: int | None, browse: bool, no_token: bool, as_json: bool) -> None:
    from winml.modelkit.render.dashboard import ready_text
    from winml.modelkit.reporting.dashboard import DashboardReady, DashboardRequest, serve

    def show(ready: DashboardReady) -> None:
        console.say("note", f"{ready.runs} runs below {ready.root}; press Ctrl-C to stop")
        console.show_result(ready_text, ready, as_json=as_json)

    def log(line: str) -> None:
        console.say("note", line)

    serve(DashboardRequest(root, port, token=not no_token, browse=browse), show, log)

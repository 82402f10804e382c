"""`winml trace`."""

from __future__ import annotations

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.help import Group
from winml.modelkit.cli.options import HELP, examples, json_option, output_options


@click.group(
    "trace",
    help="Operator traces that `winml perf --op-tracing` wrote.",
    epilog=examples("winml trace diff before_op_trace.json after_op_trace.json"),
    cls=Group,
    context_settings=HELP,
)
def command() -> None:
    pass


@command.command(
    "diff",
    help="Show which operators changed between two traces, moved to another provider, appeared or disappeared.",
    epilog=examples(
        "winml trace diff before_op_trace.json after_op_trace.json",
        "winml trace diff a_op_trace.json b_op_trace.json --top-k 20 --json -o diff.json",
    ),
    context_settings=HELP,
)
@click.argument("before")
@click.argument("after")
@click.option("--top-k", type=click.IntRange(min=1), default=10, show_default=True, metavar="N", help="Lines to show.")
@output_options
@json_option
def diff(before: str, after: str, top_k: int, output: str | None, overwrite: bool, as_json: bool) -> None:
    from winml.modelkit.cli.results import ResultFile
    from winml.modelkit.measuring.trace import diff_traces
    from winml.modelkit.render.trace import diff_text

    result_file = ResultFile(output, overwrite=overwrite, as_json=as_json)
    result = diff_traces(before, after)
    result_file.write(result)
    if as_json:
        console.data_json(result)
    else:
        console.show(diff_text, result.diff, top_k)
    for note in result.diff.notes:
        console.say("note", note)
    result_file.say_wrote()
    result_file.say_report()

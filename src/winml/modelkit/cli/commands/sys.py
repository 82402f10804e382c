"""`winml sys`."""

from __future__ import annotations

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.help import Command
from winml.modelkit.cli.options import HELP, examples, json_option


@click.command(
    "sys",
    help="Show the machine and, for every execution provider, whether it can be used and why not; then what is wrong "
    "with the environment, with the commands that mend it.",
    epilog=examples("winml sys", "winml sys --list-ep", "winml sys --json"),
    cls=Command,
    context_settings=HELP,
)
@click.option("--list-ep", is_flag=True, help="Only the execution providers and their targets.")
@click.option("--list-device", is_flag=True, help="Only the devices found by providers.")
@json_option
def command(list_ep: bool, list_device: bool, as_json: bool) -> None:
    from winml.modelkit.ep.sys_command import describe_system
    from winml.modelkit.render import sys as text

    result = describe_system()
    if as_json:
        console.data_json(result)
        return
    everything = not (list_ep or list_device)
    if everything:
        console.show(text.machine_text, result, end="\n")
    if everything or list_ep:
        console.show(text.ep_text, result.eps, end="\n" if everything and result.problems else "")
    if list_device:
        console.show(text.device_text, result.eps)
    if everything:
        if result.problems:
            console.show(text.problems_text, result.problems)
        console.say("next", "winml perf --sample")

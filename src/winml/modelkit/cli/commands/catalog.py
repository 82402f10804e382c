"""`winml catalog`."""

from __future__ import annotations

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.help import Command
from winml.modelkit.cli.options import HELP, examples, json_option


@click.command(
    "catalog",
    help="Show the known families of Hugging Face models, their tasks, and what was proven on which target. A family "
    "without a proof is known only to the exporter. With --architectures: every architecture of transformers, and what "
    "came of a tiny model of it.",
    epilog=examples(
        "winml catalog",
        "winml catalog --family bert",
        "winml catalog --task object-detection --json",
        "winml catalog --architectures --target cpu",
    ),
    cls=Command,
    context_settings=HELP,
)
@click.option("--family", metavar="FAMILY", help="Only this family: the `model_type` of config.json.")
@click.option("--task", metavar="TASK", help="Only families with this task.")
@click.option("--target", metavar="EP[/DEVICE]", help="Only what was tried on this target.")
@click.option(
    "--architectures",
    is_flag=True,
    help="Show all architectures of transformers: whether a tiny model with random weights was exported and right on "
    "the CPU and on the simulated NPU, or refused, with the reason.",
)
@json_option
def command(family: str | None, task: str | None, target: str | None, architectures: bool, as_json: bool) -> None:
    from winml.modelkit.knowledge.catalog_command import show_architectures, show_catalog
    from winml.modelkit.render.catalog import architectures_text, catalog_text

    if architectures:
        found = show_architectures(family=family, task=task, target=target)
        console.show_result(architectures_text, found, as_json=as_json)
        return
    console.show_result(catalog_text, show_catalog(family=family, task=task, target=target), as_json=as_json)

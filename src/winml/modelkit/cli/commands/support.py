"""`winml support`."""

from __future__ import annotations

from typing import Any

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.options import HELP, chosen_model, examples, json_option, model_options

knowledge_option = click.option(
    "--knowledge",
    metavar="DIR",
    help="Your own findings, read after the shipped ones (default: `$WINML_KNOWLEDGE` or the platform's folder for "
    "data).",
)


@click.group(
    "support",
    help="Model support: probe a model, produce a contribution with its evidence, review one by running it again.",
    epilog=examples(
        "winml support knowledge list",
        "winml support knowledge show bart-001",
    ),
    context_settings=HELP,
)
def command() -> None:
    pass


def _show(result: dict[str, Any], as_json: bool) -> None:
    from winml.modelkit.render.support import support_text

    if as_json:
        console.data_json(result)
    else:
        console.data(support_text(result))


@command.group(
    "knowledge", help="What is known about supporting models, one claim each.", context_settings=HELP
)
def knowledge() -> None:
    pass


@knowledge.command("list", help="List findings about families and about the work.", context_settings=HELP)
@click.option("--family", metavar="FAMILY", help="Only this family, or `methodology`.")
@click.option("--status", metavar="STATUS", help="Only reported, observed or refuted ones.")
@knowledge_option
@json_option
def listing(family: str | None, status: str | None, knowledge: str | None, as_json: bool) -> None:
    from winml.modelkit.app import model_knowledge

    _show(model_knowledge.listing(knowledge, family=family, status=status), as_json)


@knowledge.command("show", help="Show a finding.", context_settings=HELP)
@click.argument("finding")
@knowledge_option
@json_option
def show(finding: str, knowledge: str | None, as_json: bool) -> None:
    from winml.modelkit.app import model_knowledge

    _show(model_knowledge.show(knowledge, finding), as_json)


@knowledge.command(
    "add",
    help="Append the one finding in FILE to your own; nothing that is known is changed.",
    epilog=examples("winml support knowledge add finding.json"),
    context_settings=HELP,
)
@click.argument("file")
@knowledge_option
@json_option
def add(file: str, knowledge: str | None, as_json: bool) -> None:
    from winml.modelkit.app import model_knowledge

    _show(model_knowledge.add(knowledge, file), as_json)


@knowledge.command("check", help="Read everything strictly; exit 5 when a name leads nowhere.", context_settings=HELP)
@knowledge_option
@json_option
def check(knowledge: str | None, as_json: bool) -> None:
    from winml.modelkit.app import model_knowledge

    _show(model_knowledge.check(knowledge), as_json)

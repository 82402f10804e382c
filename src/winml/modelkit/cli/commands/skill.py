"""`winml skill`."""

from __future__ import annotations

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.help import Group
from winml.modelkit.cli.options import HELP, examples, json_option


@click.group(
    "skill",
    help="Skills for agents: check their format and the commands they show.",
    epilog=examples("winml skill check", "winml skill check my-skills --json"),
    cls=Group,
    context_settings=HELP,
)
def command() -> None:
    pass


@command.command(
    "check",
    help="Check the skills in PATH: their format, every command they show, every option and JSON field they name; exit "
    "5 when one is wrong. Without PATH: the folder `skills` here, or the skills that ship with winml.",
    epilog=examples("winml skill check", "winml skill check my-skills/use-winml --json"),
    context_settings=HELP,
)
@click.argument("path", required=False)
@json_option
def check(path: str | None, as_json: bool) -> None:
    from winml.modelkit.cli.command_check import wrong_command, wrong_option
    from winml.modelkit.core.errors import CheckFailed
    from winml.modelkit.knowledge.skill_command import check_skills, default_folder
    from winml.modelkit.render.skill import problems_text, skills_text

    try:
        result = check_skills(path or default_folder(), wrong_command, wrong_option)
    except CheckFailed as error:
        if not as_json:
            console.show(problems_text, error.result)
        raise
    console.show_result(skills_text, result, as_json=as_json)

"""`winml skill`: whether skills for agents keep to the format and say what the program does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from winml.modelkit.core import schemas
from winml.modelkit.core.errors import CheckFailed, RequestError
from winml.modelkit.core.suggest import nearest
from winml.modelkit.knowledge import skill_commands, skills
from winml.modelkit.knowledge.skill_commands import FieldMention, Found, Mention, OptionMention, Unreadable
from winml.modelkit.knowledge.skills import Problem, Skill

SCHEMA = "winml/skill/1"
FOLDER = "skills"

CommandCheck = Callable[[tuple[str, ...], bool], str | None]
"""What is wrong with the words behind `winml`, and whether they have to be complete."""
OptionCheck = Callable[[str], str | None]
"""What is wrong with an option that is named without its command."""


def default_folder() -> str:
    """The skills of the current folder, or those that come with winml, in its package or its checkout."""
    package = Path(__file__).parents[1]
    places = (Path(FOLDER), package / FOLDER, package.parents[2] / FOLDER)
    return str(next((place for place in places if place.is_dir()), FOLDER))


def check(path: str, wrong_command: CommandCheck, wrong_option: OptionCheck) -> dict[str, Any]:
    """Check every skill in a folder; a problem is a check answered with no."""
    root = Path(path)
    if not root.is_dir():
        raise RequestError(f"folder not found: `{path}`", hint="name a skill, or a folder of skills")
    found = [skills.read(folder) for folder in skills.folders(root)]
    if not found:
        raise RequestError(f"there is no `{skills.PAGE}` in `{path}`", hint="name a skill, or a folder of skills")
    checked = [_checked(skill, wrong_command, wrong_option) for skill in found]
    problems = [p for _, of_skill in checked for p in of_skill]
    result = {
        "schema": SCHEMA,
        "ok": True,
        "action": "check",
        "path": path,
        "skills": [row for row, _ in checked],
        "problems": [{"file": p.file.as_posix(), "line": p.line, "message": p.message} for p in problems],
    }
    if problems:
        raise CheckFailed(f"{len(problems)} problems in skills: {problems[0]}", details=result)
    return result


def _checked(
    skill: Skill, wrong_command: CommandCheck, wrong_option: OptionCheck
) -> tuple[dict[str, Any], list[Problem]]:
    problems = list(skill.problems)
    commands, fields = 0, 0
    for page in skill.pages:
        found = skill_commands.found_in(page.read_text(encoding="utf-8", errors="replace"))
        commands += sum(isinstance(f, Mention) for f in found)
        fields += sum(isinstance(f, FieldMention) for f in found)
        problems += _page_problems(page, found, wrong_command, wrong_option)
    row = {
        "name": skill.fields.get("name"),
        "folder": skill.folder.as_posix(),
        "pages": len(skill.pages),
        "commands": commands,
        "fields": fields,
        "problems": len(problems),
    }
    return row, problems


def _page_problems(
    page: Path, found: list[Found], wrong_command: CommandCheck, wrong_option: OptionCheck
) -> Iterator[Problem]:
    for item in found:
        if isinstance(item, Unreadable):
            message: str | None = f"no shell reads this: {item.text!r}"
        elif isinstance(item, Mention):
            message = wrong_command(item.words, item.complete)
        elif isinstance(item, OptionMention):
            message = wrong_option(item.name)
        else:
            message = _wrong_field(item)
        if message is not None:
            yield Problem(page, item.line, message)


def _action(schema: dict[str, Any], words: tuple[str, ...]) -> str | None:
    """The action of a command such as `kb list` or `support knowledge list`; None when it has none."""
    known = schemas.actions(schema)
    return next((action for n in (2, 1) if (action := "-".join(words[:n])) in known), None)


def _wrong_field(item: FieldMention) -> str | None:
    """What is wrong with a field, by the schema of its command."""
    name = item.words[0]
    schema = schemas.published(name)
    if schema is None:
        return f"`winml {name}` has no published JSON, so `{item.path}` is no field of it"
    missing = schemas.missing_field(schema, item.path, action=_action(schema, item.words[1:]))
    if missing is None:
        return None
    near = nearest(missing.part, missing.known)
    told = f"; nearest is `{near}`" if near else f"; known: {', '.join(missing.known) or 'none'}"
    return f"the JSON of `winml {name}` has no field `{item.path}`: `{missing.part}` is unknown{told}"

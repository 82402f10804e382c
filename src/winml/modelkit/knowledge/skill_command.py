"""`winml skill`: checks the format of skills for agents, and the commands and fields they mention."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal

from winml.modelkit.core import schemas
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import CheckFailed, RequestError
from winml.modelkit.core.suggest import near_path, nearest
from winml.modelkit.knowledge import skill_commands, skills
from winml.modelkit.knowledge.skill_commands import FieldMention, Mention, OptionMention, PageItem, Unreadable
from winml.modelkit.knowledge.skills import Problem

FOLDER = "skills"

CommandCheck = Callable[[tuple[str, ...], bool], str | None]
"""Takes the words after `winml` and whether they must be complete; returns what is wrong with them."""
OptionCheck = Callable[[str], str | None]
"""Returns what is wrong with an option that is mentioned without its command."""


@dataclass(frozen=True, kw_only=True)
class SkillRow:
    """A skill with what was checked in it."""

    name: str | None
    folder: str
    pages: int
    commands: int
    fields: int
    problems: int


@dataclass(frozen=True, kw_only=True)
class SkillProblem:
    """A problem on a page."""

    file: str
    line: int
    message: str


@dataclass(frozen=True, kw_only=True)
class SkillCheck:
    schema: Literal["winml/skill/1"] = "winml/skill/1"
    ok: Literal[True] = True
    action: Literal["check"] = "check"
    path: str
    skills: tuple[SkillRow, ...]
    problems: tuple[SkillProblem, ...]


def default_folder() -> str:
    """The skills of the current folder, or those that ship with winml, in its package or its checkout."""
    package = Path(__file__).parents[1]
    places = (Path(FOLDER), package / FOLDER, package.parents[2] / FOLDER)
    return str(next((place for place in places if place.is_dir()), FOLDER))


def check_skills(path: str, wrong_command: CommandCheck, wrong_option: OptionCheck) -> SkillCheck:
    """Check every skill in a folder; raises CheckFailed if there are problems."""
    root = Path(path)
    if not root.is_dir():
        raise RequestError(f"folder not found: `{path}`", hint=near_path(path, "give a skill, or a folder of skills"))
    found = [skills.read(folder) for folder in skills.folders(root)]
    if not found:
        raise RequestError(f"there is no `{skills.PAGE}` in `{path}`", hint="give a skill, or a folder of skills")
    rows: list[SkillRow] = []
    problems: list[Problem] = []
    for skill in found:
        mentions = {
            page: skill_commands.find_mentions(page.read_text(encoding="utf-8", errors="replace"))
            for page in skill.pages
        }
        wrong = [*skill.problems]
        for page, of_page in mentions.items():
            wrong += _page_problems(page, of_page, wrong_command, wrong_option)
        every = [mention for of_page in mentions.values() for mention in of_page]
        rows.append(
            SkillRow(
                name=skill.fields.get("name"),
                folder=skill.folder.as_posix(),
                pages=len(mentions),
                commands=sum(isinstance(mention, Mention) for mention in every),
                fields=sum(isinstance(mention, FieldMention) for mention in every),
                problems=len(wrong),
            )
        )
        problems += wrong
    listed = tuple(SkillProblem(file=p.file.as_posix(), line=p.line, message=p.message) for p in problems)
    result = SkillCheck(path=path, skills=tuple(rows), problems=listed)
    if problems:
        raise CheckFailed(f"{len(problems)} problems in skills: {problems[0]}", result=result)
    return result


def _page_problems(
    page: Path, found: Iterable[PageItem], wrong_command: CommandCheck, wrong_option: OptionCheck
) -> Iterator[Problem]:
    for item in found:
        if isinstance(item, Unreadable):
            message: str | None = f"not valid shell: {item.text!r}"
        elif isinstance(item, Mention):
            message = wrong_command(item.words, item.complete)
        elif isinstance(item, OptionMention):
            message = wrong_option(item.name)
        else:
            message = _wrong_field(item)
        if message is not None:
            yield Problem(page, item.line, message)


def _wrong_field(item: FieldMention) -> str | None:
    """What is wrong with a field, by the schema of its command."""
    name = item.words[0]
    schema = schemas.load_schema(name)
    if schema is None:
        return f"`winml {name}` has no published JSON, so `{item.path}` is not a field of it"
    # The action of `kb list` is `list`, that of `support knowledge list` is `knowledge-list`.
    known, rest = schemas.actions(schema), item.words[1:]
    action = next((action for n in (2, 1) if (action := "-".join(rest[:n])) in known), None)
    missing = schemas.missing_field(schema, item.path, action=action)
    if missing is None:
        return None
    near = nearest(missing.part, missing.known)
    suggestion = f"; did you mean `{near}`?" if near else f"; known: {', '.join(missing.known) or 'none'}"
    return f"the JSON of `winml {name}` has no field `{item.path}`: `{missing.part}` is unknown{suggestion}"

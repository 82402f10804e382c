"""The commands that a page shows, and the JSON fields it mentions.

Commands are in blocks of `sh` or `text`, where they must be complete, or between backticks in the text, where a command
may be given without its arguments, and an option without its command. Fields follow `| jq`, or are in a paragraph that
begins with "JSON of `winml COMMAND`": every other word in backticks there is a field.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from winml.modelkit.core.dataclass import dataclass

PROGRAMS = ("winml", "wmk")
_SHELLS = ("sh", "bash", "console", "text", "")
_OPERATORS = ("|", "||", "&&", ";", "&", ">", ">>", "2>", "<")
_CODE = re.compile(r"`([^`]+)`")
_OPTION = re.compile(r"(--[a-z][a-z-]*)(?:[ =].*)?")
_FIELD = re.compile(r"\.?[a-z_]\w*(\[\])?(\.\w+(\[\])?)*")
_JSON_OF = "JSON of `"


@dataclass(frozen=True)
class Mention:
    """A command on a line of a page."""

    line: int
    words: tuple[str, ...]
    """What follows the program's name."""
    complete: bool


@dataclass(frozen=True)
class OptionMention:
    """An option in the text, of any command."""

    line: int
    name: str


@dataclass(frozen=True)
class FieldMention:
    """A field of a command's JSON, by its dotted path."""

    line: int
    words: tuple[str, ...]
    path: str


@dataclass(frozen=True)
class Unreadable:
    """A line in a code block that no shell would read."""

    line: int
    text: str


PageItem = Mention | OptionMention | FieldMention | Unreadable


def find_mentions(text: str) -> list[PageItem]:
    """Everything on a page that can be checked, in order."""
    found: list[PageItem] = []
    for start, language, lines in _parts(text):
        if language is None:
            found += _in_text(start, lines)
        elif language in _SHELLS:
            found += _in_shell(start, lines)
    return found


def _parts(text: str) -> Iterator[tuple[int, str | None, list[str]]]:
    """Blocks with their language and paragraphs with None, each with the number of its first line."""
    start, language, lines = 1, None, list[str]()
    for number, line in enumerate([*text.splitlines(), ""], 1):
        fence = line.strip().startswith("```")
        if fence or (language is None and not line.strip()):
            yield start, language, lines
            opening = fence and language is None
            start, language, lines = number + 1, line.strip()[3:].strip() if opening else None, []
        else:
            lines.append(line)
    if lines:
        yield start, language, lines


def _in_shell(start: int, lines: list[str]) -> Iterator[PageItem]:
    pending, first = "", start
    for number, line in enumerate(lines, start):
        first = first if pending else number
        pending += line.strip().removeprefix("$ ").removesuffix("\\").strip() + " "
        if line.rstrip().endswith("\\"):
            continue
        command, pending = pending.strip(), ""
        if any(f"{program} " in command for program in PROGRAMS):
            yield from _in_line(first, command)


def _in_line(number: int, command: str) -> Iterator[PageItem]:
    """The commands of one shell line; a `jq` after one mentions a field of it."""
    reader = shlex.shlex(command, posix=True, punctuation_chars="|&;<>")
    reader.whitespace_split = True
    reader.commenters = "#"
    try:
        words = list(reader)
    except ValueError:
        yield Unreadable(number, command)
        return
    before: tuple[str, ...] = ()
    for part in _split(words):
        plain = [word for i, word in enumerate(part) if i or not re.fullmatch(r"\w+=.*", word)]
        if plain and plain[0] in PROGRAMS:
            before = tuple(plain[1:])
            yield Mention(number, before, complete=True)
        elif plain and plain[0] == "jq" and before:
            yield from (FieldMention(number, before, w.lstrip(".")) for w in plain[1:] if w.startswith("."))


def _split(words: list[str]) -> Iterator[list[str]]:
    part: list[str] = []
    for word in words:
        if word in _OPERATORS:
            yield part
            part = []
        else:
            part.append(word)
    yield part


def _in_text(start: int, lines: list[str]) -> Iterator[PageItem]:
    fields_of: tuple[str, ...] | None = None
    names_fields = bool(lines) and lines[0].lstrip().startswith(_JSON_OF)
    for number, line in enumerate(lines, start):
        for code in _CODE.findall(line):
            words = code.split()
            if len(words) > 1 and words[0] in PROGRAMS:
                mention = Mention(number, tuple(words[1:]), complete=False)
                yield mention
                if names_fields and fields_of is None:
                    fields_of = mention.words
            elif option := _OPTION.fullmatch(code):
                yield OptionMention(number, option[1])
            elif fields_of is not None and _FIELD.fullmatch(code):
                yield FieldMention(number, fields_of, code.lstrip("."))

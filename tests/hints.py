"""Commands and options that messages of the program name: whether they exist, without running them."""

from __future__ import annotations

import ast
import re
import shlex
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click

from winml.modelkit.cli.command_check import wrong_command, wrong_option
from winml.modelkit.cli.main import COMMANDS

_QUOTED = re.compile(r"`([^`\n]+)`")
_LINES = re.compile(r"^\s*(?:hint|fix|next|note|warning): (.*)$", re.MULTILINE)
_VALUE = "1"
"""Stands for a value that is only known at run time: it is a number, a name and a path."""


def named_commands(message: str) -> Iterator[tuple[str, ...]]:
    """The commands in a message, as words behind `winml`."""
    for quoted in _QUOTED.findall(message):
        if quoted.startswith("winml "):
            yield tuple(_VALUE if word.isupper() else word for word in _split(quoted)[1:])


def _split(command: str) -> list[str]:
    """The words of a command line as the system's shell takes them apart: a backslash is a letter on Windows."""
    if sys.platform != "win32":
        return shlex.split(command)
    return [word.replace('"', "") for word in re.findall(r'(?:"[^"]*"|[^\s"])+', command)]


def _named_options(message: str) -> Iterator[str]:
    for quoted in _QUOTED.findall(message):
        if quoted.startswith("--"):
            yield quoted.split()[0].split("=")[0]


def wrong_words(text: str, args: tuple[str, ...]) -> list[str]:
    """What is wrong with the commands and options that the hints of a run name."""
    found: list[str | None] = []
    for message in _LINES.findall(text):
        whole = message.startswith("winml ")  # to be pasted as it stands; others may name a part of a command
        quoted = f"`{message}`" if whole else message
        commands = list(named_commands(quoted))
        found += [wrong_command(words, whole) for words in commands]
        places = [name for name in (_command(args), *map(_command, commands)) if name]
        for option in _named_options(quoted) if places else ():
            if all(_unknown(option, place) for place in places):
                found.append(f"none of {places} has the option `{option}`: {message}")
    return [one for one in found if one is not None]


def _command(args: tuple[str, ...]) -> tuple[str, ...]:
    """The words of a command without its arguments; nothing for one that does not exist."""
    if not args or args[0] not in COMMANDS:
        return ()
    command = import_module(COMMANDS[args[0]][0]).command
    if isinstance(command, click.Group):
        return args[:2] if len(args) > 1 and args[1] in command.commands else ()
    return args[:1]


def _unknown(option: str, place: tuple[str, ...]) -> bool:
    return "has no option" in (wrong_command((*place, option), False) or "")


def _texts(path: Path) -> Iterator[str]:
    """Every text in a module, with a stand-in for what is only known at run time."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(v.value) if isinstance(v, ast.Constant) else _VALUE for v in node.values)


def wrong_words_in_source(folder: Path) -> list[str]:
    """What is wrong with the commands and options that any text in the source names."""
    found = []
    for path in sorted(folder.rglob("*.py")):
        for text in _texts(path):
            wrong = [wrong_command(words, False) for words in named_commands(text) if words]
            wrong += [wrong_option(name) for name in _named_options(text)]
            found += [f"{path.name}: {one}" for one in wrong if one is not None and not _is_a_name_alone(one)]
    return sorted(set(found))


def _is_a_name_alone(wrong: str) -> bool:
    """Whether a text only names an option or a pattern of commands, as docstrings do."""
    return "requires an argument" in wrong or any(
        word in wrong for word in ("`winml 1`", "`--tls-...`", "`---`", "[--")
    )

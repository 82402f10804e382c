"""Check the words of a command against the options it has, without running it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module

import click

from winml.modelkit.cli.main import COMMANDS
from winml.modelkit.cli.spellings import option_names
from winml.modelkit.core.suggest import nearest

_HELP = ("-h", "--help", "--help-all")
_VERSION = ("-V", "--version")
_ELLIPSES = ("...", "…")


def wrong_command(words: tuple[str, ...], complete: bool) -> str | None:
    """What is wrong with the words after `winml`; None when they parse. A command's name alone needs no arguments."""
    if words[0] == "help":
        words, complete = (*words[1:], "--help"), True
    if words[0] in (*_HELP, *_VERSION):
        return None
    if words[0] not in COMMANDS:
        return f"unknown command `winml {words[0]}`{_nearest(words[0], COMMANDS)}"
    command: click.Command = import_module(COMMANDS[words[0]][0]).command
    name, rest = f"winml {words[0]}", list(words[1:])
    while isinstance(command, click.Group):
        if not rest or rest[0] in (*_HELP, *_ELLIPSES):
            return f"`{name}` needs one of: {', '.join(command.commands)}" if complete and not rest else None
        inner = command.commands.get(rest[0])
        if inner is None:
            return f"unknown command `{name} {rest[0]}`{_nearest(rest[0], command.commands)}"
        command, name, rest = inner, f"{name} {rest[0]}", rest[1:]
    return _wrong_options(command, name, rest, complete)


def wrong_option(name: str) -> str | None:
    """What is wrong with an option that is named without its command; None when some command has it."""
    known = {*_HELP, *_VERSION}
    for module, *_ in COMMANDS.values():
        known.update(_options(import_module(module).command))
    return None if name in known else f"no command has the option `{name}`{_nearest(name, sorted(known))}"


def _options(command: click.Command) -> Iterator[str]:
    """The options as they are written today."""
    yield from (name for name, now in option_names(command).items() if name == now)
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            yield from _options(inner)


def _wrong_options(command: click.Command, name: str, words: list[str], complete: bool) -> str | None:
    plain = [word for word in words if word not in (*_HELP, *_ELLIPSES)]
    whole = complete and plain == words
    spelled = option_names(command)
    for word in (word.partition("=")[0] for word in plain):
        if spelled.get(word, word) != word:
            return f"`{name}`: `{word}` is now written `{spelled[word]}`"
    try:
        command.make_context(name, plain)
    except click.NoSuchOption as error:
        return f"`{name}` has no option `{error.option_name}`{_nearest(error.option_name, _options(command))}"
    except click.MissingParameter as error:
        return f"`{name}`: {error.format_message()}" if whole else None
    except click.UsageError as error:
        return f"`{name}`: {error.format_message()}"
    return None


def _nearest(name: str, known: Iterable[str]) -> str:
    near = nearest(name, known)
    return f"; did you mean `{near}`?" if near else ""

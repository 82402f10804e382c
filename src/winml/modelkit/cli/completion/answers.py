"""What the word at the cursor may become: commands, options and their values."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from winml.modelkit.cli.completion import values
from winml.modelkit.cli.completion.protocol import Answer, read_question, write_answer
from winml.modelkit.cli.main import COMMANDS

if TYPE_CHECKING:
    import click

_HELP_OPTIONS = {"--help": "Show this help and exit.", "--help-all": "Show all options."}
_PROGRAM_OPTIONS = {**_HELP_OPTIONS, "--version": "Show the versions."}


def print_answer(words: list[str]) -> int:
    """Answer `SHELL INDEX WORD...`; returns the exit code."""
    shell, index = words[0], int(words[1])
    question = read_question(shell, index, words[2:])
    write_answer(shell, question, find_answer(question.before, question.current))
    return 0


def find_answer(before: tuple[str, ...], current: str) -> Answer:
    """What `current` may become after the words before it."""
    if not before:
        commands = {name: line for name, (_, line) in COMMANDS.items()}
        return Answer("words", _PROGRAM_OPTIONS if current.startswith("-") else commands)
    if before[0] == "help":
        return Answer("words", {name: line for name, (_, line) in COMMANDS.items()})
    if before[0] not in COMMANDS:
        return Answer("words")
    return _answer_of_command(import_module(COMMANDS[before[0]][0]).command, before[0], before[1:], current)


def _answer_of_command(command: click.Command, name: str, before: tuple[str, ...], current: str) -> Answer:
    import click

    while isinstance(command, click.Group):
        inner = next((word for word in before if not word.startswith("-")), None)
        if inner is None:
            if current.startswith("-"):
                return Answer("words", _list_options(command, frozenset()))
            return Answer("words", {key: _first_sentence(found.help) for key, found in command.commands.items()})
        if inner not in command.commands:
            return Answer("words")
        command, name, before = command.commands[inner], f"{name} {inner}", before[before.index(inner) + 1 :]
    return _answer_of_leaf(command, name, before, current)


def _answer_of_leaf(command: click.Command, name: str, before: tuple[str, ...], current: str) -> Answer:
    import click

    by_word = {word: p for p in command.params for word in (*p.opts, *p.secondary_opts) if isinstance(p, click.Option)}
    awaiting: click.Parameter | None = None
    given: set[str] = set()
    positionals = 0
    only_arguments = False
    for word in before:
        if awaiting is not None:
            awaiting = None
        elif only_arguments or not word.startswith("-") or word == "-":
            positionals += 1
        elif word == "--":
            only_arguments = True
        else:
            option = by_word.get(word.partition("=")[0])
            if option is not None:
                given.add(option.name or "")
                awaiting = option if _takes_value(option) and "=" not in word else None
    if awaiting is not None:
        return _values_of(awaiting, name, current)
    option_word, equals, typed = current.partition("=")
    if not only_arguments and equals and option_word in by_word:
        answer = _values_of(by_word[option_word], name, typed)
        return Answer(answer.kind, {f"{option_word}={value}": text for value, text in answer.values.items()})
    argument = _argument_at(command, positionals)
    if not only_arguments and (current.startswith("-") or argument is None):
        return Answer("words", _list_options(command, frozenset(given)))
    return Answer("words") if argument is None else _values_of(argument, name, current)


def _takes_value(option: click.Option) -> bool:
    return not option.is_flag and not option.count


def _argument_at(command: click.Command, position: int) -> click.Parameter | None:
    """The argument that a word at this place belongs to; the last may take any number."""
    import click

    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            if position == 0 or parameter.nargs == -1:
                return parameter
            position -= 1
    return None


def _list_options(command: click.Command, given: frozenset[str]) -> dict[str, str]:
    """Options by their long names, without those that are given and may not be repeated."""
    import click

    found: dict[str, str] = {}
    for parameter in command.params:
        if not isinstance(parameter, click.Option) or parameter.hidden:
            continue
        if parameter.name in given and not parameter.multiple:
            continue
        for word in (*parameter.opts, *parameter.secondary_opts):
            if word.startswith("--") or len(parameter.opts) == 1:
                found[word] = _first_sentence(parameter.help)
    return {**found, **_HELP_OPTIONS}


def _values_of(parameter: click.Parameter, command: str, typed: str) -> Answer:
    import click

    if isinstance(parameter.type, click.Choice):
        return Answer("words", dict.fromkeys(map(str, parameter.type.choices), ""))
    words = (*parameter.opts, *parameter.secondary_opts)
    if isinstance(parameter, click.Argument):
        return values.ARGUMENTS.get(parameter.name or "", values.list_files)(typed)
    for word in words:
        found = values.SPECIAL.get((command, word)) or values.OPTIONS.get(word)
        if found is not None:
            return found(typed)
    by_metavar = values.METAVARS.get(str(parameter.metavar))
    return Answer("words") if by_metavar is None else by_metavar(typed)


def _first_sentence(text: str | None) -> str:
    """The start of a help text as one line."""
    line = " ".join((text or "").split())
    return line.partition(". ")[0].rstrip(".")

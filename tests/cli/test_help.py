"""Help: it fits the terminal, says what every option is for, and its examples can be pasted."""

from __future__ import annotations

import ast
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest

from winml.modelkit.cli import help_groups, help_layout, main, reference
from winml.modelkit.cli.command_check import wrong_command
from winml.modelkit.cli.help import Command, Group
from winml.modelkit.cli.help_page import long_name
from winml.modelkit.core import errors

Show = Callable[..., str]
SOURCE = Path(main.__file__).parents[1]
CONTRACT = Path(__file__).parents[2] / "docs" / "contract.md"
WIDTHS = (60, 80, 120)
READ_BY_LIBRARIES = {"HOME", "TMPDIR", "HF_HOME"}
"""Variables that Python, or the library of Hugging Face, reads for winml."""


def _commands() -> Iterator[tuple[str, click.Command]]:
    """Every command, group and sub-command, by the words behind `winml`."""

    def below(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
        yield path, command
        if isinstance(command, click.Group):
            for name, inner in command.commands.items():
                yield from below(f"{path} {name}", inner)

    for name, (module, *_) in main.COMMANDS.items():
        yield from below(name, import_module(module).command)


COMMANDS = dict(_commands())
HELPS = [
    ("--help",),
    ("--help-all",),
    *((*path.split(), word) for path in COMMANDS for word in ("--help", "--help-all")),
]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Show:
    """Runs the program in a terminal of a width and returns what it wrote."""
    monkeypatch.setattr(sys, "argv", ["winml"])

    def show(words: tuple[str, ...], width: int = 80) -> str:
        monkeypatch.setenv("COLUMNS", str(width))
        assert main.run(list(words)) == 0
        said = capsys.readouterr()
        assert said.err == ""
        return said.out

    return show


def test_every_command_is_of_the_class_that_has_this_help() -> None:
    assert all(isinstance(command, Command | Group) for command in COMMANDS.values())


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_longer_than_the_terminal_is_wide_and_no_word_is_broken(width: int, shown: Show) -> None:
    for words in HELPS:
        text = shown(words, width)
        assert max(map(len, text.splitlines())) < width, words
        assert _words(text) == _words(shown(words, 120)), words


def _words(text: str) -> list[str]:
    """The words of a help in their order, but for the marks that continue an example."""
    return [word for word in text.split() if word not in ("\\", "`")]


def test_a_pipe_without_a_width_gets_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(os, "get_terminal_size", _no_terminal)
    assert help_layout.terminal_width() == 79


def _no_terminal(*_: object) -> None:
    raise OSError("not a terminal")


@pytest.mark.parametrize(("columns", "width"), [(60, 59), (500, 119), (3, 39)])
def test_the_width_follows_the_terminal_within_reason(
    columns: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(os, "get_terminal_size", lambda *_: os.terminal_size((columns, 24)))
    assert help_layout.terminal_width() == width


def test_every_command_has_one_job() -> None:
    listed = [name for names in main.JOBS.values() for name in names]
    assert sorted(listed) == sorted(main.COMMANDS)


@pytest.mark.parametrize("path", COMMANDS)
def test_every_option_has_a_heading_and_every_argument_a_description(path: str) -> None:
    for parameter in COMMANDS[path].params:
        if isinstance(parameter, click.Argument):
            assert help_groups.describe_argument(path, parameter), f"describe {parameter.name} in ARGUMENTS"
        elif isinstance(parameter, click.Option) and not parameter.hidden:
            assert help_groups.find_entry(path, long_name(parameter)), f"put {parameter.opts} into HEADINGS"


def test_no_entry_is_about_an_option_that_no_command_has() -> None:
    def names(table: help_groups.Headings) -> set[str]:
        return {name for both in table.values() for words in both for name in words.split()}

    def options(prefix: str) -> set[str]:
        under = [command for path, command in COMMANDS.items() if f"{path} ".startswith(prefix)]
        return {long_name(p) for command in under for p in command.params if isinstance(p, click.Option)}

    stale = names(help_groups.HEADINGS) - options("")
    for path, table in help_groups.BY_COMMAND.items():
        stale |= {f"{path} {name}" for name in names(table) - options(f"{path} ")}
    known = {p.name for command in COMMANDS.values() for p in command.params if isinstance(p, click.Argument)}
    stale |= {name for name in help_groups.ARGUMENTS if name.split()[-1] not in known}
    for key in help_groups.DEFAULTS:
        path, _, name = key.rpartition(" ")
        if name not in options(f"{path} " if path else ""):
            stale.add(key)
    assert not stale


def test_no_option_is_listed_twice() -> None:
    for table in (help_groups.HEADINGS, *help_groups.BY_COMMAND.values()):
        names = [name for both in table.values() for words in both for name in words.split()]
        assert len(names) == len(set(names))


@pytest.mark.parametrize("path", COMMANDS)
def test_all_options_are_shown_by_one_help_or_the_other(path: str, shown: Show) -> None:
    common, everything = shown((*path.split(), "--help")), shown((*path.split(), "--help-all"))
    options = [p for p in COMMANDS[path].params if isinstance(p, click.Option) and not p.hidden]
    hidden = [p for p in options if not _lists(common, p)]
    assert all(_lists(everything, p) for p in options)
    counted = re.search(rf"^(\d+) more options?: winml {path} --help-all$", common, re.MULTILINE)
    assert len(hidden) == (0 if counted is None else int(counted[1]))
    assert not hidden or len(hidden) < len(options)


def _lists(text: str, option: click.Option) -> bool:
    return re.search(rf"^  (-\w, )?{re.escape(long_name(option))}\b", text, re.MULTILINE) is not None


@pytest.mark.parametrize("path", COMMANDS)
def test_every_default_is_stated(path: str, shown: Show) -> None:
    text = " ".join(shown((*path.split(), "--help-all")).split())
    for option in COMMANDS[path].params:
        value = option.default if isinstance(option, click.Option) else None
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            stated = f"{value:g}" if isinstance(value, float) else str(value)
            described = text[text.index(f" {long_name(option)} ") :]
            assert re.search(rf"\(([^()]*; )?default {re.escape(stated)}[;)]", described), option.name


def test_the_default_target_is_stated_by_every_command_that_chooses_one(shown: Show) -> None:
    for name in ("analyze", "autoconfig", "build", "compare", "compile", "config", "eval", "perf", "quantize"):
        text = " ".join(shown((name, "--help")).split())
        assert f"(default: {help_groups.AUTO})." in text, name


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_has_examples_that_parse(path: str) -> None:
    lines = (COMMANDS[path].epilog or "").splitlines()
    assert lines
    for line in lines:
        program, *words = shlex.split(line.partition(" > ")[0])
        assert program == "winml"
        assert " ".join(words).startswith(path), line
        assert wrong_command(tuple(words), True) is None, line


@pytest.mark.posix("the mark that continues a line is another one on Windows")
@pytest.mark.parametrize("width", [40, *WIDTHS])
def test_an_example_that_is_continued_is_the_same_command(width: int, shown: Show) -> None:
    for path, command in COMMANDS.items():
        text = shown((*path.split(), "--help"), width)
        pasted = text[text.index("Examples:\n") + len("Examples:\n") :].split("\n\n")[0]
        commands = pasted.replace("\\\n", "").splitlines()
        assert [shlex.split(one) for one in commands] == [
            shlex.split(one) for one in (command.epilog or "").splitlines()
        ]


def test_sub_commands_are_described_by_a_whole_sentence(shown: Show) -> None:
    for path, command in COMMANDS.items():
        if isinstance(command, click.Group):
            text = " ".join(shown((*path.split(), "--help"), 60).split())
            for name, inner in command.commands.items():
                sentence = (inner.help or "").partition(". ")[0].rstrip(".")
                assert f"{name} {sentence}." in text


@pytest.mark.parametrize("words", [("help", "perf"), ("help", "feed", "push")], ids=" ".join)
def test_help_command_shows_everything_about_a_command(words: tuple[str, ...], shown: Show) -> None:
    assert shown(words) == shown((*words[1:], "--help-all"))
    assert "Exit codes:" in shown(words)


def test_help_alone_is_the_help_of_the_program(shown: Show) -> None:
    assert shown(("help",)) == shown(("--help",)) == shown(("-h",)) == shown(())


def test_help_about_an_unknown_command_proposes_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["help", "pref"]) == 2
    assert "did you mean `perf`?" in capsys.readouterr().err


def test_a_group_without_a_command_names_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["winml"])
    assert main.run(["trace"]) == 2
    assert capsys.readouterr().err == (
        "error: `winml trace` needs one of: diff\nhint: `winml trace --help` shows the options\n"
    )


def test_the_exit_codes_are_those_of_the_errors_and_of_the_contract(shown: Show) -> None:
    table = CONTRACT.read_text(encoding="utf-8").partition("## Exit codes\n")[2].partition("\n\n")[0]
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)}
    assert set(reference.EXIT_CODES) == {0, errors.EXIT_BUG, *errors.EXIT_CODES}
    assert set(reference.EXIT_CODES) - {errors.EXIT_BUG} == documented
    text = shown(("--help-all",))
    assert all(f"\n  {code} " in text for code in reference.EXIT_CODES)


def test_the_environment_variables_are_those_that_the_code_reads(shown: Show) -> None:
    found: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        if path.name != "reference.py":
            found |= set(_variables(path))
    found |= {str(p.envvar) for command in COMMANDS.values() for p in command.params if p.envvar}
    assert found - {*reference.ENVIRONMENT, *reference.INTERNAL} == set(), "add them to cli/reference.py"
    assert {*reference.ENVIRONMENT, *reference.INTERNAL} - found == READ_BY_LIBRARIES
    text = shown(("--help-all",))
    assert all(f"\n  {name} " in text for name in reference.ENVIRONMENT)


def _variables(path: Path) -> Iterator[str]:
    """Names of variables that a module reads, and every text in it that is such a name of winml's own."""
    text = path.read_text(encoding="utf-8")
    if "environ" not in text and "WINML_" not in text:
        return
    tree = ast.parse(text)
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value.value, str)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and re.fullmatch(r"WINML_[A-Z_]+", str(node.value)):
            yield str(node.value)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("get", "getenv"):
            read = node.args[0] if "environ" in ast.unparse(node.func) or node.func.attr == "getenv" else None
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and _is_environ(node.value):
            read = node.slice
        elif isinstance(node, ast.Compare) and any(map(_is_environ, node.comparators)):
            read = node.left
        else:
            continue
        if isinstance(read, ast.Constant):
            yield str(read.value)
        elif isinstance(read, ast.Name) and read.id in constants:
            yield constants[read.id]


def _is_environ(node: ast.expr) -> bool:
    return ast.unparse(node) == "os.environ"

"""One name per thing: the table of all options of all commands, and what it must not contain."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module

import click
import pytest

from winml.modelkit.cli import main
from winml.modelkit.cli.options import json_option, model_options
from winml.modelkit.cli.spellings import EarlierOption, FirstArgument


@dataclass(frozen=True)
class Row:
    """An option of a command."""

    command: str
    names: tuple[str, ...]
    """As it is written, and the other side of a switch."""
    parameter: str
    kind: str
    """What it takes: its placeholder, its choices, or `flag`."""
    meaning: str

    @property
    def name(self) -> str:
        """Its long name."""
        return next(name for name in self.names if name.startswith("--"))


def list_commands(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for inner, found in command.commands.items():
            yield from list_commands(f"{name} {inner}", found)
    else:
        yield name, command


def all_commands() -> dict[str, click.Command]:
    return {
        name: command
        for first, row in main.COMMANDS.items()
        for name, command in list_commands(first, import_module(row[0]).command)
    }


def rows_of(name: str, command: click.Command) -> Iterator[Row]:
    for option in command.params:
        if not isinstance(option, click.Option) or isinstance(option, EarlierOption):
            continue
        kind = "flag" if option.is_flag else option.make_metavar(click.Context(command))
        names = (*option.opts, *option.secondary_opts)
        yield Row(name, names, option.name or "", kind, option.help or "")


def make_table() -> list[Row]:
    """Every option of every command, without earlier spellings."""
    return [row for name, command in all_commands().items() for row in rows_of(name, command)]


KINDS = {
    "flag": "on or off",
    "N": "a whole number",
    "N,...": "a list of whole numbers",
    "S": "seconds",
    "X": "a fraction or cosine",
    "PCT": "a percentage",
    "SIZE": "bytes, such as 500M",
    "AGE": "a time span back from now, such as 30d",
    "TIME": "a time span, such as 10m",
    "GAIN": "30% or 1.5x",
    "FILE": "a file",
    "DIR": "a folder",
    "DIR|FILE.zip": "a folder or an archive to write",
    "KEY": "a public key, or its file",
    "FILE.npz": "arrays by name",
    "FILE.html": "a page",
    "FILE|NAME": "a file, or the name of something that ships with winml",
    "FILE|random": "a file, or random inputs",
    "NAME|FILE.py:NAME": "a metric of the task, or a function in a file",
    "INPUT=OUTPUT": "an input of a model and an output of it",
    "NAME=VALUE": "a setting and its value",
    "DATA": "a file, a folder or `random`",
    "MODEL": "what `-m` takes",
    "EP[/DEVICE]": "a target",
    "TARGET,...": "a list of targets",
    "EP": "an execution provider",
    "DEVICE": "npu, gpu, cpu or auto",
    "PRECISION": "int8, fp16, ...",
    "LEVEL": "none, basic, extended or all",
    "PASS": "a graph pass",
    "OP": "an operator type",
    "NODE": "a node of a graph",
    "TASK": "a task of the hub",
    "FAMILY": "a model family",
    "STATUS": "a status of a finding",
    "PRIORITY": "P0, P1, ...",
    "PART": "a part of a composite model",
    "REV": "a revision on the hub",
    "REF": "a revision of git",
    "ID": "a hypothesis",
    "ID,...": "a list of hypotheses",
    "FIGURE": "a picture of a report",
    "NAME": "a name",
    "TEXT": "words",
    "NAME,...": "a list of names",
    "NAME=N": "a size",
    "NAME=N[,N…]": "a shape",
    "ROLE=NAME": "a column",
    "K=V": "an option of a provider",
    "[INPUT=]LOW:HIGH": "a range of values",
    "FEED": "an address of a feed",
    "STAMP": "a run",
    "VERSION": "a version",
    "PATTERN": "a pattern of file names",
    "ADDRESS": "a network address",
    "dask://HOST:PORT": "a cluster",
}
"""Every placeholder, and what it stands for; choices are written out."""

SEVERAL_KINDS = {
    "--output": "the one thing that a command writes: a file or a folder",
    "--metric": "what decides: of a task in `eval`, of folders that generate text in `compare`",
    "--prompt-tokens": "`perf` measures several lengths, `compare` decides at one",
    "--base": "a hypothesis in `kb judge`, a revision of git in `support review`",
}
"""Options that take different values in different commands, and why."""

INSTEAD = {
    "again": "--rebuild",
    "reinstall": "--rebuild",
    "recalibrate": "--rebuild",
    "recompute": "--rebuild",
    "refresh": "--rebuild",
    "redo": "--rebuild",
    "no-cache": "--rebuild",
    "ignore-cache": "--rebuild",
    "continue": "--resume",
    "restart": "--resume",
    "replace": "--overwrite",
    "overwrite-output": "--overwrite",
    "no-compare": "--no-verify",
    "no-validate": "--no-verify",
    "no-check": "--no-verify",
    "calibration-data": "--calibration",
    "calib": "--calibration",
    "dataset": "--data",
    "cosine": "--min-agreement",
    "min-cosine": "--min-agreement",
    "similarity": "--min-agreement",
    "silent": "--quiet",
    "verbose": "(there is none)",
    "model-id": "--model",
    "model-path": "--model",
    "demo": "--sample",
    "example": "--sample",
    "provider": "--ep",
    "execution-provider": "--ep",
    "out": "--output",
    "out-dir": "--output-dir",
    "folder": "a DIR as argument, or --output",
    "num-samples": "--samples",
    "limit": "--samples",
    "random-seed": "--seed",
    "time-limit": "--timeout",
    "num-threads": "--threads",
}
"""Words that were or might be a second name for something that has one."""

NOT_OPPOSITES = {
    "--no-calibration": "A/A rounds of `compare`; evidence of contributions has this word",
}
"""`--no-X` that does not switch off `--X`, and why."""


def several_kinds(table: Iterable[Row]) -> dict[str, set[str]]:
    """Options that take different kinds of values."""
    found: dict[str, set[str]] = defaultdict(set)
    for row in table:
        found[row.name].add(row.kind)
    return {name: kinds for name, kinds in found.items() if len(kinds) > 1}


def several_names(table: Iterable[Row]) -> dict[str, set[str]]:
    """Things with several names: parameters of the same name in the code, and options with the same explanation."""
    found: dict[str, set[str]] = defaultdict(set)
    for row in table:
        found[row.parameter].add(row.name)
        found[row.meaning].add(row.name)
    return {thing: names for thing, names in found.items() if len(names) > 1}


def second_names(table: Iterable[Row]) -> dict[str, str]:
    """Options that are called by a word that something else is the name for."""
    return {name: INSTEAD[name.lstrip("-")] for row in table for name in row.names if name.lstrip("-") in INSTEAD}


def false_opposites(table: Iterable[Row]) -> set[str]:
    """`--no-X` beside an `--X` that takes a value, so that one does not switch off the other."""
    takes_value = {name for row in table if row.kind != "flag" for name in row.names}
    return {name for row in table for name in row.names if name.startswith("--no-") and f"--{name[5:]}" in takes_value}


def short_names(table: Iterable[Row]) -> dict[str, set[str]]:
    """Short options with several long ones."""
    found: dict[str, set[str]] = defaultdict(set)
    for row in table:
        for name in row.names:
            if not name.startswith("--"):
                found[name].add(row.name)
    return {short: names for short, names in found.items() if len(names) > 1}


TABLE = make_table()


def test_an_option_takes_the_same_kind_of_value_in_all_commands() -> None:
    assert set(several_kinds(TABLE)) == set(SEVERAL_KINDS)


def test_a_thing_has_one_name() -> None:
    assert several_names(TABLE) == {}
    assert second_names(TABLE) == {}
    assert short_names(TABLE) == {}


def test_an_option_with_no_switches_its_own_name_off() -> None:
    assert false_opposites(TABLE) == set(NOT_OPPOSITES)


def test_placeholders_are_the_known_ones() -> None:
    unknown = {(row.name, row.kind) for row in TABLE if row.kind not in KINDS and not row.kind.startswith("[")}
    assert unknown == set()


def test_every_option_says_what_it_means() -> None:
    assert [f"{row.command} {row.name}" for row in TABLE if not row.meaning.endswith(".")] == []


def test_short_and_long_names_belong_together() -> None:
    """`-m` is always there with `--model`, and so on."""
    pairs = {row.names for row in TABLE if any(not name.startswith("--") for name in row.names)}
    longs = {names[-1] for names in pairs}
    alone = {(row.command, row.name) for row in TABLE if len(row.names) == 1 and row.name in longs}
    assert alone == set()


def test_every_command_takes_json_and_quiet() -> None:
    for name, command in all_commands().items():
        assert {"--json", "--quiet"} <= {row.name for row in rows_of(name, command)}, name


OWN_FIRST_ARGUMENT = {
    "compare": "its arguments are a base and candidates, of which `-m` is the first",
    "feed push": "its argument is the folder that is published",
    "kb judge": "its argument is the file with the sessions",
    "support review": "its argument is the contribution",
}
"""Commands whose first argument is not `-m`, and why."""
NO_SAMPLE = {
    "debug": "the sample is not quantized",
    "feed push": "the name of something published",
    "feed list": "the name of something published",
    "feed pull": "the name of something published",
    "feed verify": "the name of something published",
    "kb judge": "a name in the file",
}
"""Commands where the sample is of no use or `-m` is not a model to work on, and why."""


def test_a_model_is_the_first_argument_or_the_sample_wherever_it_is_an_option() -> None:
    positional, with_sample, with_model = set(), set(), set()
    for name, command in all_commands().items():
        options = {row.name for row in rows_of(name, command)}
        if "--model" in options:
            with_model.add(name)
            with_sample |= {name} if "--sample" in options else set()
            positional |= {name} if any(isinstance(one, FirstArgument) for one in command.params) else set()
    assert with_model - positional == set(OWN_FIRST_ARGUMENT)
    assert with_model - with_sample == set(NO_SAMPLE)


def test_earlier_spellings_lead_to_an_option_or_argument_of_their_command() -> None:
    seen = set()
    for name, command in all_commands().items():
        for old in command.params:
            if isinstance(old, EarlierOption):
                seen.add(old.opts[0])
                assert old.to in {one.name for one in command.params if one is not old}, (name, old.opts)
                assert old.hidden
    assert "--continue" in seen


@pytest.mark.parametrize(
    ("option", "found"),
    [
        (click.option("--continue", "again", is_flag=True, help="Go on."), "--continue"),
        (click.option("--calib", metavar="FILE|random", help="Samples."), "--calib"),
        (click.option("--network", "model", metavar="MODEL", help="A network."), "--network"),
        (click.option("--target", "goal", metavar="X", help="A goal."), "--target"),
        (click.option("--machine", is_flag=True, help="Use the digits classifier that ships with winml."), "--machine"),
        (click.option("--no-seed", is_flag=True, help="No seed."), "--no-seed"),
        (click.option("-m", "--many", is_flag=True, help="Many."), "-m"),
    ],
)
def test_a_second_name_or_a_second_meaning_is_noticed(option: object, found: str) -> None:
    @click.command("made up")
    def command() -> None:
        pass

    for decorate in (json_option, model_options, option):
        command = decorate(command)  # type: ignore[operator]
    table = [*TABLE, *rows_of("made up", command)]
    objections = (
        several_names(table),
        {k: v for k, v in several_kinds(table).items() if k not in SEVERAL_KINDS},
        second_names(table),
        short_names(table),
        false_opposites(table) - set(NOT_OPPOSITES),
    )
    assert any(found in re.findall(r"-{1,2}[\w-]+", str(one)) for one in objections)

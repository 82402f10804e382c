from __future__ import annotations

import pytest

from winml.modelkit.cli.command_check import wrong_command, wrong_option


@pytest.mark.parametrize(
    "command",
    [
        "perf -m a.onnx --target qnn/npu",
        "kb show npu-006 --json",
        "perf --help",
        "help perf",
        "help",
        "--version",
        "compare a b --json",
    ],
)
def test_real_commands_parse(command: str) -> None:
    assert wrong_command(tuple(command.split()), True) is None


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("pref -m a.onnx", "unknown command `winml pref`; did you mean `perf`?"),
        ("perf --itterations 3", "`winml perf` has no option `--itterations`; did you mean `--iterations`?"),
        ("help pref", "unknown command `winml pref`; did you mean `perf`?"),
        ("kb lst", "unknown command `winml kb lst`; did you mean `list`?"),
        ("perf --iterations many", "'many' is not a valid integer"),
        ("kb report", "Missing option '-o'"),
        ("kb", "needs one of: list"),
        ("kb show a b", "unexpected extra argument (b)"),
    ],
)
def test_what_does_not_parse_is_told_with_the_nearest_name(command: str, told: str) -> None:
    assert told in str(wrong_command(tuple(command.split()), True))


def test_a_command_named_in_the_text_needs_no_arguments() -> None:
    assert wrong_command(("kb", "report"), False) is None
    assert wrong_command(("kb", "report", "..."), True) is None
    assert wrong_command(("kb", "report", "--otput"), False) is not None


def test_an_option_named_alone_has_to_be_one_of_some_command() -> None:
    assert [wrong_option(name) for name in ("--max-drop", "--package-name", "--no-tls", "--version")] == [None] * 4
    assert wrong_option("--max-drpo") == "no command has the option `--max-drpo`; did you mean `--max-drop`?"

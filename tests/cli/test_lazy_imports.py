"""Help must not wait for anything it does not need."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from winml.modelkit.cli import main
from winml.modelkit.cli.main import COMMANDS

HEAVY = ("rich", "numpy", "onnx", "onnxruntime", "psutil", "torch", "transformers", "scipy", "pandas")
HELP = [["--help"], ["--help-all"], ["--version"], *([name, "--help"] for name in COMMANDS)]
_RUN = """
import json, sys
from winml.modelkit.cli.main import run
seen = set()
for args in json.loads(sys.argv[1]):
    code = run(args)
    print(json.dumps([code, sorted(set(sys.modules) - seen)]), file=sys.stderr)
    seen.update(sys.modules)
"""


def _loaded(*lines: list[str]) -> list[set[str]]:
    """Packages that one process loads for the first time by running the program with each of `lines`."""
    argv = [sys.executable, "-c", _RUN, json.dumps(lines)]
    result = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    answers = [json.loads(line) for line in result.stderr.splitlines() if line.startswith("[")]
    assert [code for code, _ in answers] == [0] * len(lines)
    return [{name.partition(".")[0] for name in names} for _, names in answers]


@pytest.fixture(scope="module")
def by_help() -> dict[str, set[str]]:
    """What each help loads, one after the other, so that only the first of those that load a thing has it."""
    return dict(zip(map(" ".join, HELP), _loaded(*HELP), strict=True))


@pytest.mark.parametrize("args", HELP, ids=" ".join)
def test_help_imports_nothing_heavy(args: list[str], by_help: dict[str, set[str]]) -> None:
    assert not by_help[" ".join(args)].intersection(HEAVY)


def test_top_level_help_does_not_even_need_click(by_help: dict[str, set[str]]) -> None:
    assert list(by_help)[:2] == ["--help", "--help-all"]
    assert not any("click" in by_help[words] for words in ("--help", "--help-all"))
    assert any("click" in loaded for loaded in by_help.values()), "it would have been seen"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_examples_that_start_with_the_program(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run([name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "Examples:" in shown
    assert f"winml {name}" in shown


def test_the_parent_of_perf_imports_neither_numpy_nor_onnx() -> None:
    (loaded,) = _loaded(["perf", "--sample", "--target", "cpu", "--sessions", "1", "--iterations", "2", "--json"])
    # Only Linux tells the memory of another process in a file.
    heavy = {*HEAVY} - (set() if sys.platform == "linux" else {"psutil"})
    assert not loaded & heavy

"""Help must not wait for anything it does not need."""

from __future__ import annotations

import subprocess
import sys

import pytest

from winml.modelkit.cli.main import COMMANDS

HEAVY = ("rich", "numpy", "onnx", "onnxruntime", "psutil", "torch", "transformers", "scipy", "pandas")


def _loaded(args: list[str], after: str = "") -> set[str]:
    """Modules loaded by running the program with `args`."""
    code = (
        "import sys\n"
        "from winml.modelkit.cli.main import run\n"
        f"code = run({args!r})\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return set(result.stderr.split("\n"))


@pytest.mark.parametrize("args", [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)], ids=" ".join)
def test_help_imports_nothing_heavy(args: list[str]) -> None:
    assert not {m for m in _loaded(args) if m.split(".")[0] in HEAVY}


def test_top_level_help_does_not_even_need_click() -> None:
    assert "click" not in _loaded(["--help"])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_examples_that_start_with_the_program(name: str) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "winml.modelkit", name, "--help"], capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0
    assert "Examples:" in result.stdout
    assert f"winml {name}" in result.stdout


def test_the_parent_of_perf_imports_neither_numpy_nor_onnx() -> None:
    loaded = _loaded(["perf", "--sample", "--target", "cpu", "--sessions", "1", "--iterations", "2", "--json"])
    # Only Linux tells the memory of another process in a file.
    heavy = {*HEAVY} - (set() if sys.platform == "linux" else {"psutil"})
    assert not {m for m in loaded if m.split(".")[0] in heavy}

from __future__ import annotations

import shutil
from pathlib import Path

import psutil

from winml.modelkit import sample
from winml.modelkit.app.support_commands import Commands
from winml.modelkit.review.evidence import MODEL


def _left(word: str) -> list[list[str]]:
    """Command lines of processes that name the word."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if any(word in part for part in line):
            found.append(line)
    return found


def test_a_command_that_takes_too_long_leaves_nothing_running(tmp_path: Path) -> None:
    model = shutil.copy(sample.MODEL, tmp_path / "model.onnx")
    run = Commands(str(model), tmp_path, timeout_s=1)(("support", "probe", "-m", MODEL, "--target", "cpu", "--json"))
    assert run.exit_code is None
    assert _left(str(tmp_path)) == []


def test_a_command_gives_its_result_its_exit_code_and_what_it_told(tmp_path: Path) -> None:
    run = Commands(str(tmp_path / "gone.onnx"), tmp_path, timeout_s=None)(("inspect", "-m", MODEL, "--json"))
    assert run.exit_code == 2
    assert run.words == ("inspect", "-m", MODEL, "--json")
    assert run.result is not None
    assert "error: " in run.stderr

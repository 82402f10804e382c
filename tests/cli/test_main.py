"""The program before and around its commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from winml.modelkit.cli import main


@pytest.mark.parametrize("words", [["build"], ["build", "--json"]], ids=" ".join)
def test_ctrl_c_while_a_command_is_being_imported_is_an_interruption(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def importing(name: str, args: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "_command", importing)
    monkeypatch.setattr(sys, "argv", ["winml", *words])
    with pytest.raises(SystemExit) as left:
        main.main()
    said = capsys.readouterr()
    assert left.value.code == 130
    if "--json" in words:
        assert json.loads(said.out)["error"]["exit"] == 130
    else:
        assert said.err == "error: interrupted\n"


@pytest.mark.parametrize("command", [["--help"], ["perf", "--help"], ["autoconfig", "--help"]])
def test_a_small_character_set_still_gets_the_help(command: list[str]) -> None:
    env = {**os.environ, "PYTHONIOENCODING": "cp437"}
    done = subprocess.run([sys.executable, "-m", "winml.modelkit", *command], capture_output=True, env=env)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"--help" in done.stdout


@pytest.mark.windows
def test_a_pipe_is_utf8_whatever_the_code_page_is(tmp_path: Path) -> None:
    words = [sys.executable, "-X", "utf8=0", "-m", "winml.modelkit", "inspect", "-m", str(tmp_path / "naïve 模型.onnx")]
    done = subprocess.run(words, capture_output=True)
    assert "naïve 模型.onnx" in done.stderr.decode("utf-8")

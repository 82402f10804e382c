"""The program before and around its commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ctrl_c import CTRL_BREAK, Telling, press, start
from winml.modelkit.cli import main
from winml.modelkit.worker.client import Worker


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


@pytest.mark.parametrize(("words", "asked"), [(["feed", "list"], "winml feed list"), (["feed", "no"], "winml feed")])
def test_a_wrong_option_names_the_help_of_the_command_itself(
    words: list[str], asked: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["winml"])
    assert main.run([*words, "--nothing"]) == 2
    assert f"hint: `{asked} --help` shows the options" in capsys.readouterr().err


BREAKS = """
import signal, sys, time
from winml.modelkit.cli import main
def command(name, args):
    signal.raise_signal(signal.SIGBREAK)
    time.sleep(60)
main._command = command
main.main()
"""


@pytest.mark.windows
def test_ctrl_break_is_an_interruption_too() -> None:
    done = subprocess.run([sys.executable, "-c", BREAKS, "sys"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (130, "error: interrupted\n")


@pytest.mark.windows
@pytest.mark.not_wine(
    "its GenerateConsoleCtrlEvent refuses CTRL_BREAK_EVENT (error 6); Windows documents it for a group of processes "
    "and for all that share a console"
)
def test_ctrl_break_at_the_console_ends_a_command(tmp_path: Path) -> None:
    telling = Telling(tmp_path)
    with start(telling.argv("perf", "--sample", "--duration", "600", "--sessions", "1")) as process:
        telling.wait_for("progress", process)
        press(CTRL_BREAK, process)
        process.communicate(timeout=60)
    assert process.returncode == 130


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


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Worker]:
    """The workers that commands start, in a list."""
    found: list[Worker] = []
    start = Worker.__init__

    def note(self: Worker, **words: Any) -> None:
        start(self, **words)
        found.append(self)

    monkeypatch.setattr(Worker, "__init__", note)
    return found


def test_a_process_that_was_started_early_ends_with_a_wrong_option(started: list[Worker]) -> None:
    assert main.run(["perf", "--sample", "--no-such-option"]) == 2
    assert [worker.alive for worker in started] == [False]


def test_perf_measures_in_the_process_that_was_started_early(started: list[Worker]) -> None:
    words = ["perf", "--sample", "--target", "cpu", "--sessions", "1", "--iterations", "1", "--warmup", "0"]
    assert main.run(words) == 0
    assert [worker.alive for worker in started] == [False]


def test_help_starts_no_process(started: list[Worker]) -> None:
    assert main.run(["perf", "--help"]) == 0
    assert started == []

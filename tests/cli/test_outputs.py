"""What a command writes: where it cannot be written is found first, and a reader that has gone costs nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest

from winml.modelkit import sample
from winml.modelkit.cli import main
from winml.modelkit.cli.spellings import EarlierOption
from winml.modelkit.worker import process_tree

WORDS = {
    "analyze": "analyze --sample",
    "autoconfig": "autoconfig --sample",
    "build": "build --sample",
    "compare": "compare a.onnx b.onnx",
    "compile": "compile -m a.onnx",
    "compile --output-dir": "compile -m a.onnx -m b.onnx",
    "config": "config --sample",
    "debug": "debug -m a.onnx --reference b.onnx --data random",
    "eval": "eval --sample",
    "eval --save-outputs": "eval --sample --reference a.onnx",
    "export": "export -m org/name",
    "feed pull": "feed pull folder:feed name 1.0.0",
    "init": "init --sample --yes",
    "kb report": "kb report",
    "matrix run": "matrix run -m a.onnx --targets cpu",
    "optimize": "optimize --sample",
    "package copy-loader": "package copy-loader",
    "package create": "package create build",
    "package create-key": "package create-key",
    "perf": "perf --sample",
    "quantize": "quantize --sample",
    "report": "report a.json",
    "support inputs": "support inputs -m a.onnx",
    "support produce": "support produce -m a.onnx",
    "trace diff": "trace diff a.json b.json",
}
"""Every command that writes where an option says, with words that would start its work."""
LATER = {
    "build": "the same build may be there, which its config shows",
    "export": "the same export may be there, which its config shows",
    "compile --output-dir": "a folder may hold other files",
    "feed pull": "a folder may hold files that were pulled before",
    "init": "the folder of a project holds other files",
    "perf": "its first process starts while options are read",
}
"""Commands that find out later, or never, that something is there, and why."""


def _commands() -> Iterator[tuple[str, click.Command]]:
    for name, (module, _) in main.COMMANDS.items():
        command = import_module(module).command
        yield name, command
        if isinstance(command, click.Group):
            yield from ((f"{name} {sub}", found) for sub, found in command.commands.items())


def _writing() -> Iterator[str]:
    """The commands and options that name what is written, `-o` by the name of its command alone."""
    for name, command in _commands():
        for parameter in command.params:
            words = {"--output", "--output-dir", "--save-outputs"}.intersection(parameter.opts)
            if words and not isinstance(parameter, EarlierOption):
                yield name if words == {"--output"} else f"{name} {words.pop()}"


def test_the_table_has_every_command_that_writes() -> None:
    assert sorted(_writing()) == sorted(WORDS)


@pytest.fixture
def no_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No work may begin: a process that is started is a failure."""

    def started(*_: object, **__: object) -> None:
        raise AssertionError("a process was started before the output was looked at")

    monkeypatch.setattr(process_tree.ProcessTree, "__init__", started)
    monkeypatch.setattr(main, "_start_first_process", lambda *_: None)  # it waits, whatever the options say
    monkeypatch.chdir(tmp_path)


def _run(name: str, output: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    option = name.rpartition(" ")[2] if "--" in name else "-o"
    code = main.run([*WORDS[name].split(), option, str(output), "--json"])
    error = json.loads(capsys.readouterr().out)["error"]
    return code, error["message"]


@pytest.mark.usefixtures("no_process")
@pytest.mark.skipif(sys.platform != "linux", reason="needs a folder that nobody can write to, not even root")
@pytest.mark.parametrize("name", WORDS)
def test_a_place_that_cannot_be_written_is_found_before_the_work(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, message = _run(name, Path("/proc/winml-no-such/out"), capsys)
    assert (code, message.partition(":")[0]) == (3, "cannot write `/proc/winml-no-such/out`")


@pytest.mark.usefixtures("no_process")
@pytest.mark.parametrize("name", WORDS)
def test_a_file_where_a_folder_should_be_is_a_wrong_request(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    code, message = _run(name, tmp_path / "file" / "below" / "out", capsys)
    assert code == 2
    assert "is not a folder" in message
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.usefixtures("no_process")
@pytest.mark.parametrize("name", sorted(WORDS.keys() - LATER))
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_is_there_is_found_before_the_work_and_stays(
    name: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for model in ("a.onnx", "b.onnx"):
        shutil.copy(sample.MODEL, tmp_path / model)
    (tmp_path / "out").mkdir()
    output = tmp_path / "out" / {"compile": "o.onnx", "eval --save-outputs": "o.npz"}.get(name, "o")
    kept = output if kind == "file" else output / "kept"
    kept.parent.mkdir(exist_ok=True)
    kept.write_text("mine", encoding="utf-8")
    code, message = _run(name, output, capsys)
    assert code == 2
    assert str(output) in message
    assert [path.name for path in sorted((tmp_path / "out").rglob("*")) if path.is_file()] == [kept.name]
    assert kept.read_text(encoding="utf-8") == "mine"


def _read_nothing(words: list[str], folder: Path) -> int:
    """Run the program with a stdout that nobody reads any more; its exit code."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "winml.modelkit", *words], stdout=writer, stderr=subprocess.PIPE, cwd=folder,
            text=True, check=False, timeout=300, env={**os.environ, "WINML_CACHE": str(folder / "cache")},
        )  # fmt: skip
    finally:
        os.close(writer)
    assert "Broken" not in done.stderr
    assert "Traceback" not in done.stderr
    return done.returncode


def test_a_closed_pipe_loses_no_result_and_is_no_failure(tmp_path: Path) -> None:
    words = ["--sample", "--target", "cpu", "--sessions", "1", "--iterations", "2", "--json", "-o", "perf.json"]
    assert _read_nothing(["perf", *words], tmp_path) == 0
    assert json.loads((tmp_path / "perf.json").read_text("utf-8"))["ok"] is True


@pytest.mark.parametrize(
    ("words", "code"),
    [(["--help"], 0), (["perf", "--help"], 0), (["sys"], 0), (["inspect", "-m", "missing.onnx", "--json"], 2)],
)
def test_a_closed_pipe_ends_quietly_with_the_code_of_the_command(words: list[str], code: int, tmp_path: Path) -> None:
    assert _read_nothing(words, tmp_path) == code


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
@pytest.mark.parametrize("words", [["catalog", "--json"], ["--help"]], ids=" ".join)
def test_a_full_disk_behind_stdout_is_exit_3(words: list[str]) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "winml.modelkit", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.stderr.startswith("error: disk full")
    assert done.returncode == 3


@pytest.mark.skipif(sys.platform == "win32", reason="closes a file by the shell")
def test_a_program_without_stdout_works() -> None:
    done = subprocess.run(["/bin/sh", "-c", f"{sys.executable} -m winml.modelkit catalog --json >&- 2>&-"], check=False)
    assert done.returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal of its own")
@pytest.mark.parametrize("terminal", [True, False])
def test_ctrl_c_is_heard_where_a_user_can_press_it_and_only_there(terminal: bool) -> None:
    """Whoever starts a program may have set Ctrl-C to be ignored, as nohup, CI systems and background jobs do."""
    import pty

    code = (
        "import signal, sys\n"
        "from winml.modelkit.cli import main\n"
        "main._listen_to_ctrl_c()\n"
        "sys.exit(7 if signal.getsignal(signal.SIGINT) is signal.default_int_handler else 8)"
    )
    child, handle = pty.fork() if terminal else (os.fork(), -1)
    if child == 0:
        import signal

        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if not terminal:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.execv(sys.executable, [sys.executable, "-c", code])
    deadline = time.monotonic() + 60
    while (status := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
        time.sleep(0.02)
    if handle >= 0:
        os.close(handle)
    assert os.waitstatus_to_exitcode(status[1]) == (7 if terminal else 8)


def test_a_pipe_of_our_own_that_breaks_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    from winml.modelkit.cli.run import invoke

    @click.command()
    def breaks() -> None:
        raise BrokenPipeError(32, "Broken pipe")

    assert invoke(breaks, "winml breaks", "breaks", []) == 70
    assert "BrokenPipeError" in capsys.readouterr().err

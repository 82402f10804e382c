"""The helper that runs commands inside this process: what it shows and what it leaves behind."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import pytest
from program import winml, winml_process

from winml.modelkit.cli import main


@pytest.mark.parametrize("words", [("sys", "--list-ep"), ("pref", "--json"), ("perf", "-m", "gone.onnx")], ids=" ".join)
def test_a_command_ends_and_says_the_same_as_in_a_process_of_its_own(words: tuple[str, ...], tmp_path: Path) -> None:
    inside, alone = winml(*words, cwd=tmp_path), winml_process(*words, cwd=tmp_path)
    assert (inside.returncode, inside.stdout, inside.stderr) == (alone.returncode, alone.stdout, alone.stderr)


def test_what_is_written_below_python_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(args: list[str]) -> int:
        sys.stdout.write("naïve\n")
        sys.stdout.flush()
        os.write(1, b"library\n")
        os.write(2, b"warned\n")
        logging.getLogger("library").warning("logged")
        return 7

    monkeypatch.setattr(main, "run", run)
    done = winml("anything")
    assert (done.returncode, done.stdout, done.stderr) == (7, "naïve\nlibrary\n", "warned\nlogged\n")


def test_nothing_stays_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def run(args: list[str]) -> int:
        assert (sys.argv, sys.stdin.read(), sys.stderr.isatty()) == (["winml", "a", "b"], "", False)
        assert (Path.cwd(), dict(os.environ)) == (tmp_path, {"ONLY": "this"})
        os.environ["LEFT"] = "behind"
        del os.environ["ONLY"]
        logging.basicConfig(level=logging.DEBUG)
        raise RuntimeError

    monkeypatch.setattr(main, "run", run)
    root = logging.getLogger()
    streams = (sys.argv, sys.stdin, sys.stdout, sys.stderr)
    before = (Path.cwd(), dict(os.environ), root.handlers[:], root.level)
    with pytest.raises(RuntimeError):
        winml("a", "b", cwd=tmp_path, env={"ONLY": "this"})
    assert (Path.cwd(), dict(os.environ), root.handlers[:], root.level) == before
    assert all(now is then for now, then in zip((sys.argv, sys.stdin, sys.stdout, sys.stderr), streams, strict=True))


def test_ctrl_c_of_whoever_runs_the_tests_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "run", lambda args: 130)
    with pytest.raises(KeyboardInterrupt):
        winml("perf")

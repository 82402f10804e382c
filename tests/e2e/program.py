"""Runs the program for end-to-end tests: inside this process, or as a process of its own where a test needs one."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import IO, Any

import jsonschema
import pytest
from referencing import Registry, Resource

from hints import wrong_words
from winml.modelkit.cli import main
from winml.modelkit.core.errors import Interrupted

SCHEMAS = Path(__file__).parents[2] / "src/winml/modelkit/schemas"
QUICK = ("--sessions", "1", "--iterations", "5", "--warmup", "1")

DIVIDED = "STATUS_INTEGER_DIVIDE_BY_ZERO" if sys.platform == "win32" else "SIGFPE"
"""What a process ends by that divides by zero."""

Done = subprocess.CompletedProcess[str]
"""How a command ended: `returncode`, `stdout` and `stderr`."""


def winml(*args: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Done:
    """Run a command inside this process, which costs no start of Python; workers are real.

    Like a process of its own it has pipes instead of a terminal, this environment or exactly `env`, and leaves nothing
    behind. What it cannot show: signals, how the program starts, what it imports, who reads its output.
    """
    words = [str(word) for word in args]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        with _inside(cwd), _environment(env), _as_started(words), _stream("stdout", out), _stream("stderr", err):
            code = main.run(words)
        done = Done(words, code, _text(out), _text(err))
    if code == Interrupted.exit_code:
        raise KeyboardInterrupt  # of whoever runs the tests: no test sends a signal to this process
    return _checked(done)


def winml_process(*args: str | Path, **options: Any) -> Done:
    """Run a command as a process of its own; the test says why it needs one."""
    words = [str(word) for word in args]
    argv = [sys.executable, "-m", "winml.modelkit", *words]
    done = subprocess.run(argv, capture_output=True, text=True, encoding="utf-8", timeout=540, **options)
    return _checked(Done(words, done.returncode, done.stdout, done.stderr))


def _checked(done: Done) -> Done:
    """The same; commands and options that its hints name have to exist."""
    assert wrong_words(f"{done.stdout}\n{done.stderr}", tuple(done.args)) == [], done.stderr
    return done


def _inside(folder: Path | None) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext() if folder is None else contextlib.chdir(folder)


@contextlib.contextmanager
def _environment(wanted: Mapping[str, str] | None) -> Iterator[None]:
    """Have exactly the variables of `wanted`, and afterwards those of before, whatever a command has set."""
    before = dict(os.environ)
    try:
        if wanted is not None:
            _set_environment(wanted)
        yield
    finally:
        _set_environment(before)


def _set_environment(wanted: Mapping[str, str]) -> None:
    for name in [name for name in os.environ if name not in wanted]:
        del os.environ[name]
    for name, value in wanted.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


@contextlib.contextmanager
def _as_started(words: list[str]) -> Iterator[None]:
    """Have arguments, stdin and logging as a program finds them when it starts."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    with pytest.MonkeyPatch.context() as patch, open(os.devnull, encoding="utf-8") as nothing:
        patch.setattr(sys, "argv", ["winml", *words])
        patch.setattr(sys, "stdin", nothing)
        root.handlers[:] = []
        try:
            yield
        finally:
            for handler in root.handlers:
                handler.close()
            root.handlers[:] = handlers
            root.setLevel(level)


@contextlib.contextmanager
def _stream(name: str, file: IO[bytes]) -> Iterator[None]:
    """Let stdout or stderr be `file`, also for libraries and for processes that inherit it."""
    number = {"stdout": 1, "stderr": 2}[name]
    getattr(sys, name).flush()
    before = os.dup(number)
    os.dup2(file.fileno(), number)
    try:
        # `main` has a pipe replace what its encoding lacks.
        with (
            open(number, "w", encoding="utf-8", errors="replace", closefd=False) as stream,
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.setattr(sys, name, stream)
            yield
    finally:
        os.dup2(before, number)
        os.close(before)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8").replace("\r\n", "\n")


def valid(text: str) -> dict[str, Any]:
    """The one JSON object on stdout, checked against its published schema."""
    return valid_value(json.loads(text))


def valid_value(value: dict[str, Any]) -> dict[str, Any]:
    """A JSON object, checked against the schema it names."""
    schema = _registry().contents("urn:" + value["schema"].replace("/", ":"))
    jsonschema.Draft202012Validator(schema, registry=_registry()).validate(value)
    return value


@cache
def _registry() -> Registry[Any]:
    stored = [json.loads(p.read_text(encoding="utf-8")) for p in SCHEMAS.glob("*.json")]
    return Registry().with_resources((s["$id"], Resource.from_contents(s)) for s in stored)


def failed(done: Done, exit_code: int) -> str:
    """The error text of a run that failed as it should: one error line, no traceback."""
    assert done.returncode == exit_code, done.stderr
    assert "Traceback" not in done.stderr
    assert sum(line.startswith("error: ") for line in done.stderr.splitlines()) == 1, done.stderr
    return done.stderr

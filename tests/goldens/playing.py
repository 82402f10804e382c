"""Plays a story in this process, through the function that the program itself calls, and keeps what can be seen.

Nothing else of the package is imported: goldens outlive its modules.
"""

from __future__ import annotations

import hashlib
import io
import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from goldens import inputs
from goldens.stories import Story
from winml.modelkit.cli.main import run

ENVIRONMENT = {
    "WINML_CACHE": "cache",
    "WINML_KNOWLEDGE": "own",
    "DOCKER_CONFIG": "/dev/null",
    "HF_HUB_OFFLINE": "1",
    "COLUMNS": "120",
    "NO_COLOR": "1",
}
"""Names of folders are made whole by `stage`."""
UNSET = ("WINML_FEED", "WINML_FEED_USER", "WINML_FEED_PASSWORD", "WINML_INSPECT_TIMEOUT", "WINML_WORK_TIMEOUT",
         "WINML_MEMORY_LIMIT", "WINML_MAX_SAMPLE", "QNN_SDK_ROOT", "XDG_RUNTIME_DIR", "REGISTRY_AUTH_FILE")  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """What one command did."""

    command: str
    exit: int
    stdout: str
    stderr: str


def stage(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `folder` the place where commands work, with a cache and knowledge of its own."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, str(folder / value) if name in ("WINML_CACHE", "WINML_KNOWLEDGE") else value)
    for name in UNSET:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "argv", ["winml"])
    monkeypatch.chdir(folder)


@contextmanager
def _captured() -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    out, err = io.BytesIO(), io.BytesIO()
    with (
        io.TextIOWrapper(out, encoding="utf-8", write_through=True) as text_out,
        io.TextIOWrapper(err, encoding="utf-8", write_through=True) as text_err,
        redirect_stdout(text_out),
        redirect_stderr(text_err),
    ):
        yield out, err


def winml(command: str) -> Answer:
    """Run one command as it is typed after `winml`."""
    words = shlex.split(command.format(sample=inputs.SAMPLE / "digits.onnx") if "{sample}" in command else command)
    with _captured() as (out, err):
        code = run(words)
        stdout, stderr = out.getvalue().decode(), err.getvalue().decode()
    return Answer(command, code, stdout, stderr)


def prepare(story: Story, folder: Path) -> None:
    """Write the inputs that the story has for itself."""
    for name in story.inputs:
        getattr(inputs, name)(folder)


def value_of(answer: Answer) -> Any:
    """The one JSON object on stdout, which is written as `json.dumps(value, indent=2)` writes it."""
    value = json.loads(answer.stdout)
    assert answer.stdout == json.dumps(value, indent=2, ensure_ascii=False) + "\n", answer.command
    return value


def files_of(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


_FORMS = {
    "indented": lambda v: json.dumps(v, indent=2) + "\n",
    "indented, without an end of line": lambda v: json.dumps(v, indent=2),
    "indented, not escaped": lambda v: json.dumps(v, indent=2, ensure_ascii=False) + "\n",
    "indented, not escaped, without an end of line": lambda v: json.dumps(v, indent=2, ensure_ascii=False),
    "one line": lambda v: json.dumps(v) + "\n",
    "one line, without an end of line": lambda v: json.dumps(v),
    "compact": lambda v: json.dumps(v, separators=(",", ":"), ensure_ascii=False) + "\n",
    "compact, without an end of line": lambda v: json.dumps(v, separators=(",", ":"), ensure_ascii=False),
    "sorted and compact": lambda v: json.dumps(v, separators=(",", ":"), sort_keys=True, ensure_ascii=False) + "\n",
    "sorted and compact, without an end of line": lambda v: json.dumps(
        v, separators=(",", ":"), sort_keys=True, ensure_ascii=False
    ),
}


def _form(text: str, value: Any) -> str:
    """How a JSON text is laid out, apart from the order of keys."""
    return next((name for name, write in _FORMS.items() if write(value) == text), "another form")


def document(path: Path) -> Any:
    """A file that a command wrote: JSON as a value with its layout, lines of JSON as a list, others by content."""
    if path.suffix == ".json":
        text = path.read_text(encoding="utf-8")
        value = json.loads(text)
        return {"layout": _form(text, value), "value": value}
    if path.suffix == ".jsonl":
        text = path.read_text(encoding="utf-8")
        values = [json.loads(line) for line in text.splitlines()]
        layouts = {_form(line + "\n", value) for line, value in zip(text.splitlines(), values, strict=True)}
        return {"layout": sorted(layouts), "lines": values}
    if path.suffix in (".md", ".tsv", ".txt"):
        return {"text": path.read_text(encoding="utf-8").splitlines()}
    return {"digest": "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()}

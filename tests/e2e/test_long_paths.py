"""Commands at the limit that Windows has for paths, which neither Linux nor Wine has.

A command is a process of its own here: every Python of it asks a stand-in for that check before it opens, makes, moves
or links a file; what native code opens goes past it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from program import QUICK, failed, winml_process

REFUSES = '''
import errno, os, sys
from winml.modelkit.core import file_names

file_names._is_limited = lambda: True
PATHS = {"open": 1, "os.mkdir": 1, "os.listdir": 1, "os.scandir": 1, "os.remove": 1, "os.rename": 2, "os.link": 2}

def refuse(event, args):
    for path in args[: PATHS.get(event, 0)]:
        if isinstance(path, (str, bytes, os.PathLike)):
            if file_names.too_long(path, folder=event == "os.mkdir"):
                raise told(3 if event == "open" else 206, os.fsdecode(path))

def told(code, path):
    """As Windows answers: ERROR_PATH_NOT_FOUND, or ERROR_FILENAME_EXCED_RANGE."""
    if sys.platform == "win32":
        return FileNotFoundError(0, "refused", path, code)
    error = FileNotFoundError(errno.ENOENT, "refused", path)
    error.winerror = code
    return error

file_names.too_long("")  # what it imports is opened before
sys.addaudithook(refuse)
'''


@pytest.fixture
def limited(tmp_path: Path) -> dict[str, str]:
    """The environment of a Windows without long paths."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(REFUSES, encoding="utf-8")
    path = os.pathsep.join(filter(None, (str(tmp_path / "site"), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, "WINML_CACHE": str(tmp_path / "cache")}


def _folder(below: Path, length: int) -> Path:
    """A path of a length, whose parent is there."""
    parent = below / ("p" * (length - len(str(below)) - 10))
    parent.mkdir(parents=True)
    return parent / ("n" * (length - len(str(parent)) - 1))


@pytest.mark.parametrize(
    ("command", "length"),
    [("build", 210), ("build", 232), ("build", 246), ("perf", 246), ("perf", 260), ("matrix", 190), ("matrix", 210)],
)
def test_a_long_path_is_written_or_told_as_what_it_is(
    command: str, length: int, tmp_path: Path, limited: dict[str, str]
) -> None:
    out = _folder(tmp_path, length)
    words = {
        "build": ("build", "--sample", "--target", "cpu", "--no-analyze", "--no-prove", "-o", out),
        "perf": ("perf", "--sample", "--target", "cpu", *QUICK, "-o", out),
        "matrix": ("matrix", "run", "--sample", "--targets", "cpu", "--run-stamp", "1", "--no-analyze", "-o", out),
    }[command]
    result = winml_process(*words, env=limited)
    if result.returncode == 0:
        assert out.exists()
        return
    # A matrix tells it of the cell that could not be built, which is 1.
    text = failed(result, 1 if "cells failed" in result.stderr else 3)
    assert "characters, and Windows allows" in text
    assert not out.is_file()


def test_the_stand_in_refuses(tmp_path: Path, limited: dict[str, str]) -> None:
    out = _folder(tmp_path, 265)
    text = failed(winml_process("build", "--sample", "--target", "cpu", "-o", out, env=limited), 3)
    assert "the path has 265 characters, and Windows allows 2" in text
    assert "LongPathsEnabled" in text

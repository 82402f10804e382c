"""What every command says and writes is what it said and wrote when the goldens were recorded.

Record again with `WINML_RECORD_GOLDENS=1 WINML_TEST_ALL=1 python -m pytest tests/goldens/test_goldens.py` and read
what `git diff` says; `-k NAME` records one story.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from goldens import inputs, playing
from goldens.normalise import Normaliser
from goldens.stories import STORIES, Story

RECORDED = Path(__file__).parent / "recorded"
IS_RECORDING = os.environ.get("WINML_RECORD_GOLDENS") == "1"
# A story is many commands, and machines that run tests are shared.
pytestmark = [
    pytest.mark.posix("goldens hold paths and messages of Linux"),
    pytest.mark.x86_64,
    pytest.mark.timeout(1800),
]

_HEX = re.compile(r"[0-9a-f]{12,}")
_RAW_TRACE = re.compile(r"_op_trace/")
_BY_NAME_ALONE = (".html", ".svg", ".md", ".lock", ".bin", ".csv", ".log", ".tsv")
"""Files for people, whose lines hold times, and files of others."""


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The inputs of all stories, made in another process: the quantizer leaves a logger behind."""
    folder = tmp_path_factory.mktemp("inputs")
    subprocess.run([sys.executable, inputs.__file__, folder], check=True, capture_output=True, timeout=300)
    return folder


def _cases(*, as_json: bool) -> list[Any]:
    cases = []
    for story in STORIES:
        names = [*story.marks, *(["slow"] if story.text_is_slow and not as_json else [])]
        cases.append(pytest.param(story, id=story.name, marks=[getattr(pytest.mark, name) for name in names]))
    return cases


def _without_hex(name: str) -> str:
    return _HEX.sub("<hex>", re.sub(r"/(objects|verified)/[0-9a-f]{2}/", r"/\1/<hex>/", name))


def _documents(story: Story, folder: Path, before: set[str], normal: Normaliser) -> dict[str, Any]:
    """What the story wrote; files whose names are digests are shown once per form."""
    found: dict[str, Any] = {}
    for name in sorted(playing.files_of(folder) - before):
        shown = normal.text(_without_hex(name))
        is_kept_by_digest = _without_hex(name) != name
        if _RAW_TRACE.search(name):
            continue
        if name.endswith(_BY_NAME_ALONE) or "/objects/" in name or "/verified/" in name or "/locks/" in name:
            found.setdefault(shown, "a file")
            continue
        value = story.settle(normal.value(playing.document(folder / name)))
        if is_kept_by_digest:
            known = found.setdefault(shown, [])
            known.append(value)
        else:
            found[shown] = value
    return {name: _sorted(value) if isinstance(value, list) else value for name, value in found.items()}


def _sorted(values: list[Any]) -> list[Any]:
    return sorted(values, key=lambda value: json.dumps(value, sort_keys=True))


def _check(path: Path, text: str) -> None:
    """Compare with what was recorded, or record it."""
    if IS_RECORDING:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    assert path.is_file(), f"{path.name} was never recorded: {__doc__}"
    expected = path.read_text(encoding="utf-8")
    lines = difflib.unified_diff(expected.splitlines(), text.splitlines(), "recorded", "now", lineterm="", n=6)
    assert expected == text, "\n" + "\n".join(lines)


@pytest.fixture
def stage(tmp_path: Path, filled: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the inputs, in which commands run."""
    folder = tmp_path / "work"
    shutil.copytree(filled, folder)
    playing.stage(folder, monkeypatch)
    return folder


@pytest.mark.parametrize("story", _cases(as_json=True))
def test_the_json_of_commands_and_their_documents_are_as_recorded(story: Story, stage: Path) -> None:
    playing.prepare(story, stage)
    before = playing.files_of(stage)
    normal = Normaliser(stage, measured=story.is_measured)
    steps = []
    for command in story.commands:
        answer = playing.winml(f"{command} --json")
        said = answer.stdout.splitlines() if command == "--version" else playing.value_of(answer)
        shown = {"command": normal.text(command), "exit": answer.exit, "stdout": normal.value(said)}
        steps.append(story.settle(shown))
    recorded = {"commands": steps, "documents": _documents(story, stage, before, normal)}
    _check(RECORDED / f"{story.name}.json", json.dumps(recorded, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


@pytest.mark.parametrize("story", _cases(as_json=False))
def test_the_text_of_commands_is_as_recorded(story: Story, stage: Path) -> None:
    playing.prepare(story, stage)
    normal = Normaliser(stage, measured=story.is_measured)
    lines = []
    for command in story.commands:
        answer = playing.winml(command)
        lines += [f"$ winml {command}", *normal.lines(answer.stdout)]
        lines += [f"! {line}" for line in normal.lines(answer.stderr)]
        lines += [f"exit {answer.exit}", ""]
    _check(RECORDED / f"{story.name}.txt", story.settle_text("\n".join(lines)))

"""The README from an empty folder, in order: in this environment, and as a newcomer in a fresh one."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from pages import read_page
from program import winml
from test_documentation import _shortened

ROOT = Path(__file__).parents[2]


def _commands() -> list[list[str]]:
    blocks = read_page(ROOT / "README.md").texts("sh")
    return [shlex.split(line, comments=True) for block in blocks for line in block.splitlines() if line.strip()]


def test_the_readme_starts_with_installing_and_goes_on_with_winml() -> None:
    first, *rest = _commands()
    assert first == ["pip", "install", "winml-modelkit[qnn]"]
    assert len(rest) > 20
    assert {words[0] for words in rest} == {"winml"}


@pytest.mark.qnn
@pytest.mark.timeout(1200)
def test_the_commands_of_the_readme_work_one_after_the_other_from_an_empty_folder(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    space = {"schema": "winml/space/1", "knobs": {"quantize.scheme": ["int8", "fp16"]}}
    (tmp_path / "space.json").write_text(json.dumps(space))
    names = ("WINML_CACHE", "WINML_KNOWLEDGE", "XDG_DATA_HOME", "LOCALAPPDATA")
    env = {**os.environ, **{name: str(tmp_path / name.lower()) for name in names}}
    for words in _commands()[1:]:
        # EPs in environments of their own are installed in the run below, which has a package index.
        if any("openvino" in word for word in words):
            continue
        short = [str(tmp_path / word) if word == "space.json" else word for word in _shortened(words[1:])]
        done = winml(*words[1:], *short, cwd=empty, env=env)
        assert done.returncode == 0, f"{' '.join(words)}\n{done.stderr}"


@pytest.mark.slow
@pytest.mark.package_index
@pytest.mark.posix("blocks are run by sh")
@pytest.mark.timeout(7200)
def test_every_block_of_the_readme_runs_in_a_fresh_environment_from_the_wheel() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "try_readme.py")], capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": ok in ") >= 6

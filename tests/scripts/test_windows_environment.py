"""The set-up for tests under Wine, as far as it needs no Wine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts" / "windows"

pytestmark = pytest.mark.posix("sets Windows up, from Linux")


def test_where_wine_cannot_be_had_nothing_is_run_and_the_reason_is_said(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPTS / "run_tests.py", "--home", tmp_path / "home"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 77
    assert "not run: Debian's packages gcc-mingw-w64-x86-64-win32, wine, wine64 are not here" in done.stderr


def test_the_short_list_names_tests_that_exist() -> None:
    lines = [line.partition("#")[0].strip() for line in (SCRIPTS / "short.txt").read_text("utf-8").splitlines()]
    chosen = [line for line in lines if line]
    assert chosen
    for line in chosen:
        path, _, name = line.partition("::")
        file = SCRIPTS.parents[1] / path
        assert file.exists(), line
        assert f"def {name.partition('[')[0]}(" in file.read_text("utf-8") if name else True, line

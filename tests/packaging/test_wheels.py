"""Which extras install on Windows on Arm, asked of the package index; the answer is the table in docs/windows.md."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_ROW = re.compile(r"^\| (none(?:, .*?)?|`\w+`) \| (yes|no) \|", re.MULTILINE)


def _table() -> dict[str, bool]:
    """Extra -> whether the docs say that it installs; the empty word is the package alone."""
    found = {}
    text = (ROOT / "docs" / "windows.md").read_text(encoding="utf-8")
    for names, answer in _ROW.findall(text):
        for name in names.split(", "):
            found["" if name == "none" else name.strip("`")] = answer == "yes"
    return found


def test_the_page_names_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {*project["optional-dependencies"], ""} - {"dev", "docs", "notebooks"} == set(_table())


@pytest.mark.slow
@pytest.mark.package_index
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("extra", "installs"), sorted(_table().items()))
def test_an_extra_resolves_for_windows_on_arm_as_the_page_says(extra: str, installs: bool, tmp_path: Path) -> None:
    wanted = f"{ROOT}[{extra}]" if extra else str(ROOT)
    words = ["--platform", "win_arm64", "--python-version", "3.12", "--implementation", "cp", "--only-binary=:all:"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--dry-run", "--target", str(tmp_path), *words, wanted],
        capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode == 0) is installs, done.stderr
    if not installs:
        assert "No matching distribution found" in done.stderr

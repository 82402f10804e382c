"""What is in the wheel and the sdist: all of the package and nothing else."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_dist", ROOT / "scripts" / "check_dist.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


check_dist = _script()
METADATA = """Metadata-Version: 2.4
Name: winml-modelkit
Version: 0.1.0
Summary: s
License-Expression: MIT
Requires-Python: >=3.11
Description-Content-Type: text/markdown
"""
FILES = {
    "winml/modelkit/__init__.py": "",
    "winml/modelkit/py.typed": "",
    "winml/modelkit/schemas/perf.json": "{}",
    "winml/modelkit/skills/measure/SKILL.md": "",
    "winml/modelkit/sample/digits.onnx": "",
    "winml_modelkit-0.1.0.dist-info/METADATA": METADATA,
    "winml_modelkit-0.1.0.dist-info/entry_points.txt": "[console_scripts]\nwinml = winml.modelkit.cli.main:main\n",
}


def _faults(folder: Path, changes: dict[str, str | None]) -> list[str]:
    """What is found in a small wheel with some files added, changed or, with None, left out."""
    files = {name: text for name, text in {**FILES, **changes}.items() if text is not None}
    wheel = folder / "winml_modelkit-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    found: list[str] = check_dist.wheel_faults(wheel, {name for name in FILES if "dist-info" not in name})
    return found


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({}, None),
        ({"winml/modelkit/py.typed": None}, "no py.typed in the wheel"),
        ({"winml/modelkit/schemas/perf.json": None}, "missing: winml/modelkit/schemas/perf.json"),
        ({"winml/modelkit/skills/measure/SKILL.md": None}, "no skill in the wheel"),
        ({"tests/test_x.py": ""}, "has no place here: tests/test_x.py"),
        ({"winml/modelkit/notes.txt": ""}, "not of the sources: winml/modelkit/notes.txt"),
        ({"winml_modelkit-0.1.0.dist-info/entry_points.txt": ""}, "no program `winml`"),
        ({"winml_modelkit-0.1.0.dist-info/METADATA": "Name: x\n"}, "metadata: name x"),
        ({"winml/modelkit/schemas/perf.json": "{}" * 2**22}, "more than 4"),
    ],
)
def test_a_fault_of_a_wheel_is_named(changes: dict[str, str | None], fault: str | None, tmp_path: Path) -> None:
    found = _faults(tmp_path, changes)
    assert any(fault in one for one in found) if fault else not found


def test_a_tag_is_the_version_of_everything() -> None:
    wheel, log, cited = "winml_modelkit-0.1.0-py3-none-any.whl", "## [0.1.0] - 2026-01-31\n", "version: 0.1.0\n"
    assert check_dist.tag_faults("v0.1.0", wheel, log, cited) == []
    assert len(check_dist.tag_faults("v0.2.0", wheel, log, cited)) == 3
    assert check_dist.tag_faults("v0.1.0", wheel, "## [Unreleased]\n", cited) == [
        "a dated section of CHANGELOG.md is not of version 0.1.0"
    ]


def test_a_folder_holds_one_of_each(tmp_path: Path) -> None:
    assert "0 wheels" in check_dist.check(tmp_path)[0]


@pytest.mark.slow
@pytest.mark.package_index
@pytest.mark.timeout(900)
def test_the_wheel_holds_the_package_and_nothing_else(tmp_path: Path) -> None:
    words = ["wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    subprocess.run([sys.executable, "-m", "pip", *words], check=True)
    assert check_dist.check(tmp_path) == []

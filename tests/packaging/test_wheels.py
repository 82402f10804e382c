"""Which extras install on which system and Python, asked of the package index: the table of docs/install.md."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("resolve_wheels", ROOT / "scripts" / "resolve_wheels.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


wheels = _script()


def _table() -> dict[str, dict[str, str]]:
    """Extra -> system -> the Pythons, as the page says; `none` is the package alone."""
    head, _, *rows = wheels.read_table(wheels.PAGE.read_text(encoding="utf-8")).splitlines()
    cells = [[cell.strip().strip("`") for cell in row.strip("|").split("|")] for row in (head, *rows)]
    return {row[0]: dict(zip(cells[0][1:], row[1:], strict=True)) for row in cells[1:]}


def test_the_page_names_every_extra_and_system() -> None:
    found = _table()
    assert list(found) == [name or "none" for name in wheels.extras()]
    assert all(list(row) == list(wheels.SYSTEMS) for row in found.values())


def test_the_package_says_that_it_is_for_the_pythons_it_installs_on() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [word for word in project["classifiers"] if word.startswith("Programming Language :: Python :: 3.")]
    assert [word.rpartition(" ")[2] for word in named] == list(wheels.PYTHONS)
    assert _table()["none"]["Linux x86_64"] == f"{wheels.PYTHONS[0]} to {wheels.PYTHONS[-1]}"
    assert project["requires-python"] == f">={wheels.PYTHONS[0]}"


def test_answers_are_told_as_ranges() -> None:
    answers = {
        (extra, system, python): extra != "hf" or (system == "Linux x86_64" and python != "3.12")
        for extra in wheels.extras()
        for system in wheels.SYSTEMS
        for python in wheels.PYTHONS
    }
    lines = wheels.table(answers).splitlines()
    assert lines[2] == "| none | 3.11 to 3.14 | 3.11 to 3.14 | 3.11 to 3.14 | 3.11 to 3.14 | 3.11 to 3.14 |"
    assert "| `hf` | 3.11, 3.13, 3.14 | no | no | no | no |" in lines


@pytest.mark.slow
@pytest.mark.package_index
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("system", wheels.SYSTEMS)
def test_an_extra_resolves_as_the_page_says(system: str) -> None:
    found = wheels.ask_all([system])
    told = {
        name: wheels.describe({python: found[name, system, python] for python in wheels.PYTHONS})
        for name in wheels.extras()
    }
    assert told == {name: _table()[name or "none"][system] for name in wheels.extras()}

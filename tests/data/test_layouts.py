"""`docs/data.md` shows the layouts that the cases of the tasks have, which `test_tasks.py` runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import task_cases
from winml.modelkit.data.defaults import DEFAULTS, MAIN

PAGE = Path(__file__).parents[2] / "docs" / "data.md"


def examples() -> dict[str, str]:
    """The example below the heading of each task."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.findall(r"^### (\S+)\n(.*?)^```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return {name: block for name, _, block in found}


def test_every_task_with_a_layout_of_its_own_has_an_example() -> None:
    assert set(examples()) == set(task_cases.CASES)


@pytest.mark.parametrize("task", list(task_cases.CASES))
def test_an_example_looks_like_the_case_that_is_run(task: str, tmp_path: Path) -> None:
    data = Path(task_cases.CASES[task](tmp_path).data)
    lines = examples()[task].splitlines()
    if data.suffix == ".jsonl":
        row = json.loads(data.read_text(encoding="utf-8").splitlines()[0])
        assert [_shape(json.loads(line)) for line in lines] == [_shape(row)]
        return
    files = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    for line in lines:
        assert any(_same_layout(line, file) for file in files), line


def _shape(value: object) -> object:
    """Keys and kinds of a value, and of the first of a list."""
    if isinstance(value, dict):
        return {key: _shape(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_shape(value[0])]
    return "number" if isinstance(value, int | float) else type(value).__name__


def _same_layout(shown: str, there: str) -> bool:
    """The same file; or one of the same kind in a folder of another class."""
    first, second = Path(shown).parts, Path(there).parts
    if shown == there:
        return True
    classes = len(first) == len(second) and first[0] == second[0] == "data" and len(first) > 2
    return classes and first[2:-1] == second[2:-1] and Path(shown).suffix == Path(there).suffix


def test_the_page_has_the_table_of_default_data() -> None:
    rows = re.findall(r"^\| `(\S+)` \| (\S+), (\S+) \| ([^|]+) \| [^|]+ \|$", PAGE.read_text(encoding="utf-8"), re.M)
    shown = {task: (repo, file, revision.split(",")[0]) for task, repo, file, revision in rows}
    made = {
        task: (row.repo, next(iter(row.files)), row.revision if row.revision == MAIN else row.revision[:12])
        for task, row in DEFAULTS.items()
    }
    assert shown == made

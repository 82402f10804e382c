"""`winml skill check` as CI runs it: every skill of the repository says what the program does."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from program import failed, valid, winml

SKILLS = Path(__file__).parents[2] / "skills"


def test_the_skills_of_the_repository_are_right() -> None:
    value = valid(winml("skill", "check", SKILLS, "--json").stdout)
    assert value["problems"] == []
    assert all(skill["commands"] for skill in value["skills"])


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ("--strict-ep", "--strict-epp", "`winml perf` has no option `--strict-epp`; did you mean `--strict-ep`?"),
        ("winml analyze -m", "winml analyse -m", "unknown command `winml analyse`; did you mean `analyze`?"),
        ("`facts.opsets`", "`facts.opset_list`", "the JSON of `winml inspect` has no field `facts.opset_list`"),
    ],
)
def test_a_misspelt_word_is_red_with_its_place(tmp_path: Path, right: str, wrong: str, told: str) -> None:
    skill = shutil.copytree(SKILLS / "check-model-feasibility", tmp_path / "check-model-feasibility")
    page = skill / "SKILL.md"
    text = page.read_text(encoding="utf-8")
    line = 1 + text[: text.index(right)].count("\n")
    page.write_text(text.replace(right, wrong, 1), encoding="utf-8")
    result = winml("skill", "check", tmp_path, "--json")
    assert told in failed(result, 5)
    assert valid(result.stdout)["problems"] == [
        {"file": page.as_posix(), "line": line, "message": valid(result.stdout)["problems"][0]["message"]}
    ]


def test_a_folder_without_skills_is_a_wrong_request(tmp_path: Path) -> None:
    assert "there is no `SKILL.md`" in failed(winml("skill", "check", tmp_path), 2)
    assert "folder not found" in failed(winml("skill", "check", tmp_path / "gone"), 2)

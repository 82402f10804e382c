from __future__ import annotations

from pathlib import Path

import pytest

from winml.modelkit.knowledge import skills
from winml.modelkit.knowledge.skill_commands import FieldMention, Mention, OptionMention, Unreadable, find_mentions

GOOD = "---\nname: a-skill\ndescription: Does something, when asked.\n---\n\n# Body\n"


def _read(folder: Path, text: str) -> list[str]:
    folder.mkdir(exist_ok=True)
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    return [f"{p.line}: {p.message}" for p in skills.read(folder).problems]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "a-skill"


def test_a_skill_that_keeps_to_the_format_has_no_problem(folder: Path) -> None:
    assert _read(folder, GOOD) == []


def test_text_in_a_block_and_in_quotes_is_read(folder: Path) -> None:
    text = GOOD.replace("Does something, when asked.", ">\n  Does: something,\n  when asked.")
    assert _read(folder, text) == []
    assert skills.read(folder).fields["description"] == "Does: something, when asked."
    assert _read(folder, GOOD.replace("Does something", '"Does: something').replace("asked.", 'asked."')) == []


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("---\nname", "name", "1: it must begin with front matter"),
        ("name: a-skill", "name: A-Skill", "2: `name` must be lower-case words"),
        ("name: a-skill", "name: a--skill", "2: `name` must be lower-case words"),
        ("name: a-skill", "name: other", "2: `name` is `other` but the folder is `a-skill`"),
        ("name: a-skill", "name: " + "a" * 65, "2: `name` has 65 characters, at most 64"),
        ("description: Does something, when asked.", "description:", "1: `description` is missing"),
        ("Does something", "x" * 1025, "3: `description` has 1038 characters"),
        ("Does something", "Does: something", "3: this is not plain text in YAML"),
        ("description", "descripton", "3: unknown field `descripton`; did you mean `description`?"),
        ("name: a-skill", "name: a-skill\nname: a-skill", "3: `name` is given twice"),
        ("name: a-skill", "name: a-skill\nmetadata:\n  - one", "4: `metadata` must map names to text"),
        ("# Body", "", "5: there is nothing below the front matter"),
        ("# Body", "line\n" * 500, "fewer than 500 are allowed"),
        ("# Body", "[page](references/gone.md)", "6: `references/gone.md` does not exist"),
        ("# Body", "[page](../other/SKILL.md)", "6: `../other/SKILL.md` is outside the skill"),
    ],
)
def test_every_rule_of_the_format_is_checked(folder: Path, before: str, after: str, told: str) -> None:
    assert any(told in problem for problem in _read(folder, GOOD.replace(before, after, 1)))


def test_commands_are_found_in_blocks_and_in_text_with_their_lines() -> None:
    page = (
        "Use `winml perf` here.\n\n```sh\nCI=1 winml build -m a.onnx \\\n  -o out && winml sys > x # why\n```\n"
        "```python\nwinml = 1\n```\n"
    )
    assert find_mentions(page) == [
        Mention(1, ("perf",), complete=False),
        Mention(4, ("build", "-m", "a.onnx", "-o", "out"), complete=True),
        Mention(4, ("sys",), complete=True),
    ]


def test_fields_are_found_behind_jq_and_in_a_paragraph_about_json() -> None:
    block = "```sh\nwinml sys --json | jq -r .eps[].ep\n```\n\n"
    page = f"{block}JSON of `winml perf`: `latency_ms.p50`,\n`warnings`.\n\n`other`\n"
    fields = [f for f in find_mentions(page) if isinstance(f, FieldMention)]
    assert fields == [
        FieldMention(2, ("sys", "--json"), "eps[].ep"),
        FieldMention(5, ("perf",), "latency_ms.p50"),
        FieldMention(6, ("perf",), "warnings"),
    ]


def test_a_line_that_no_shell_reads_is_told() -> None:
    assert find_mentions("```sh\nwinml perf -m 'open\n```\n") == [Unreadable(2, "winml perf -m 'open")]


def test_an_option_is_found_in_the_text_with_or_without_its_value() -> None:
    page = "Add `--strict-ep`.\n\nWith `--max-drop 0.01` it\nis held; `-- x` is nothing.\n"
    assert find_mentions(page) == [OptionMention(1, "--strict-ep"), OptionMention(3, "--max-drop")]

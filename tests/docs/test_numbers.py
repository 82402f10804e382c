"""No number without an origin on the pages that people read first.

A number with a unit of time, speed, size or share in prose has to occur in an output that the same page shows (which a
run wrote), or in a file or page of the repository that its paragraph names. Inline code is not prose.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import ROOT, Page, read_page

PATHS = [
    ROOT / "README.md",
    *(path for path in (ROOT / "docs/index.md", ROOT / "docs/tutorial.md") if path.is_file()),
    *sorted((ROOT / "docs/guides").glob("*.md")),
]
_UNITS = (
    r"%|percent\b|[µmun]?s\b|seconds?\b|minutes?\b|hours?\b"
    r"|x\b|times (?:faster|slower|as|less|more)\b|[KMGT]i?B\b|bytes\b"
)
_NUMBER = re.compile(rf"(?<![\w.,-])(\d+(?:[.,]\d+)*)[ \u00a0-]?(?:{_UNITS})")
_CODE = re.compile(r"`[^`\n]*`")
_NAMED = re.compile(r"\]\(([^)#\s]+)|`((?:docs|benchmarks|tests)/[\w./-]+)`")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def numbers_without_origin(page: Page) -> list[str]:
    """The numbers of a page that nothing it names contains, each with its paragraph."""
    outputs = "\n".join(page.texts("text"))
    found = []
    for paragraph in re.split(r"\n\s*\n", _COMMENT.sub("", page.prose())):
        numbers = _NUMBER.findall(_CODE.sub("", paragraph))
        origins = "\n".join([outputs, *_named_files(page.path, paragraph)]) if numbers else ""
        found += [f"{number}: {paragraph.strip()}" for number in numbers if not _occurs(number, origins)]
    return found


def _named_files(page: Path, paragraph: str) -> list[str]:
    """The texts of files that a paragraph links to or names."""
    names = [link or name for link, name in _NAMED.findall(paragraph)]
    paths = [base / name for name in names for base in (page.parent, ROOT) if "://" not in name]
    return [path.read_text(encoding="utf-8", errors="replace") for path in paths if path.is_file() and path != page]


def _occurs(number: str, text: str) -> bool:
    return re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d]|[.,]\d)", text) is not None


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_every_number_in_prose_has_an_origin(path: Path) -> None:
    assert numbers_without_origin(read_page(path)) == []


def _page(folder: Path, text: str) -> Page:
    (folder / "results.json").write_text('{"p50_ms": 1.97}', encoding="utf-8")
    path = folder / "page.md"
    path.write_text(text, encoding="utf-8")
    return read_page(path)


@pytest.mark.parametrize(
    "text",
    [
        "It is 1.9x faster.",
        "It takes 3 ms.",
        "It saves 40 %.",
        "A file of 12 MiB.",
        "It takes 1.97 ms.",
        "It takes 1.9 ms ([measured](results.json)).",
        "It takes 1.97 ms.\n\nSee [the results](results.json).",
        "It takes 1.97 ms ([there](https://example.com/1.97)).",
        "```text\np50 11.97 ms\n```\n\nIt takes 1.97 ms.",
        "```sh\nwinml perf --duration 3\n```\n\nIt takes 3 seconds.",
        "| model | speed |\n|---|---|\n| a | 2.5x |",
    ],
)
def test_a_number_that_nothing_named_contains_is_found(tmp_path: Path, text: str) -> None:
    assert len(numbers_without_origin(_page(tmp_path, text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "It takes 1.97 ms ([measured](results.json)).",
        "```text\np50 1.97 ms\n```\n\nIt takes 1.97 ms.",
        "`--budget 100s` ends it, and int8 has 8 bits, opset 17 and 4 Conv.",
        "Exit code 5, 12 nodes, Python 3.11, step 3.",
    ],
)
def test_a_number_with_an_origin_or_that_is_no_measurement_is_accepted(tmp_path: Path, text: str) -> None:
    assert numbers_without_origin(_page(tmp_path, text)) == []

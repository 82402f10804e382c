"""Links of README, CONTRIBUTING and docs lead to files of the repository and to headings that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import site_markdown

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "skills").rglob("*.md")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for target in site_markdown.links(page.read_text(encoding="utf-8")):
        assert not target.startswith("/"), f"`{target}` is a place of one machine"
        name, _, anchor = target.partition("#")
        there = page if not name else page.parent / name
        if "reference/" in name and page.is_relative_to(ROOT / "docs"):
            continue  # made when the site is built, whose strict build checks it
        assert there.exists(), f"`{target}` leads nowhere"
        if anchor:
            assert anchor in site_markdown.anchors(there.read_text(encoding="utf-8")), f"no heading for `{target}`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_has_one_title_and_closes_its_blocks_of_code(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    titles = [line for line, is_code in site_markdown.lines_with_code(text) if not is_code and line.startswith("# ")]
    assert len(titles) == 1
    fences = [line for line in text.splitlines() if re.match(r"^\s*```", line)]
    assert len(fences) % 2 == 0


def test_a_link_to_nothing_and_a_missing_heading_would_be_found() -> None:
    text = "See [a](a.md#b), `[no](link.md)` and\n\n```text\n[no](code.md)\n```\n\n![p](p.svg) [web](https://x.y/z)\n"
    assert list(site_markdown.links(text)) == ["a.md#b", "p.svg"]
    assert site_markdown.anchors("# A `winml x`, b\n\n## C_d - e\n\n```sh\n# no\n```\n") == ["a-winml-x-b", "c_d---e"]

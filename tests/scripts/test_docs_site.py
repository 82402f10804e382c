"""How pages of the repository become pages of the site, and the site itself."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import make_picture
import notebook_page
import pytest
import site_nav
from site_markdown import Place, Site, indent_lists, prepare, title_of

from winml.modelkit.cli.command_check import wrong_command

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / "build/docs-venv/bin/python"
"""That of the environment which `make docs` sets up."""
SITE = Site({"index.md", "matrix.md", "decisions/0001-x.md", "changelog.md"}, {"CHANGELOG.md": "changelog.md"})


def _prepared(text: str, source: str, site: Site = SITE) -> str:
    page = {"CHANGELOG.md": "changelog.md"}.get(source, source.removeprefix("docs/"))
    return prepare(text, Place(source, page), site).rstrip("\n")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[m](matrix.md#cells)", "[m](matrix.md#cells)"),
        ("[log](../CHANGELOG.md)", "[log](changelog.md)"),
        ("[`core`](../src/winml/modelkit/core)", "`core`"),
        ("see `docs/matrix.md` and `decisions/0001-x.md`", "see [`docs/matrix.md`](matrix.md) and "
         "[`decisions/0001-x.md`](decisions/0001-x.md)"),
        ("`docs/gone.md`", "`docs/gone.md`"),
        ("[p](images/p.svg)", "[p](images/p.svg)"),
        ("[web](https://example.org/a.md)", "[web](https://example.org/a.md)"),
        ("```text\n[`core`](../src)\n```", "```text\n[`core`](../src)\n```"),
    ],
)  # fmt: skip
def test_links_of_a_page_hold_on_the_site(text: str, shown: str) -> None:
    assert _prepared(text, "docs/index.md") == shown


def test_links_from_a_folder_and_from_a_file_beside_docs_are_relative_to_their_page() -> None:
    assert _prepared("`docs/matrix.md`", "docs/decisions/0001-x.md") == "[`docs/matrix.md`](../matrix.md)"
    assert _prepared("[m](docs/matrix.md)", "CHANGELOG.md") == "[m](matrix.md)"


def test_with_an_address_of_the_repository_links_that_leave_docs_go_there() -> None:
    site = Site(SITE.pages, SITE.moved, "https://example.org/r/blob/main/")
    shown = _prepared("[`core`](../src/core)", "docs/index.md", site)
    assert shown == "[`core`](https://example.org/r/blob/main/src/core)"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("words:\n- one\n- two\n", "words:\n\n- one\n- two\n"),
        ("1. one\n\n   ```text\n   x\n   ```\n\nafter\n", "1. one\n\n    ```text\n    x\n    ```\n\nafter\n"),
        ("- a\n  - b\n    more\n- c\n", "- a\n    - b\n        more\n- c\n"),
        ("- a\n  goes on\n- b\n", "- a\n    goes on\n- b\n"),
        ("```text\nwords\n- one\n```\n", "```text\nwords\n- one\n```\n"),
    ],
)
def test_lists_are_written_as_python_markdown_reads_them(text: str, shown: str) -> None:
    assert indent_lists(text) == shown


def test_the_title_of_a_page_has_no_marks() -> None:
    assert title_of("<!-- run: quick -->\n\n# How `winml eval` judges\n\ntext\n") == "How winml eval judges"


def test_patterns_of_the_navigation_follow_the_files() -> None:
    nav = ["tutorial.md", {"Guides": ["guides/*.md", {"More": "notebooks/*.md"}]}, {"In depth": ["a.md", "*.md"]}]
    pages = {"a.md", "b.md", "guides/x.md", "guides/y.md", "guides/z.md"}
    titles = {"guides/x.md": "Zebra", "guides/y.md": "Ant"}
    assert site_nav.expand(nav, pages, order=["z"], titles=titles) == [
        {"Guides": ["guides/z.md", {"Ant": "guides/y.md"}, {"Zebra": "guides/x.md"}]},
        {"In depth": ["a.md", "b.md"]},
    ]
    assert site_nav.expand(nav, {"a.md", "tutorial.md"}) == ["tutorial.md", {"In depth": ["a.md"]}]


def test_a_notebook_becomes_a_page_with_its_outputs() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "text"]},
        {
            "cell_type": "code",
            "source": "print(1)",
            "outputs": [
                {"output_type": "stream", "name": "stdout", "text": ["1\n"]},
                {"output_type": "execute_result", "data": {"text/html": "<b>x</b>\n\n<i>y</i>", "text/plain": "x"}},
                {"output_type": "display_data", "data": {"image/png": "aGk=\n"}},
                {"output_type": "execute_result", "data": {"text/plain": "plain"}},
            ],
        },
        {"cell_type": "code", "source": "", "outputs": []},
    ]
    text = notebook_page.make_page(json.dumps({"cells": cells}), "first.ipynb")
    assert text.startswith(
        "# Title\ntext\n\n[Download this notebook](first.ipynb)\n\n```python\nprint(1)\n```\n\n```text\n1\n```"
    )
    assert '<div class="notebook-output">\n<b>x</b>\n<i>y</i>\n</div>' in text
    assert 'src="data:image/png;base64,aGk="' in text
    assert text.endswith("```text\nplain\n```\n")
    assert notebook_page.make_page('{"cells": []}', "two-models.ipynb").startswith("# Two models\n")


def test_the_first_page_shows_the_command_of_its_picture() -> None:
    text = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    assert f"winml {' '.join(make_picture.COMMAND)}\n" in text
    assert wrong_command(make_picture.COMMAND, True) is None
    picture = make_picture.PICTURE.read_text(encoding="utf-8")
    caption = re.search(r"<title>(.*)</title>", picture)
    assert caption is not None
    assert caption[1] in text


@pytest.mark.slow
@pytest.mark.mkdocs
def test_the_site_builds_without_a_warning_and_asks_no_other_host(tmp_path: Path) -> None:
    python = PYTHON if PYTHON.is_file() else Path(sys.executable)
    done = subprocess.run(
        [python, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    pages = sorted((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 100
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert "Content-Security-Policy" in text
        loaded = re.findall(r'<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)="?((?:https?:)?//[^"\s>]+)', text)
        assert not loaded, page.name
        assert "<title>" in text
    index = json.loads((tmp_path / "site/search/search_index.json").read_text(encoding="utf-8"))
    assert any(entry["location"].startswith("reference/commands/perf.html") for entry in index["docs"])

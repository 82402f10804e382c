"""The tutorial and the guides, each run from an empty folder as a reader would; `make docs-test` runs the slow ones."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from pages import ROOT, Page, list_pages, read_page
from run_pages import MODULES, run_page

from winml.modelkit.cli.command_check import wrong_command

PAGES = list_pages()
GUIDES = [ROOT / "docs/tutorial.md", *sorted((ROOT / "docs/guides").glob("*.md"))]
# A page that measures takes as long as its machine is busy.
TIMEOUT_S = 3600


def _marks(page: Page) -> list[pytest.MarkDecorator]:
    marks = [getattr(pytest.mark, name) for name in page.needs if name not in ("text", "vision")]
    return [*marks, *([pytest.mark.slow] if page.kind == "slow" else [])]


@pytest.mark.posix("blocks are run by sh")
@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=_marks(page), id=page.name) for page in PAGES if page.kind != "never"]
)
def test_a_page_runs_from_an_empty_folder(page: Page) -> None:
    assert run_page(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_shows_outputs_that_a_run_wrote(page: Page) -> None:
    outputs = [shown for block in page.blocks if block.runs and (shown := page.shown_output(block))]
    empty = [shown.line for shown in outputs if not shown.text.strip()]
    assert empty == [], f"scripts/run_pages.py --refresh {page.name}"
    assert "/tmp/" not in "".join(shown.text for shown in outputs)


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_the_tutorial_and_every_guide_say_how_they_are_run(path: Path) -> None:
    assert path in {page.path for page in PAGES}, "see the first lines of scripts/run_pages.py"


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_links_of_a_page_lead_to_a_page_and_a_heading(path: Path) -> None:
    """Also on GitHub; pages below `reference` are made with the site."""
    for link in re.findall(r"\]\(([^)\s]+)\)", read_page(path).prose()):
        name, _, heading = link.partition("#")
        if "://" in link or "reference/" in link:
            continue
        leads_to = (path.parent / name).resolve() if name else path
        assert leads_to.is_file(), link
        assert not heading or heading in _headings(leads_to), link


def _headings(path: Path) -> set[str]:
    """The anchors that GitHub and the site make of headings."""
    found = re.findall(r"^#+ (.+)$", read_page(path).prose(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_needs_is_known(page: Page) -> None:
    assert set(page.needs) <= set(MODULES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_options_of_a_page_exist(page: Page) -> None:
    """Also of pages that take too long for every run."""
    lines = [line for block in page.texts("sh") + page.texts("console") for line in _lines(block)]
    assert [wrong for line in lines if (wrong := wrong_command(tuple(line), True))] == []


def _lines(block: str) -> list[list[str]]:
    """The winml commands of a block, as words behind `winml`."""
    found = []
    for line in block.replace("\\\n", " ").splitlines():
        command = line.strip().removeprefix("$ ")
        if command.startswith("winml "):  # other lines may be part of a text in quotes
            found.append(shlex.split(re.split(r" \|\|? | 2?> | &", command)[0], comments=True)[1:])
    return found

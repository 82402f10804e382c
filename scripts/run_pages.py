"""Runs pages of the docs as a reader would: every `sh` and `python` block, in order, from an empty folder.

    python scripts/run_pages.py                         # every page that is run
    python scripts/run_pages.py tutorial which-ep       # some, by name or path
    python scripts/run_pages.py --kind quick            # those that take seconds
    python scripts/run_pages.py --refresh tutorial      # also rewrite the outputs that the page shows
    python scripts/run_pages.py --list

The first lines of a page say how it is run:

    <!-- run: quick -->                     in `make test`
    <!-- run: slow, needs: qnn hf -->       in `make docs-test`, where these extras are installed
    <!-- run: never, because REASON -->     not at all

A block fails when a command in it does; one that is meant to, such as a gate, is written `COMMAND || test $? -eq 5`.
A `text` block right after it shows its output: `--refresh` rewrites it. Where a line of it is `...`, as many lines as
before are kept above and below. Numbers differ from run to run, so nothing compares them: read the diff.

Exit 1 when a block fails; the block and what it said are shown.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from pages import ROOT, Block, Page, PageError, list_pages, make_variables, programs_here, read_page, run_block

MODULES = {
    "qnn": ("onnxruntime_qnn",),
    "hf": ("torch", "transformers"),
    "text": ("tokenizers",),
    "vision": ("PIL",),
    "pandas": ("pandas",),
    "dask": ("distributed",),
    "package_index": (),
}
"""What a page may need, by the name of the marker of tests, and the modules that it is."""


class BlockFailed(Exception):
    """A block that ended with another code than 0."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", help="names such as `tutorial` and `which-ep`, or paths (default: all)")
    parser.add_argument("--kind", choices=("quick", "slow"), help="only pages of this kind")
    parser.add_argument("--refresh", action="store_true", help="rewrite the outputs that the pages show")
    parser.add_argument("--list", action="store_true", help="list the pages and run nothing")
    given = parser.parse_args()
    try:
        pages = choose_pages(given.pages, given.kind)
    except PageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if given.list:
        for page in pages:
            print(f"{page.kind:6}{page.name}{describe_needs(page)}")
        return 0
    worked = [run_and_report(page, refresh=given.refresh) for page in pages]
    return int(not all(worked))


def choose_pages(names: list[str], kind: str | None) -> list[Page]:
    """The pages of these names and this kind; raises PageError for a name that is none."""
    pages = list_pages()
    if names:
        pages = [_find_page(name, pages) for name in names]
    return [page for page in pages if kind in (None, page.kind)]


def _find_page(name: str, pages: list[Page]) -> Page:
    if name.endswith(".md") and Path(name).is_file():
        return read_page(Path(name).resolve())
    found = [page for page in pages if name in (page.name, page.path.stem)]
    if len(found) != 1:
        known = ", ".join(page.name for page in pages)
        raise PageError(f"`{name}` is {len(found)} pages; there are: {known}")
    return found[0]


def describe_needs(page: Page) -> str:
    """What a page needs, or why it is not run, for a list."""
    if page.reason:
        return f"  because {page.reason}"
    return f"  needs {', '.join(page.needs)}" if page.needs else ""


def missing_needs(page: Page) -> list[str]:
    """What a page needs and this environment lacks; raises PageError for a need that nothing is known of."""
    if unknown := sorted(set(page.needs) - set(MODULES)):
        raise PageError(f"{page.path.name}: nothing is known about `{unknown[0]}`; known: {', '.join(MODULES)}")
    return [name for name in page.needs if not all(map(find_spec, MODULES[name]))]


def run_and_report(page: Page, *, refresh: bool) -> bool:
    """Run a page, say how it went, and rewrite it when all blocks worked; whether nothing failed."""
    if page.kind == "never" or (missing := missing_needs(page)):
        reason = page.reason if page.kind == "never" else f"needs {', '.join(missing)}"
        print(f"{page.name}: not run: {reason}", flush=True)
        return True
    started = time.monotonic()
    try:
        said = run_page(page, report=lambda line: print(line, flush=True))
    except BlockFailed as error:
        print(f"{page.name}: {error}", flush=True)
        return False
    print(f"{page.name}: ok in {time.monotonic() - started:.0f} s", flush=True)
    if refresh:
        page.path.write_text(refresh_outputs(page, said), encoding="utf-8", newline="\n")
    return True


def run_page(page: Page, report: Callable[[str], None] = lambda line: None) -> dict[Block, str]:
    """What every block said, run in order in one empty folder; raises BlockFailed at the first that fails."""
    with tempfile.TemporaryDirectory(prefix="winml-page-") as name:
        folder = Path(name).resolve()
        empty = folder / "empty"
        empty.mkdir()
        # Pages work offline; the width is that of an editor's window.
        env = make_variables(folder, programs_here()) | {"HF_HUB_OFFLINE": "1", "COLUMNS": "120"}
        said = {}
        for block in filter(lambda block: block.runs, page.blocks):
            started = time.monotonic()
            done = run_block(block, empty, env)
            text = normalise(done.stdout, folder)
            if done.returncode:
                raise BlockFailed(
                    f"the {block.language} block at line {block.line} ended with {done.returncode}\n"
                    f"{block.text}\nwhich said\n{text}"
                )
            first = block.text.splitlines()[0]
            report(f"  line {block.line}: {time.monotonic() - started:.1f} s: {first}")
            said[block] = text
        return said


def normalise(text: str, folder: Path) -> str:
    """The text as on any machine: without the folder the page ran in, the caches and this checkout."""
    names = [
        (f"{folder / 'empty'}{os.sep}", ""),
        (str(folder / "empty"), "."),
        (str(folder / "cache"), "~/.cache/winml"),
        (str(folder / "knowledge"), "~/.local/share/winml/knowledge"),
        (str(folder), ".."),
        (f"{ROOT / 'src'}{os.sep}", ""),
        (sys.prefix, ".venv"),
        (str(ROOT), "."),
    ]
    for found, shown in names:
        text = text.replace(found, shown)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def refresh_outputs(page: Page, said: dict[Block, str]) -> str:
    """The text of the page with the outputs that its blocks have now."""
    text = page.text
    for block in reversed(page.blocks):
        shown = page.shown_output(block) if block in said else None
        if shown is not None:
            text = text[: shown.start] + shorten(said[block], shown.text) + text[shown.end :]
    return text


def shorten(said: str, shown: str) -> str:
    """What was said, with as many lines around `...` as are shown now."""
    before = shown.splitlines()
    lines = said.strip("\n").splitlines()
    if "..." in before:
        above, below = before.index("..."), len(before) - before.index("...") - 1
        if above + below < len(lines):
            lines = [*lines[:above], "...", *lines[len(lines) - below :]]
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main())

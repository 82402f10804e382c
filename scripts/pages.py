"""The fenced blocks of Markdown pages: reading them, and running one as a reader would."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("quick", "slow", "never")
TIMEOUT_S = 3600

_FENCE = re.compile(
    r"^(?P<ticks>`{3,})(?P<language>\w*)[^\n]*\n(?P<text>.*?)^(?P=ticks)[ \t]*$", re.DOTALL | re.MULTILINE
)
_HEADER = re.compile(r"^<!-- run:(?P<words>.*?)-->", re.DOTALL | re.MULTILINE)
_WORDS = re.compile(r"(?P<kind>\w+)(?:, (?:because (?P<reason>.+)|needs: (?P<needs>[\w ]+)))?", re.DOTALL)
_HEADER_LINES = 10


class PageError(Exception):
    """A page that cannot be read; the message says where."""


@dataclass(frozen=True)
class Block:
    """What is between two fences; `start` and `end` are its place in the text of the page."""

    language: str
    text: str
    line: int
    start: int
    end: int

    @property
    def runs(self) -> bool:
        return self.language in ("sh", "python")


@dataclass(frozen=True)
class Page:
    """A page with its blocks, and what its first lines say about running it: `kind` is None when they say nothing."""

    path: Path
    text: str
    blocks: tuple[Block, ...]
    kind: str | None = None
    needs: tuple[str, ...] = ()
    reason: str | None = None

    @property
    def name(self) -> str:
        """The path below `docs` without its ending: `tutorial`, `guides/which-ep`."""
        return _relative(self.path, ROOT / "docs").with_suffix("").as_posix()

    def texts(self, language: str) -> list[str]:
        """The blocks of a language, in order."""
        return [block.text for block in self.blocks if block.language == language]

    def shown_output(self, block: Block) -> Block | None:
        """The `text` block that follows directly, which shows what a block says."""
        following = self.blocks[self.blocks.index(block) + 1 :]
        if not following or following[0].language != "text":
            return None
        between = self.text[block.end : following[0].start]
        return following[0] if re.fullmatch(r"`{3,}[ \t]*\s*`{3,}text[ \t]*\n", between) else None

    def prose(self) -> str:
        """The text without its blocks; lines keep their numbers."""
        return _FENCE.sub(lambda found: "\n" * found[0].count("\n"), self.text)


def _relative(path: Path, folder: Path) -> Path:
    return path.relative_to(folder) if path.is_relative_to(folder) else path


def read_page(path: Path) -> Page:
    """Read a page; raises PageError for a fence that is never closed and for a header that says nothing known."""
    text = path.read_text(encoding="utf-8")
    blocks = tuple(
        Block(found["language"], found["text"], _line(text, found.start()), found.start("text"), found.end("text"))
        for found in _FENCE.finditer(text)
    )
    left = re.search(r"^`{3,}", _FENCE.sub(lambda found: "\n" * found[0].count("\n"), text), re.MULTILINE)
    if left is not None:
        raise PageError(f"{path.name}: a fence is never closed")
    return Page(path, text, blocks, *_read_header(path, text))


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _read_header(path: Path, text: str) -> tuple[str | None, tuple[str, ...], str | None]:
    found = _HEADER.search("".join(text.splitlines(keepends=True)[:_HEADER_LINES]))
    if found is None:
        return None, (), None
    words = _WORDS.fullmatch(found["words"].strip())
    if words is None or words["kind"] not in KINDS:
        raise PageError(
            f"{path.name}: `{found[0]}` is none of `<!-- run: quick -->`, `<!-- run: slow, needs: qnn hf -->` "
            "and `<!-- run: never, because REASON -->`"
        )
    if (words["kind"] == "never") != bool(words["reason"]):
        raise PageError(f"{path.name}: `never` has a reason, the others have none")
    return words["kind"], tuple((words["needs"] or "").split()), words["reason"]


def list_pages() -> list[Page]:
    """Every page of the docs whose first lines say how it is run."""
    pages = [read_page(path) for path in sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in pages if page.kind is not None]


def make_variables(folder: Path, programs: Path, given: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables of a shell that finds programs there first and keeps all that winml stores in a folder."""
    left_out = ("WINML_", "VIRTUAL_ENV", "XDG_", "COLUMNS", "PYTHONPATH")
    return {
        **{name: value for name, value in given.items() if not name.startswith(left_out)},
        "PATH": f"{programs}{os.pathsep}{given['PATH']}",
        "PYTHONUTF8": "1",
        "WINML_CACHE": str(folder / "cache"),
        "WINML_KNOWLEDGE": str(folder / "knowledge"),
        "XDG_DATA_HOME": str(folder / "data"),
    }


def run_block(
    block: Block, folder: Path, env: Mapping[str, str], timeout_s: float = TIMEOUT_S
) -> subprocess.CompletedProcess[str]:
    """Run a block in a folder: `sh` ends at the first command that fails, `python` is a program of its own."""
    words = ["sh", "-e", "-c", block.text] if block.language == "sh" else ["python", "-c", block.text]
    # A file, not a pipe: what a block leaves running in the background does not hold up the next one.
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        process = subprocess.Popen(
            words, cwd=folder, env=dict(env), stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT
        )
        try:
            code, ending = process.wait(timeout_s), ""
        except subprocess.TimeoutExpired:
            process.kill()
            code, ending = process.wait(), f"\nended after {timeout_s} s\n"
        said.seek(0)
        return subprocess.CompletedProcess(words, code, said.read() + ending, "")


def programs_here() -> Path:
    """The folder of this Python, and of `winml` where it is installed."""
    return Path(sys.executable).parent

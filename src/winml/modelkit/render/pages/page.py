"""What a report holds, whatever it is written as: HTML, Markdown or single pictures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from winml.modelkit.core.dataclass import dataclass


@dataclass(frozen=True)
class Cell:
    """A cell that is more than its text."""

    text: str
    state: str | None = None
    """A verdict or a state of `render/marks.py`, shown with its colour and glyph."""
    sort: float | None = None
    """What it is sorted by instead of its text."""
    link: str | None = None
    """A relative address; only the dashboard, which knows what it serves, gives one."""


@dataclass(frozen=True)
class Row:
    """A line of a table."""

    cells: tuple[Cell | str, ...]
    marked: bool = False
    """The one that was chosen, or that differs."""


@dataclass(frozen=True)
class Table:
    """Rows under a heading; `folded` is a summary behind which they are hidden until they are wanted."""

    title: str
    head: tuple[str, ...]
    rows: tuple[Row, ...]
    numeric: frozenset[int] = frozenset()
    """Columns of numbers, which are aligned to the right."""
    folded: str | None = None
    note: str | None = None
    """A sentence before the rows."""


@dataclass(frozen=True)
class Figure:
    """A picture that answers one question."""

    name: str
    """What `--svg` calls it: lower-case words joined by `-`, unique in a page."""
    title: str
    sentence: str
    """What it shows for these data."""
    draw: Callable[[float], str]
    """The SVG for a width in pixels."""
    values: Table | None = None
    """What is drawn, as numbers."""


@dataclass(frozen=True)
class Facts:
    """Names and values."""

    title: str
    pairs: tuple[tuple[str, str], ...]
    folded: str | None = None


@dataclass(frozen=True)
class Notices:
    """What a reader has to know before the rest: fallbacks, warnings, notes."""

    lines: tuple[str, ...]
    kind: str = "warning"


@dataclass(frozen=True)
class Text:
    """Sentences, or lines as they are with `code`."""

    text: str
    title: str | None = None
    code: bool = False


@dataclass(frozen=True)
class Group:
    """Blocks under a heading of their own, as the parts of a composite model."""

    title: str
    blocks: tuple[Block, ...]
    state: str | None = None
    """Stands beside the heading, as in `Cell`."""
    anchor: str | None = None
    """The id that links name; None makes one of the title."""
    folded: str | None = None
    """A summary behind which the blocks are hidden."""


@dataclass(frozen=True)
class Columns:
    """Blocks of two runs beside each other."""

    blocks: tuple[Block, ...]


Block = Figure | Table | Facts | Notices | Text | Group | Columns


@dataclass(frozen=True)
class Page:
    """A report."""

    kind: str
    """What was reported: `perf`, `compare`, `autoconfig`."""
    title: str
    answer: str
    """The sentence a reader came for."""
    blocks: tuple[Block, ...]
    state: str | None = None
    """The verdict of the answer, as in `Cell`."""
    command: str | None = None
    """The command that makes sense next."""


def walk(blocks: Sequence[Block]) -> Iterator[Block]:
    """All blocks, also those inside of others."""
    for block in blocks:
        yield block
        if isinstance(block, Group | Columns):
            yield from walk(block.blocks)


def figures(page: Page) -> list[Figure]:
    """The pictures of a page, in order."""
    return [block for block in walk(page.blocks) if isinstance(block, Figure)]


def slug(text: str) -> str:
    """A text as part of an address."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "part"


def table(
    title: str,
    head: Sequence[str],
    rows: Sequence[Sequence[Cell | str] | Row],
    *,
    numeric: Sequence[int] = (),
    folded: str | None = None,
    note: str | None = None,
) -> Table:
    """A table; columns that are empty in all rows are dropped."""
    made = [row if isinstance(row, Row) else Row(tuple(row)) for row in rows]
    kept = [i for i in range(len(head)) if any(_text(row.cells[i]) for row in made)]
    return Table(
        title,
        tuple(head[i] for i in kept),
        tuple(Row(tuple(row.cells[i] for i in kept), row.marked) for row in made),
        frozenset(kept.index(i) for i in numeric if i in kept),
        folded,
        note,
    )


def _text(cell: Cell | str) -> str:
    return cell if isinstance(cell, str) else cell.text

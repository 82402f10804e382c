"""A report as Markdown, short enough for a comment on a pull request: numbers in place of pictures."""

from __future__ import annotations

from collections.abc import Sequence

from winml.modelkit.core.plain_text import lines
from winml.modelkit.core.plain_text import markdown as safe
from winml.modelkit.render.figures.style import STATE_GLYPHS as GLYPHS
from winml.modelkit.render.marks import STATES
from winml.modelkit.render.pages.page import Block, Cell, Columns, Facts, Figure, Group, Notices, Page, Table, Text

_LONG = 30
"""Rows of a table that are written; a comment on a pull request may have 65,536 characters."""


def page_markdown(page: Page, footer: str = "") -> str:
    """The report."""
    style = STATES.get(page.state or "")
    glyph = "" if style is None else f"{GLYPHS[style]} "
    parts = [f"## {safe(page.title)}", f"**{glyph}{safe(page.answer)}**", *_blocks(page.blocks, 3)]
    if page.command is not None:
        parts.append(f"Next: {_code(page.command)}")
    if footer:
        parts.append(f"<sub>{safe(footer)}</sub>")
    return "\n\n".join(part for part in parts if part) + "\n"


def _blocks(blocks: Sequence[Block], level: int) -> list[str]:
    return [part for block in blocks for part in _block(block, level)]


def _block(block: Block, level: int) -> list[str]:
    mark = "#" * min(level, 6)
    match block:
        case Figure():
            values = [] if block.values is None else [_fold(_table(block.values), "the same as numbers")]
            return [*_heading(mark, block.title), safe(block.sentence), *values]
        case Table():
            note = [] if block.note is None else [safe(block.note)]
            written = _table(block)
            return [*_heading(mark, block.title), *note, _fold(written, block.folded) if block.folded else written]
        case Facts():
            listed = "\n".join(f"- {safe(name)}: {safe(value)}" for name, value in block.pairs)
            return [*_heading(mark, block.title), _fold(listed, block.folded) if block.folded else listed]
        case Notices():
            return ["\n".join(f"> {safe(block.kind)}: {safe(line)}" for line in block.lines)]
        case Text():
            return [*_heading(mark, block.title), _code_block(block.text) if block.code else safe(block.text)]
        case Group():
            inner = _blocks(block.blocks, level + bool(block.title))
            if block.folded:
                inner = [_fold("\n\n".join(inner), block.folded)]
            return [*_heading(mark, block.title, block.state), *inner]
        case Columns():
            return _blocks(block.blocks, level)


def _heading(mark: str, title: str | None, state: str | None = None) -> list[str]:
    style = STATES.get(state or "")
    badge = "" if style is None or state is None else f" ({GLYPHS[style]} {safe(state)})"
    return [f"{mark} {safe(title)}{badge}"] if title else []


def _fold(content: str, summary: str) -> str:
    return f"<details><summary>{safe(summary)}</summary>\n\n{content}\n\n</details>"


def _code(text: str) -> str:
    fence = "`" * (_longest_run(text) + 1)
    return f"{fence} {lines(text)} {fence}" if "`" in text else f"`{lines(text)}`"


def _code_block(text: str) -> str:
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}text\n{lines(text)}\n{fence}"


def _longest_run(text: str) -> int:
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest


def _table(block: Table) -> str:
    rule = ("---:" if i in block.numeric else "---" for i in range(len(block.head)))
    rows = [_line([safe(name) for name in block.head]), f"|{'|'.join(rule)}|"]
    rows += [_line([_cell(cell, marked=row.marked) for cell in row.cells]) for row in block.rows[:_LONG]]
    if len(block.rows) > _LONG:
        rows.append(_line([f"… and {len(block.rows) - _LONG} more", *[""] * (len(block.head) - 1)]))
    return "\n".join(rows)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell | str, *, marked: bool) -> str:
    text = cell if isinstance(cell, str) else cell.text
    style = None if isinstance(cell, str) else STATES.get(cell.state or "")
    shown = safe(text) if style is None else f"{GLYPHS[style]} {safe(text)}"
    return f"**{shown}**" if marked and shown else shown

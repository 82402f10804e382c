"""Plain text tables, aligned by spaces, readable without colour, that fit the screen they are made for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from winml.modelkit.core.plain_text import markdown
from winml.modelkit.render.screen import columns_of, current_screen, paint
from winml.modelkit.render.wrap import words, wrap

_GAP = "  "
_PROSE = 28
"""Columns that a text of several words should have at least before others are dropped in its favour."""

Row = Sequence[str]


def markdown_table(head: Row, rows: Iterable[Row]) -> str:
    """A table in Markdown; markup in its cells is escaped."""
    lines = [head, ["---"] * len(head), *([markdown(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)


def table(
    rows: Sequence[Row],
    *,
    indent: str = "",
    right: frozenset[int] = frozenset(),
    head: bool = False,
    names: Row | None = None,
    drop: Sequence[int] = (),
    below: int | None = None,
) -> str:
    """Rows of equal length as aligned lines; columns in `right` are aligned to the right.

    On a terminal that is too narrow, the text of the column `below` (a reason) goes under its row, then the columns in
    `drop` are not shown, the first one first, and a line says so; then cells are broken between words, and a row whose
    words are too wide even so gets a line per cell. `head` says that the first row is a heading; `names` are those of
    columns where it does not say enough.
    """
    if not rows:
        return ""
    if len({*map(len, rows)}) > 1:
        raise ValueError("rows of a table have the same length")
    shown = [*range(len(rows[0]))]
    limit = current_screen().width
    if limit is None:
        widths = _natural(rows, shown)
        return "\n".join(line for row in rows for line in _align(row, shown, widths, right, indent))
    room = limit - len(indent)
    if below is not None and not _fits(rows, shown, room):
        shown.remove(below)
    names = names or (rows[0] if head else [""] * len(shown))
    cells = rows[1:] if head else rows
    dropped = [names[column] for column in _drop(rows, shown, drop, room) if any(row[column] for row in cells)]
    lines = _fit(rows, shown, names, right, indent, limit, head=head, below=None if below in shown else below)
    if dropped:
        them = "it" if len(dropped) == 1 else "them"
        note = f"not shown: {', '.join(dropped)} (a wider terminal or --json shows {them})"
        lines += _indent(paint("quiet", note), indent, limit)
    return "\n".join(lines)


def _natural(rows: Sequence[Row], shown: Sequence[int]) -> list[int]:
    return [max(columns_of(row[i]) for row in rows) for i in shown]


def _longest(cell: str) -> int:
    """The width of the longest word."""
    return max(map(columns_of, words(cell)), default=0)


def _fits(rows: Sequence[Row], shown: Sequence[int], room: int) -> bool:
    """Whether all cells fit in a line when only texts of several words are broken."""
    needed = [
        width if width <= _PROSE else min(width, max(_PROSE, *(_longest(row[i]) for row in rows)))
        for i, width in zip(shown, _natural(rows, shown), strict=True)
    ]
    return sum(needed) + len(_GAP) * (len(shown) - 1) <= room


def _drop(rows: Sequence[Row], shown: list[int], drop: Sequence[int], room: int) -> list[int]:
    """Take columns out of `shown` until the rest fits, those without content first."""
    dropped = []
    for column in sorted(drop, key=lambda column: any(row[column] for row in rows[1:])):
        if _fits(rows, shown, room):
            break
        shown.remove(column)
        dropped.append(column)
    return dropped


def _fit(
    rows: Sequence[Row],
    shown: Sequence[int],
    names: Row,
    right: frozenset[int],
    indent: str,
    limit: int,
    *,
    head: bool,
    below: int | None,
) -> list[str]:
    """The lines of a table, none wider than the limit."""
    beside = _beside(rows, shown, limit - len(indent), head=head)
    widths = _share([rows[number] for number in beside], shown, limit - len(indent)) if beside else []
    lines = []
    for number, row in enumerate(rows):
        is_head = head and number == 0
        if number in beside:
            painted = [paint("head", cell) for cell in row] if is_head else row
            lines += _align(painted, shown, widths, right, indent)
        elif not is_head:
            lines += _stack(row, shown, names, indent, limit)
        if below is not None and not is_head:
            lines += _indent(row[below], f"{indent}  ", limit)
    return lines


def _beside(rows: Sequence[Row], shown: Sequence[int], room: int, *, head: bool) -> set[int]:
    """The rows whose cells fit side by side without breaking a word; none when most do not."""
    room -= len(_GAP) * (len(shown) - 1)
    longest = [[_longest(row[i]) for i in shown] for row in rows]
    beside = set(range(len(rows)))
    while beside and sum(map(max, zip(*(longest[number] for number in beside), strict=True))) > room:
        beside.remove(max(beside, key=lambda number: (max(longest[number]), number)))
    return beside if 2 * len(beside - {0 if head else -1}) >= len(rows) - head else set()


def _share(rows: Sequence[Row], shown: Sequence[int], room: int) -> list[int]:
    """The widths of columns: the widest ones are narrowed as far as their words allow."""
    room -= len(_GAP) * (len(shown) - 1)
    least = [max(_longest(row[i]) for row in rows) for i in shown]
    widths = [max(low, min(width, room)) for width, low in zip(_natural(rows, shown), least, strict=True)]
    while sum(widths) > room:
        widest = max((i for i in range(len(widths)) if widths[i] > least[i]), key=lambda i: widths[i])
        widths[widest] -= 1
    return widths


def _align(row: Row, shown: Sequence[int], widths: Sequence[int], right: frozenset[int], indent: str) -> list[str]:
    """A row as aligned lines, as many as its highest cell has."""
    cells = [
        [row[i]] if columns_of(row[i]) <= width else wrap(row[i], width) for i, width in zip(shown, widths, strict=True)
    ]
    lines = []
    for number in range(max(map(len, cells))):
        texts = [cell[number] if number < len(cell) else "" for cell in cells]
        spaces = [" " * (width - columns_of(text)) for width, text in zip(widths, texts, strict=True)]
        line = (
            space + text if i in right else text + space for i, space, text in zip(shown, spaces, texts, strict=True)
        )
        lines.append((indent + _GAP.join(line)).rstrip())
    return lines


def _stack(row: Row, shown: Sequence[int], names: Row, indent: str, limit: int) -> list[str]:
    """A row as a line per cell: the first, then the others under it with their names."""
    first, *others = shown
    lines = _indent(row[first], indent, limit)
    for i in others:
        name = f"{names[i]}: " if names[i] and row[i] else ""
        lines += _indent(f"{name}{row[i]}", f"{indent}  ", limit)
    return lines


def _indent(text: str, indent: str, limit: int) -> list[str]:
    """A text as indented lines; none when there is no text."""
    return [indent + line for line in wrap(text, max(limit - len(indent), 1))] if text else []

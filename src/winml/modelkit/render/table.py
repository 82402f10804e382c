"""Plain text tables, aligned by spaces, readable without colour."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from winml.modelkit.core.plain_text import markdown


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown; markup in its cells is escaped."""
    lines = [head, ["---"] * len(head), *([markdown(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)


def table(rows: Sequence[Sequence[str]], *, indent: str = "", right: frozenset[int] = frozenset()) -> str:
    """Rows of equal length as aligned lines; columns in `right` are aligned to the right."""
    if not rows:
        return ""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((indent + "  ".join(cells)).rstrip())
    return "\n".join(lines)

"""A table of states as a picture: a row per model, a column per target, a glyph and a colour per cell."""

from __future__ import annotations

from collections.abc import Sequence

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.render.figures.canvas import FONT, SMALL, WIDE, Canvas, is_narrow
from winml.modelkit.render.figures.legend import Key, draw_legend, legend_height
from winml.modelkit.render.figures.style import STATE_GLYPHS, STATE_ROLES
from winml.modelkit.render.figures.text_size import shorten, text_width

MOST_COLUMNS = 24
"""Columns whose glyphs do not touch at the width of a phone."""
_ROW, _GAP = 30.0, 2.0
_LINE = 15.0
_MOST_LABEL, _MOST_CELL = 230.0, 110.0
_SMALLEST = 10.0
"""Size of a text in a cell that would not fit otherwise."""


@dataclass(frozen=True)
class HeatColumn:
    """A column: the lines of its head, and the name that a legend has for it where they do not fit."""

    words: tuple[str, ...]
    name: str


@dataclass(frozen=True)
class HeatCell:
    """A cell; `text` follows its glyph where there is room."""

    style: str
    """Style of its state in `render/marks.py`."""
    description: str
    text: str = ""


@dataclass(frozen=True)
class HeatRow:
    """A row; None where there is no such cell."""

    label: str
    cells: tuple[HeatCell | None, ...]


def heatmap_figure(
    columns: Sequence[HeatColumn], rows: Sequence[HeatRow], keys: Sequence[Key], title: str, width: float = WIDE
) -> str:
    """The picture; an empty text without cells. `keys` say what the glyphs mean."""
    if not columns or not rows:
        return ""
    narrow = is_narrow(width)
    labels = [shorten(row.label, width if narrow else min(_MOST_LABEL, 0.4 * width), FONT) for row in rows]
    left = 0.0 if narrow else 12 + max(text_width(label, FONT) for label in labels)
    cell = min((width - left) / len(columns), _MOST_CELL)
    fits = all(text_width(word, SMALL) <= cell - 4 for column in columns for word in column.words)
    heads = [column.words if fits else (str(number),) for number, column in enumerate(columns, 1)]
    numbered = [] if fits else [Key(str(n), column.name, "plain") for n, column in enumerate(columns, 1)]
    top = _LINE * max(map(len, heads)) + 6
    row_height = _ROW + (FONT + 6 if narrow else 0)
    bottom = top + row_height * len(rows) + 10
    canvas = Canvas(width, bottom + legend_height(keys, width) + legend_height(numbered, width))
    for number, words in enumerate(heads):
        for line, word in enumerate(words):
            x, y = left + cell * (number + 0.5), _LINE * (line + 1) - 3
            canvas.text(x, y, word, anchor="middle", class_="wk-tick", size=SMALL if cell > 2 * SMALL else _SMALLEST)
    for number, (row, label) in enumerate(zip(rows, labels, strict=True)):
        y = top + row_height * number + (FONT + 6 if narrow else 0)
        canvas.text(0, y - 6 if narrow else y + _ROW / 2 + FONT * 0.35, label)
        for place, one in enumerate(row.cells):
            if one is not None:
                _draw(canvas, one, left + cell * place, y, cell)
    draw_legend(canvas, keys, bottom)
    draw_legend(canvas, numbered, bottom + legend_height(keys, width))
    return canvas.svg(title)


def _draw(canvas: Canvas, cell: HeatCell, x: float, y: float, width: float) -> None:
    glyph = STATE_GLYPHS[cell.style]
    with canvas.mark(cell.description, class_=f"wk-mark wk-{STATE_ROLES[cell.style]}"):
        canvas.add("rect", x=x + _GAP / 2, y=y + _GAP / 2, width=max(width - _GAP, 1.0), height=_ROW - _GAP, rx=3,
                   class_="wk-tint")  # fmt: skip
        wanted = f"{glyph} {cell.text}" if cell.text else glyph
        # The whole text, if need be a little smaller; else the glyph alone.
        choices = [(wanted, SMALL), (wanted, _SMALLEST), (glyph, SMALL)]
        text, font = next((one for one in choices if text_width(*one) <= width - _GAP - 2), choices[-1])
        canvas.text(x + width / 2, y + _ROW / 2 + SMALL * 0.35, text, anchor="middle", size=font)

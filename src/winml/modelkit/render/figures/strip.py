"""What ran where, from the first operator to the last: a strip of pieces in the colours of their EPs."""

from __future__ import annotations

from collections.abc import Sequence

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.render.figures.canvas import FONT, SMALL, WIDE, Box, Canvas, is_narrow, text_box
from winml.modelkit.render.figures.legend import Key, draw_legend, legend_height
from winml.modelkit.render.figures.text_size import shorten, text_width

MOST_PIECES = 40
"""More of them are not told apart."""
_BAR = 34.0
_LEAST = 5.0
"""Pixels of a piece, however small it is: one operator that splits a graph matters."""
_ROWS = 4
_ROW = 17.0


@dataclass(frozen=True)
class Piece:
    """Operators one after the other."""

    label: str
    """Empty for a piece that needs no name."""
    description: str
    count: int
    parts: tuple[tuple[str, float], ...]
    """Roles of the EPs that ran it, with their parts: one, unless pieces were drawn together."""
    glyph: str = ""
    first: bool = False
    """Named before the others, while there is room."""


def strip_figure(pieces: Sequence[Piece], title: str, width: float = WIDE, keys: Sequence[Key] = ()) -> str:
    """The picture; an empty text without pieces, of which there may be `MOST_PIECES`."""
    whole = sum(piece.count for piece in pieces)
    if not whole:
        return ""
    top = legend_height(keys, width) + 2
    canvas = Canvas(width, top + _BAR)
    draw_legend(canvas, keys, 0)
    room = width - _LEAST * len(pieces)
    places = []
    x = 0.0
    for piece in pieces:
        length = _LEAST + piece.count / whole * room
        _draw(canvas, piece, x, top, max(length - 1.5, 1))
        places.append(x + length / 2)
        x += length
    bottom = top + _BAR
    for piece, middle in sorted(zip(pieces, places, strict=True), key=lambda one: not one[0].first):
        if piece.label:
            text = shorten(piece.label, 200 if is_narrow(width) else 260, SMALL)
            bottom = max(bottom, _name(canvas, text, middle, top + _BAR))
    end = bottom + 12 + SMALL
    canvas.height = end + 6
    canvas.text(0, end, "first operator", class_="wk-note", size=SMALL)
    canvas.text(width, end, "last", anchor="end", class_="wk-note", size=SMALL)
    canvas.add("path", d=f"M{text_width('first operator', SMALL) + 8:.1f} {end - 4:.1f}"
               f"H{width - text_width('last', SMALL) - 8:.1f}", class_="wk-axis")  # fmt: skip
    return canvas.svg(title)


def _draw(canvas: Canvas, piece: Piece, x: float, top: float, length: float) -> None:
    with canvas.mark(piece.description):
        y = top
        for role, part in piece.parts:
            with canvas.group(f"wk-{role}"):
                canvas.add("rect", x=x, y=y, width=length, height=_BAR * part, class_="wk-solid")
                if len(piece.parts) == 1 and length >= 2 * FONT:
                    with canvas.group("wk-paper"):
                        canvas.text(x + length / 2, y + _BAR / 2 + FONT * 0.35, piece.glyph, anchor="middle")
            y += _BAR * part


def _name(canvas: Canvas, text: str, middle: float, bottom: float) -> float:
    """A text below the strip in the first row where it touches no other, with a line to its piece; where it ends."""
    half = text_width(text, SMALL) / 2
    x = min(max(middle, half + 1), canvas.width - half - 1)
    for row in range(_ROWS):
        y = bottom + 8 + _ROW * row + SMALL
        box = text_box(x, y, text, "middle", SMALL)
        wide = Box(box.left - 6, box.top, box.right + 6, box.bottom)
        line = Box(middle - 2, bottom + 1, middle + 2, box.top)
        if any(wide.meets(other) or line.meets(other) for other in canvas.boxes):
            continue
        canvas.text(x, y, text, anchor="middle", size=SMALL)
        canvas.add("path", d=f"M{middle:.1f} {bottom + 1:.1f}V{box.top - 1:.1f}", class_="wk-axis")
        canvas.take(line.left, line.top, line.right, line.bottom)
        return box.bottom
    return bottom

"""What the colours and glyphs of a picture mean, in as many lines as its width asks for."""

from __future__ import annotations

from collections.abc import Sequence

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.render.figures.canvas import SMALL, Canvas
from winml.modelkit.render.figures.text_size import shorten, text_width

LINE = 20.0
_GAP = 18.0


@dataclass(frozen=True)
class Key:
    """An entry: `■ QNN`."""

    text: str
    role: str
    glyph: str


def legend_lines(keys: Sequence[Key], width: float) -> list[list[tuple[Key, str]]]:
    """The entries with their texts, line by line."""
    lines: list[list[tuple[Key, str]]] = []
    x = 0.0
    for key in keys:
        text = shorten(f"{key.glyph} {key.text}", width, SMALL)
        length = text_width(text, SMALL)
        if not lines or x + length > width:
            lines.append([])
            x = 0.0
        lines[-1].append((key, text))
        x += length + _GAP
    return lines


def draw_legend(canvas: Canvas, lines: Sequence[Sequence[tuple[Key, str]]], top: float) -> None:
    """The entries from the left edge on, the first line below `top`."""
    for number, line in enumerate(lines):
        x = 0.0
        for key, text in line:
            with canvas.group(f"wk-{key.role}"):
                canvas.text(x, top + LINE * number + SMALL, text, size=SMALL)
            x += text_width(text, SMALL) + _GAP

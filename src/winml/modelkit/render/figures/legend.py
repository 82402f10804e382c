"""What glyphs and colours of a picture mean, in lines that fit its width."""

from __future__ import annotations

from collections.abc import Sequence

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.render.figures.canvas import SMALL, Canvas
from winml.modelkit.render.figures.text_size import shorten, text_width

_LINE = 20.0
_GAP = 18.0


@dataclass(frozen=True)
class Key:
    """A glyph with its colour and its meaning."""

    glyph: str
    text: str
    role: str


def legend_lines(keys: Sequence[Key], width: float) -> list[list[Key]]:
    """The keys as lines that are no wider than a picture."""
    lines: list[list[Key]] = []
    left = 0.0
    for key in keys:
        needed = text_width(f"{key.glyph} {key.text}", SMALL)
        if not lines or left + needed > width:
            lines.append([])
            left = 0.0
        lines[-1].append(key)
        left += needed + _GAP
    return lines


def legend_height(keys: Sequence[Key], width: float) -> float:
    """Pixels that a legend takes."""
    return _LINE * len(legend_lines(keys, width))


def draw_legend(canvas: Canvas, keys: Sequence[Key], top: float) -> None:
    """Write the keys below a picture."""
    for number, line in enumerate(legend_lines(keys, canvas.width)):
        x, y = 0.0, top + _LINE * number + SMALL
        for key in line:
            text = shorten(f"{key.glyph} {key.text}", canvas.width, SMALL)
            canvas.text(x, y, text, class_=f"wk-{key.role} wk-key", size=SMALL)
            x += text_width(text, SMALL) + _GAP

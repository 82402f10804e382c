"""Parts of a whole as one bar, with a line for each part below it."""

from __future__ import annotations

from collections.abc import Sequence

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.render.figures.canvas import FONT, WIDE, Canvas
from winml.modelkit.render.figures.text_size import shorten

_BAR = 26.0
_LINE = 22.0


@dataclass(frozen=True)
class Share:
    """A part."""

    label: str
    description: str
    value: float
    text: str
    role: str
    glyph: str


def share_figure(shares: Sequence[Share], title: str, width: float = WIDE) -> str:
    """The picture; an empty text when there is nothing to divide."""
    whole = sum(share.value for share in shares)
    if whole <= 0:
        return ""
    canvas = Canvas(width, _BAR + 10 + _LINE * len(shares))
    x = 0.0
    for number, share in enumerate(shares):
        length = share.value / whole * width
        with canvas.mark(share.description, class_=f"wk-mark wk-{share.role}"):
            canvas.add("rect", x=x, y=0, width=max(length - 1, 0.5), height=_BAR, class_="wk-solid")
            y = _BAR + 8 + _LINE * (number + 0.7)
            room = width - 8 - len(share.text) * FONT * 0.7
            canvas.text(0, y, f"{share.glyph} {shorten(share.label, room - 20, FONT)}")
            canvas.text(width, y, share.text, anchor="end")
        x += length
    return canvas.svg(title)

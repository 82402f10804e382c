"""Checks one after the other: what each is, and whether it passed, failed, was blocked or was not run."""

from __future__ import annotations

from collections.abc import Sequence

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.render.figures.canvas import FONT, SMALL, WIDE, Canvas
from winml.modelkit.render.figures.style import STATE_GLYPHS, STATE_ROLES
from winml.modelkit.render.figures.text_size import shorten

_LEAST, _HEIGHT, _GAP = 145.0, 46.0, 6.0
"""Least width of a box, its height, and the room between two."""


@dataclass(frozen=True)
class Check:
    """A box."""

    label: str
    state: str
    """Below the label, in words."""
    style: str
    """Style of its state in `render/marks.py`."""
    description: str


def check_figure(checks: Sequence[Check], title: str, width: float = WIDE) -> str:
    """The picture, in as many rows as it needs; an empty text without checks."""
    if not checks:
        return ""
    in_row = max(1, min(len(checks), int((width + _GAP) / (_LEAST + _GAP))))
    rows = -(-len(checks) // in_row)
    box = (width + _GAP) / in_row - _GAP
    canvas = Canvas(width, rows * (_HEIGHT + _GAP) - _GAP + 1)
    for number, check in enumerate(checks):
        x, y = number % in_row * (box + _GAP), number // in_row * (_HEIGHT + _GAP)
        with canvas.mark(check.description, class_=f"wk-mark wk-{STATE_ROLES[check.style]}"):
            canvas.add("rect", x=x + 0.5, y=y + 0.5, width=box - 1, height=_HEIGHT - 1, rx=4, class_="wk-tint")
            label = shorten(f"{STATE_GLYPHS[check.style]} {check.label}", box - 16, FONT)
            canvas.text(x + 8, y + 19, label, size=FONT)
            canvas.text(x + 8, y + 37, shorten(check.state, box - 16, SMALL), size=SMALL)
    return canvas.svg(title)

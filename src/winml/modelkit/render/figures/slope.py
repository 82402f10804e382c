"""Before and after: a line per part from what it took to what it takes, the steepest ones in colour."""

from __future__ import annotations

from collections.abc import Sequence

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.render.figures.canvas import FONT, SMALL, WIDE, Canvas, is_narrow
from winml.modelkit.render.figures.scale import Scale
from winml.modelkit.render.figures.text_size import shorten, text_width

_GAP = 20.0
"""Pixels between the lines of two labels."""
_LEAST = 200.0
"""Height of the slopes."""
_ROW = 60.0
_LABEL = 0.36
"""Part of the width that names take."""


@dataclass(frozen=True)
class Slope:
    """A part, in one unit on both sides."""

    label: str
    description: str
    before: float
    after: float
    before_text: str
    after_text: str
    change: str
    """The change as it stands at the end of the line: `▲ 8.6 times`."""
    role: str


def slope_figure(
    slopes: Sequence[Slope], title: str, width: float = WIDE, heads: tuple[str, str] = ("before", "after")
) -> str:
    """The picture; an empty text without parts."""
    if not slopes:
        return ""
    return _rows(slopes, title, width, heads) if is_narrow(width) else _slopes(slopes, title, width, heads)


def _slopes(slopes: Sequence[Slope], title: str, width: float, heads: tuple[str, str]) -> str:
    names = [shorten(one.label, width * _LABEL, FONT) for one in slopes]
    left = 14 + max(text_width(f"{name}  {one.before_text}", FONT) for name, one in zip(names, slopes, strict=True))
    left = min(left, width * 0.6)
    right = width - 14 - max(text_width(f"{one.after_text}  {one.change}", FONT) for one in slopes)
    top = 34.0
    height = max(_LEAST, _GAP * len(slopes))
    canvas = Canvas(width, top + height + 14)
    most = max(max(one.before, one.after) for one in slopes)
    scale = Scale(0, most or 1.0, top + height, top)
    for x, head, anchor in ((left, heads[0], "end"), (right, heads[1], "start")):
        room = left if anchor == "end" else width - right
        text = shorten(head, room, FONT)
        canvas.text(x, 14, text, anchor="end" if anchor == "end" else "start", class_="wk-title")
        canvas.add("path", d=f"M{x:.1f} {top - 8:.1f}V{top + height:.1f}", class_="wk-axis")
    bounds = (top + 4, top + height + 4)
    ends = _spread([scale.at(one.after) for one in slopes], bounds)
    begins = _spread([scale.at(one.before) for one in slopes], bounds)
    for one, name, begin, end in zip(slopes, names, begins, ends, strict=True):
        y, to = scale.at(one.before), scale.at(one.after)
        with canvas.mark(one.description, class_=f"wk-mark wk-{one.role}"):
            canvas.add("path", d=f"M{left:.1f} {y:.1f}L{right:.1f} {to:.1f}", class_="wk-path")
            canvas.add("circle", cx=left, cy=y, r=4, class_="wk-open-dot")
            canvas.add("circle", cx=right, cy=to, r=4.5)
            room = left - 14 - text_width(f"  {one.before_text}", FONT)
            with canvas.group("wk-on"):
                canvas.text(0, begin + FONT * 0.35, shorten(name, room, FONT))
            canvas.text(left - 9, begin + FONT * 0.35, one.before_text, anchor="end")
            canvas.text(right + 9, end + FONT * 0.35, one.after_text)
            canvas.text(width, end + FONT * 0.35, one.change, anchor="end")
    return canvas.svg(title)


def _spread(places: Sequence[float], bounds: tuple[float, float]) -> list[float]:
    """Where labels stand that belong to these places: as near as they get without touching, in the same order."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    found = [0.0] * len(places)
    last = bounds[0] - _GAP
    for i in order:
        found[i] = last = max(places[i], last + _GAP)
    last = bounds[1] + _GAP
    for i in reversed(order):
        found[i] = last = min(found[i], last - _GAP)
    return found


def _rows(slopes: Sequence[Slope], title: str, width: float, heads: tuple[str, str]) -> str:
    """One row each, an arrow from the value before to the one after."""
    top = 24.0
    canvas = Canvas(width, top + _ROW * len(slopes))
    most = max(max(one.before, one.after) for one in slopes)
    scale = Scale(0, most or 1.0, 7, width - 7)
    canvas.text(0, SMALL + 1, shorten(f"○ {heads[0]}", width / 2 - 8, SMALL), class_="wk-note", size=SMALL)
    canvas.text(
        width, SMALL + 1, shorten(f"● {heads[1]}", width / 2 - 8, SMALL), anchor="end", class_="wk-note", size=SMALL
    )
    for number, one in enumerate(slopes):
        y = top + _ROW * number
        with canvas.mark(one.description, class_=f"wk-mark wk-{one.role}"):
            room = width - text_width(one.change, FONT) - 10
            with canvas.group("wk-on"):
                canvas.text(0, y + FONT, shorten(one.label, room, FONT))
            canvas.text(width, y + FONT, one.change, anchor="end")
            with canvas.group("wk-soft"):
                values = f"{one.before_text} → {one.after_text}"
                canvas.text(0, y + FONT + SMALL + 4, shorten(values, width, SMALL), size=SMALL)
            at = y + FONT + SMALL + 16
            canvas.add("path", d=f"M{scale.at(one.before):.1f} {at:.1f}H{scale.at(one.after):.1f}", class_="wk-path")
            canvas.add("circle", cx=scale.at(one.before), cy=at, r=4, class_="wk-open-dot")
            canvas.add("circle", cx=scale.at(one.after), cy=at, r=4.5)
    return canvas.svg(title)

"""Values of several runs, one row each: single values as dots, the estimate with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.render.figures.canvas import FONT, WIDE, Canvas, is_narrow
from winml.modelkit.render.figures.scale import Scale, log_range, padded_range
from winml.modelkit.render.figures.text_size import shorten, text_width

ROW = 36.0
"""Height of a row."""
_MOST_LABEL = 220.0
_MOST_DOTS = 600
"""Values that are drawn in all rows together; of more, every n-th of them in order."""
_LONG = 6.0
"""An axis whose end is more than so many times its begin is logarithmic."""
_BEYOND = 3.0
"""An interval that reaches so many times as far as the values do is cut at the frame."""


@dataclass(frozen=True)
class DotRow:
    """A row of the picture."""

    label: str
    description: str
    """What the mark says, with exact values."""
    value: float
    text: str
    """The value as it stands beside the row."""
    interval: tuple[float, float] | None = None
    values: tuple[float, ...] = ()
    role: str = "main"
    marked: bool = False
    """The one that was chosen."""


def dot_figure(
    rows: Sequence[DotRow],
    axis: str,
    title: str,
    width: float = WIDE,
    *,
    line: tuple[float, str] | None = None,
    log: bool | None = None,
    most_label: float = _MOST_LABEL,
    cover: Sequence[float] = (),
) -> str:
    """The picture; an empty text without rows.

    `line` is a value with its name that all rows are held against; the axis reaches to the values of `cover`, too.
    """
    if not rows:
        return ""
    narrow = is_narrow(width)
    row_height = ROW + (FONT + 3 if narrow else 0)
    right = 16 + max(text_width(row.text, FONT) for row in rows)
    labels = [shorten(row.label, width - right if narrow else min(most_label, 0.4 * width), FONT) for row in rows]
    left = 8.0 if narrow else 16 + max(text_width(label, FONT) for label in labels)
    top = 24.0 if line else 6.0
    bottom = top + row_height * len(rows)
    canvas = Canvas(width, bottom + 46)
    shown = [*([line[0]] if line else []), *cover]
    scale = row_scale(rows, shown, left, width - (8 if narrow else right), log)
    words = axis + (", logarithmic" if scale.log else "")
    canvas.x_axis(scale, bottom, words, top=top, most=4 if narrow else 6)
    if line is not None:
        x = scale.at(line[0])
        canvas.add("path", d=f"M{x:.1f} {top - 4:.1f}V{bottom:.1f}", class_="wk-zero")
        half = text_width(line[1], FONT) / 2
        canvas.text(min(max(x, half + 1), width - half - 1), top - 10, line[1], anchor="middle", class_="wk-note")
    for number, (row, label) in enumerate(zip(rows, labels, strict=True)):
        y = top + row_height * (number + 1) - ROW / 2
        draw_row(
            canvas,
            scale,
            row,
            label,
            top + row_height * number + FONT if narrow else y + FONT * 0.35,
            y,
            drawn_every(rows),
        )
    return canvas.svg(title)


def row_scale(
    rows: Sequence[DotRow], others: Sequence[float], start: float, end: float, log: bool | None = None
) -> Scale:
    """An axis with room for all values and `others`; intervals that reach far beyond them are cut at its ends."""
    known = [value for row in rows for value in (row.value, *row.values)] + list(others)
    low, high = min(known), max(known)
    room = _BEYOND * (high - low or abs(high) or 1.0)
    bounds = [min(max(b, low - room), high + room) for row in rows for b in row.interval or () if math.isfinite(b)]
    if log is None:
        log = low > 0 and high > _LONG * low
    if log:
        return Scale(*log_range([*known, *(b for b in bounds if b > low / 10)]), start, end, log=True)
    return Scale(*padded_range([*known, *bounds]), start, end)


def drawn_every(rows: Sequence[DotRow]) -> int:
    """Of how many values one is drawn."""
    return -(-sum(len(row.values) for row in rows) // _MOST_DOTS) or 1


def draw_row(canvas: Canvas, scale: Scale, row: DotRow, label: str, baseline: float, y: float, every: int = 1) -> None:
    """A row, with its texts on a line and every n-th of its dots at a height."""
    canvas.text(0, baseline, label, class_="wk-label wk-halo" + (" wk-strong" if row.marked else ""))
    with canvas.mark(row.description, class_=f"wk-mark wk-{row.role}"):
        for number, value in enumerate(row.values[::every]):
            canvas.add(
                "circle", cx=scale.at(value), cy=y + (number % 5 - 2) * 2.5, r=2.5, class_="wk-round", stroke="none"
            )
        if row.interval is not None:
            low, high = (min(max(bound, scale.low), scale.high) for bound in row.interval)
            canvas.add("path", d=f"M{scale.at(low):.1f} {y:.1f}H{scale.at(high):.1f}", class_="wk-whisker")
        canvas.add("circle", cx=scale.at(row.value), cy=y, r=5.5)
        canvas.text(canvas.width, baseline, row.text, anchor="end", class_="wk-answer wk-halo")

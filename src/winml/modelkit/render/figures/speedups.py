"""How many times as fast every candidate is as its base: rounds as dots, the interval, the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.render.compare import round_speedups
from winml.modelkit.render.figures.canvas import FONT, SMALL, WIDE, Canvas, is_narrow
from winml.modelkit.render.figures.scale import Scale, log_range
from winml.modelkit.render.figures.style import GLYPHS, ROLES
from winml.modelkit.render.figures.text_size import shorten, text_width
from winml.modelkit.render.times import speedup_text

if TYPE_CHECKING:
    from winml.modelkit.measuring.compare_result import CompareResult

_ROW = 44.0
_MOST_LABEL = 220.0
_MOST_DOTS = 200
"""Rounds that are drawn per candidate; of more, every n-th."""
_SHOWN = (0.2, 5.0)
"""Parts of the estimate between which an interval is drawn: that of two rounds may reach from 0 to thousands."""


@dataclass(frozen=True)
class SpeedupRow:
    """A candidate in the picture."""

    label: str
    verdict: str
    speedup: float | None
    interval: tuple[float, float] | None
    rounds: tuple[float, ...] = ()


def rows_of_compare(result: CompareResult) -> list[SpeedupRow]:
    """The candidates of a comparison, best first."""
    ranked = {label: i for i, label in enumerate(result.ranking)}
    candidates = sorted(result.candidates, key=lambda c: ranked.get(c.label, len(ranked)))
    return [
        SpeedupRow(c.label, c.verdict.verdict, c.speedup, c.speedup_interval, tuple(round_speedups(c)))
        for c in candidates
    ]


def speedup_figure(rows: Sequence[SpeedupRow], base: str, width: float = WIDE) -> str:
    """The picture; an empty text when nothing was measured."""
    rows = [row for row in rows if row.speedup is not None]
    if not rows:
        return ""
    narrow = is_narrow(width)
    row_height = _ROW + (FONT + 5 if narrow else 0)
    right = 20 + max(text_width(_answer(row), FONT) for row in rows)
    labels = [shorten(row.label, width - right if narrow else _MOST_LABEL, FONT) for row in rows]
    left = 8 if narrow else 16 + max(text_width(label, FONT) for label in labels)
    bottom = 34 + row_height * len(rows)
    canvas = Canvas(width, bottom + 48)
    scale = _scale(rows, left, width - (8 if narrow else right))
    title = f"times as fast as {shorten(base, width - 150, FONT)}"
    canvas.x_axis(scale, bottom, title, top=26, most=4 if narrow else 6)
    canvas.add("path", d=f"M{scale.at(1.0):.1f} 20V{bottom:.1f}", class_="wk-zero")
    half = text_width("same speed", SMALL) / 2 + 1
    x = min(max(scale.at(1.0), half), width - half)
    canvas.text(x, 14, "same speed", anchor="middle", class_="wk-note", size=SMALL)
    for number, (row, label) in enumerate(zip(rows, labels, strict=True)):
        top = 34 + row_height * number
        _draw(
            canvas,
            scale,
            row,
            label,
            top + FONT + 1 if narrow else top + _ROW / 2 + FONT * 0.35,
            top + row_height - _ROW / 2,
        )
    return canvas.svg(sentence(rows, base))


def _scale(rows: Sequence[SpeedupRow], start: float, end: float) -> Scale:
    shown = [1.0]
    for row in rows:
        assert row.speedup is not None
        shown += [row.speedup, *row.rounds]
        # Of an interval that reaches far beyond what was measured, only a part is drawn.
        near = (row.speedup * _SHOWN[0], row.speedup * _SHOWN[1])
        shown += [min(max(bound, near[0]), near[1]) for bound in row.interval or ()]
    low, high = log_range(shown)
    return Scale(low, high, start, end, log=True)


def _draw(canvas: Canvas, scale: Scale, row: SpeedupRow, label: str, baseline: float, y: float) -> None:
    assert row.speedup is not None
    role = ROLES.get(row.verdict, "plain")
    canvas.text(0, baseline, label, class_="wk-label wk-halo")
    known = "" if row.interval is None else f" (95 % {row.interval[0]:.2f} … {row.interval[1]:.2f})"
    with canvas.mark(f"{row.label}: {row.speedup:.2f} times as fast{known}, {row.verdict}, {len(row.rounds)} rounds",
                     class_=f"wk-mark wk-{role}"):  # fmt: skip
        every = -(-len(row.rounds) // _MOST_DOTS) or 1
        for number, one in enumerate(row.rounds[::every]):
            canvas.add("circle", cx=scale.at(one), cy=y + (number % 5 - 2) * 3, r=2.5, class_="wk-round", stroke="none")
        if row.interval is not None:
            low, high = (min(max(bound, scale.low), scale.high) for bound in row.interval)
            canvas.add("path", d=f"M{scale.at(low):.1f} {y:.1f}H{scale.at(high):.1f}", class_="wk-whisker")
        canvas.add("circle", cx=scale.at(row.speedup), cy=y, r=6)
        canvas.text(canvas.width, baseline, _answer(row), anchor="end", class_="wk-answer wk-halo")


def _answer(row: SpeedupRow) -> str:
    return f"{speedup_text(row.speedup)} {GLYPHS.get(row.verdict, '')}".rstrip()


def sentence(rows: Sequence[SpeedupRow], base: str) -> str:
    """What the picture shows, in words."""
    kept = [row for row in rows if row.verdict in ("KEEP", "MARGINAL_KEEP") and row.speedup is not None]
    if not kept:
        return f"No candidate is proven faster than {base}."
    best = kept[0]
    between = "" if best.interval is None else f" ({best.interval[0]:.2f} to {best.interval[1]:.2f} at 95 %)"
    return f"{best.label} is {best.speedup:.2f} times as fast as {base}{between}."

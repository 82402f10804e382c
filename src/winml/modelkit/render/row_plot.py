"""Plots with a row for each thing that was measured, as inline SVG: every run, or an interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from winml.modelkit.core.dataclass import dataclass

WIDTH, ROW, LEFT, RIGHT, BOTTOM = 720, 34, 150, 24, 40
_LABEL_LENGTH = 22


@dataclass(frozen=True)
class Bar:
    """An interval and the value in it."""

    label: str
    low: float
    value: float
    high: float
    marked: bool = False


def dots(rows: Sequence[tuple[str, Sequence[float]]], x_title: str) -> str:
    """Every value as a dot, with a line at the median of its row; the largest 2 % are counted, not drawn."""
    everything = sorted(value for _, values in rows for value in values)
    if not everything:
        return "<p>nothing was measured</p>"
    top = everything[min(len(everything) - 1, round(len(everything) * 0.98))]
    above = sum(value > top for value in everything)
    note = f"; {above} of {len(everything)} runs took longer than {top:.3g}" if above else ""
    scale = _Scale(everything[0], top)
    parts = []
    for number, (_, values) in enumerate(rows):
        y = _middle(number)
        # Spread over the height of the row by the order of runs: dots on top of one another would hide how many.
        places = [(scale.at(value), y + (i * 7 % 11 - 5) * 1.8) for i, value in enumerate(values) if value <= top]
        path = "".join(f"M{x:.0f} {down:.0f}h0" for x, down in places)
        parts.append(
            f'<path d="{path}" stroke="#1f5fa8" stroke-opacity=".45" stroke-width="5" stroke-linecap="round"/>'
        )
        middle = sorted(values)[len(values) // 2]
        if middle <= top:
            parts.append(f'<path d="M{scale.at(middle):.0f} {y - 13:.0f}v26" stroke="#c0392b" stroke-width="2"/>')
    return _svg([label for label, _ in rows], scale, x_title + note, parts)


def bars(rows: Sequence[Bar], x_title: str) -> str:
    """Intervals over one axis that holds zero; those that are marked stand out."""
    if not rows:
        return "<p>no candidate has an interval</p>"
    scale = _Scale(min(0.0, *(row.low for row in rows)), max(0.0, *(row.high for row in rows)))
    end = len(rows) * ROW
    parts = [f'<path d="M{scale.at(0):.0f} 4V{end}" stroke="currentColor" stroke-dasharray="3 3"/>']
    for number, row in enumerate(rows):
        y, colour = _middle(number), "#1a7f4b" if row.marked else "#888"
        title = escape(f"{row.label}: {row.value:+.1f} ({row.low:+.1f} … {row.high:+.1f})")
        parts.append(
            f'<g><title>{title}</title><path d="M{scale.at(row.low):.0f} {y}H{scale.at(row.high):.0f}" '
            f'stroke="{colour}" stroke-width="6"/><circle cx="{scale.at(row.value):.0f}" cy="{y}" r="6" '
            f'fill="{colour}"/></g>'
        )
    return _svg([row.label for row in rows], scale, x_title, parts)


class _Scale:
    """From numbers to places across the picture."""

    def __init__(self, low: float, high: float) -> None:
        room = (high - low) * 0.04 or max(abs(high) * 0.05, 0.05)
        self.low, self.high = low - room, high + room

    def at(self, value: float) -> float:
        return LEFT + (value - self.low) / (self.high - self.low) * (WIDTH - LEFT - RIGHT)


def _ticks(low: float, high: float) -> list[float]:
    """About five round numbers between two."""
    size = 10 ** math.floor(math.log10((high - low) / 5))
    step = next(size * factor for factor in (1, 2, 5, 10) if (high - low) / (size * factor) <= 6)
    return [number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _middle(number: int) -> float:
    return number * ROW + ROW / 2


def _svg(labels: Sequence[str], scale: _Scale, x_title: str, parts: Sequence[str]) -> str:
    end = len(labels) * ROW
    shown = [name if len(name) <= _LABEL_LENGTH else f"…{name[1 - _LABEL_LENGTH :]}" for name in labels]
    names = [
        f'<text x="{LEFT - 8}" y="{_middle(number) + 4:.0f}" text-anchor="end">{escape(name)}</text>'
        for number, name in enumerate(shown)
    ]
    ticks = [
        f'<text x="{scale.at(x):.0f}" y="{end + 16}" text-anchor="middle">{x:.6g}</text>'
        for x in _ticks(scale.low, scale.high)
    ]
    return "".join(
        [
            f'<svg viewBox="0 0 {WIDTH} {end + BOTTOM}" role="img" font-size="12" fill="currentColor">',
            f'<path d="M{LEFT} {end}H{WIDTH - RIGHT}" stroke="currentColor"/>',
            *names,
            *ticks,
            f'<text x="{(LEFT + WIDTH) / 2:.0f}" y="{end + 34}" text-anchor="middle">{escape(x_title)}</text>',
            *parts,
            "</svg>",
        ]
    )

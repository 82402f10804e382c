"""A plot of two numbers per trial as inline SVG; the front is joined by a line."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from winml.modelkit.core.dataclass import dataclass

WIDTH, HEIGHT, MARGIN = 720, 360, 56


@dataclass(frozen=True)
class Point:
    """A trial in the plot."""

    x: float
    y: float
    name: str
    title: str
    front: bool
    marked: bool


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    room = (high - low) * 0.08 or max(abs(high) * 0.05, 0.05)
    return low - room, high + room


class _Scale:
    """From numbers to places in the picture."""

    def __init__(self, points: Sequence[Point]) -> None:
        self.x = _range([p.x for p in points])
        self.y = _range([p.y for p in points])

    def at(self, x: float, y: float) -> tuple[float, float]:
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return MARGIN + across * (WIDTH - 2 * MARGIN), HEIGHT - MARGIN - up * (HEIGHT - 2 * MARGIN)


def _ticks(low: float, high: float, count: int = 5) -> list[float]:
    return [low + (high - low) * i / (count - 1) for i in range(count)]


def _frame(scale: _Scale, x_title: str, y_title: str) -> list[str]:
    left, bottom = MARGIN, HEIGHT - MARGIN
    parts = [f'<path d="M{left} {MARGIN / 2}V{bottom}H{WIDTH - MARGIN / 2}" fill="none" stroke="currentColor"/>']
    for value in _ticks(*scale.x):
        x, _ = scale.at(value, scale.y[0])
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{value:.3g}</text>')
    for value in _ticks(*scale.y):
        _, y = scale.at(scale.x[0], value)
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.4g}</text>')
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 12}" text-anchor="middle">{escape(x_title)}</text>')
    parts.append(f'<text x="{left}" y="{MARGIN / 2 - 8}">{escape(y_title)}</text>')
    return parts


def _dot(point: Point, scale: _Scale) -> str:
    x, y = scale.at(point.x, point.y)
    colour = "#c0392b" if point.marked else "#1f5fa8" if point.front else "#8888"
    size = 7 if point.marked else 5
    title = escape(f"{point.name}: {point.title} ({point.x:+.1f} %, {point.y:.4f})")
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{colour}"><title>{title}</title></circle>'
        f'<text x="{x + 8:.1f}" y="{y - 6:.1f}">{escape(point.name)}</text>'
    )


def scatter(points: Sequence[Point], x_title: str, y_title: str) -> str:
    """The picture; a sentence when there is nothing to show."""
    if not points:
        return "<p>no trial has both numbers</p>"
    scale = _Scale(points)
    front = sorted((p.x, p.y) for p in points if p.front)
    line = " ".join("{:.1f},{:.1f}".format(*scale.at(*place)) for place in front)
    return "".join(
        [
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-size="12" fill="currentColor">',
            *_frame(scale, x_title, y_title),
            f'<polyline points="{line}" fill="none" stroke="#1f5fa8" stroke-dasharray="4 4"/>',
            *(_dot(point, scale) for point in points),
            "</svg>",
        ]
    )

"""What every config gains and what it costs: a point per config with its intervals, and the front of the best."""

from __future__ import annotations

from collections.abc import Sequence

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.render.figures.canvas import WIDE, Canvas, is_narrow, polyline
from winml.modelkit.render.figures.scale import Scale, padded_range

_HEIGHT = 380.0
_LEFT, _MARGIN, _TOP, _BOTTOM = 64.0, 20.0, 34.0, 326.0
_BEYOND = 3.0
"""An interval that reaches so many times as far as the points do is cut at the frame."""


@dataclass(frozen=True)
class Point:
    """A config in the picture; more is better on both axes."""

    x: float
    y: float
    name: str
    title: str
    x_interval: tuple[float, float] | None = None
    y_interval: tuple[float, float] | None = None
    marked: bool = False
    """The one that was chosen."""


def front(points: Sequence[Point]) -> list[Point]:
    """Points that no other one beats on both axes, from left to right."""
    best = [p for p in points if not any(o.x >= p.x and o.y >= p.y and (o.x, o.y) != (p.x, p.y) for o in points)]
    return sorted(best, key=lambda p: (p.x, -p.y))


def pareto_figure(points: Sequence[Point], x_title: str, y_title: str, width: float = WIDE) -> str:
    """The picture; an empty text without points."""
    if not points:
        return ""
    right = width - _MARGIN
    x = _scale([p.x for p in points], [p.x_interval for p in points], _LEFT, right)
    y = _scale([p.y for p in points], [p.y_interval for p in points], _BOTTOM, _TOP)
    canvas = Canvas(width, _HEIGHT)
    canvas.x_axis(x, _BOTTOM, x_title, top=_TOP, most=4 if is_narrow(width) else 6)
    canvas.y_axis(y, _LEFT, y_title, right=right)
    best = front(points)
    if len(best) > 1:
        canvas.add("polyline", points=polyline([(x.at(p.x), y.at(p.y)) for p in best]), class_="wk-line",
                   stroke_dasharray="5 4")  # fmt: skip
    for point in points:
        canvas.take(x.at(point.x) - 7, y.at(point.y) - 7, x.at(point.x) + 7, y.at(point.y) + 7)
    for point in sorted(points, key=lambda p: p.marked):
        _draw(canvas, x, y, point, "good" if point.marked else "main" if point in best else "plain")
    # The best are named first, while there is room.
    for point in sorted(points, key=lambda p: (not p.marked, p not in best)):
        canvas.label(x.at(point.x), y.at(point.y), point.name)
    return canvas.svg(f"{y_title} over {x_title} of {len(points)} configs; {len(best)} of them are beaten by no other.")


def _scale(values: Sequence[float], intervals: Sequence[tuple[float, float] | None], start: float, end: float) -> Scale:
    low, high = padded_range(values)
    room = _BEYOND * (high - low)
    bounds = [bound for interval in intervals if interval for bound in interval]
    return Scale(*padded_range([*values, *(min(max(b, low - room), high + room) for b in bounds)]), start, end)


def _draw(canvas: Canvas, x: Scale, y: Scale, point: Point, role: str) -> None:
    across, up = x.at(point.x), y.at(point.y)
    with canvas.mark(f"{point.name}: {point.title}", class_=f"wk-mark wk-{role}"):
        if point.x_interval is not None:
            low, high = (min(max(bound, x.low), x.high) for bound in point.x_interval)
            canvas.add("path", d=f"M{x.at(low):.1f} {up:.1f}H{x.at(high):.1f}", class_="wk-interval")
            canvas.take(x.at(low), up - 1, x.at(high), up + 1)
        if point.y_interval is not None:
            low, high = (min(max(bound, y.low), y.high) for bound in point.y_interval)
            canvas.add("path", d=f"M{across:.1f} {y.at(low):.1f}V{y.at(high):.1f}", class_="wk-interval")
            canvas.take(across - 1, y.at(high), across + 1, y.at(low))
        canvas.add("circle", cx=across, cy=up, r=7 if point.marked else 5)

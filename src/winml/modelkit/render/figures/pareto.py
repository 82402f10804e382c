"""What every config gains and what it costs: a point per config with its intervals, and the front of the best."""

from __future__ import annotations

from collections.abc import Sequence

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.render.figures.canvas import SMALL, WIDE, Canvas, is_narrow, polyline
from winml.modelkit.render.figures.scale import Scale, axis_room, log_range, padded_range

_HEIGHT = 380.0
_LEFT, _MARGIN, _TOP, _BOTTOM = 64.0, 20.0, 34.0, 326.0
_BEYOND = 3.0
"""An interval that reaches so many times as far as the points do is cut at the frame."""
_MOST_NAMES = 60
"""Configs whose names are tried: of more, no other finds a place."""
_LEAST = 1e-3
"""The least difference between the ends of an axis, as a part of its numbers."""
_BEYOND_LOG = 5.0
"""The same for a factor on a logarithmic axis."""


@dataclass(frozen=True)
class Point:
    """A config in the picture; more is better across, and upwards unless the picture says otherwise."""

    x: float
    y: float
    name: str
    title: str
    x_interval: tuple[float, float] | None = None
    y_interval: tuple[float, float] | None = None
    marked: bool = False
    """The one that was chosen."""
    base: bool = False
    """The one that all others are held against."""


def front(points: Sequence[Point], *, less_is_better: bool = False) -> list[Point]:
    """Points that no other one beats on both axes, from left to right; `less_is_better` upwards."""
    up = -1 if less_is_better else 1
    best: list[Point] = []
    for point in sorted(points, key=lambda p: (-p.x, -up * p.y)):
        # Everything before it is at least as far right.
        if not best or up * point.y > up * best[-1].y or (point.x, point.y) == (best[-1].x, best[-1].y):
            best.append(point)
    return sorted(best, key=lambda p: (p.x, -up * p.y))


def pareto_figure(
    points: Sequence[Point],
    x_title: str,
    y_title: str,
    width: float = WIDE,
    *,
    log: bool = False,
    less_is_better: bool = False,
) -> str:
    """The picture; an empty text without points. `log` is about the axis across, `less_is_better` about the other."""
    if not points:
        return ""
    right = width - _MARGIN
    y = _scale([p.y for p in points], [p.y_interval for p in points], _BOTTOM, _TOP)
    left = max(_LEFT, axis_room(y, SMALL))
    x = _scale([p.x for p in points], [p.x_interval for p in points], left, right, log=log)
    canvas = Canvas(width, _HEIGHT)
    canvas.x_axis(x, _BOTTOM, x_title, top=_TOP, most=4 if is_narrow(width) else 6)
    canvas.y_axis(y, left, y_title, right=right)
    best = front(points, less_is_better=less_is_better)
    if len(best) > 1:
        line = [(x.at(p.x), y.at(p.y)) for p in best]
        canvas.add("polyline", points=polyline(line), class_="wk-line", stroke_dasharray="5 4")
        canvas.take_line(line)
    for point in points:
        canvas.take(x.at(point.x) - 7, y.at(point.y) - 7, x.at(point.x) + 7, y.at(point.y) + 7)
    for point in sorted(points, key=lambda p: p.marked):
        _draw(canvas, x, y, point, "good" if point.marked else "main" if point in best else "plain")
    # The best are named first, while there is room.
    for point in sorted(points, key=lambda p: (not p.marked, p not in best))[:_MOST_NAMES]:
        at = (x.at(point.x), y.at(point.y))
        if not canvas.label(*at, point.name, lowest=_BOTTOM) and (point.marked or point.base):
            canvas.label(*at, point.name, lowest=_BOTTOM, over_marks=True)
    return canvas.svg(f"{y_title} over {x_title} of {len(points)} configs; {len(best)} of them are beaten by no other.")


def _scale(
    values: Sequence[float],
    intervals: Sequence[tuple[float, float] | None],
    start: float,
    end: float,
    *,
    log: bool = False,
) -> Scale:
    bounds = [bound for interval in intervals if interval for bound in interval]
    if log:
        near = (min(values) / _BEYOND_LOG, max(values) * _BEYOND_LOG)
        return Scale(*log_range([*values, *(min(max(b, near[0]), near[1]) for b in bounds)]), start, end, log=True)
    low, high = padded_range(values)
    # Differences in the last digits of a computation are no differences.
    least = _LEAST * max(abs(low), abs(high))
    if high - low < least:
        # Downwards: no accuracy is above 1.
        return Scale(high - least, high, start, end)
    room = _BEYOND * (high - low)
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

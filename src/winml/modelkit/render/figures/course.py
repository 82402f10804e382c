"""The course of a search: what ran when, what each trial gained and the best proven gain so far."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.render.figures.canvas import SMALL, WIDE, Canvas, is_narrow, polyline
from winml.modelkit.render.figures.legend import Key, draw_legend, legend_height
from winml.modelkit.render.figures.scale import Scale, axis_room, log_range, padded_range
from winml.modelkit.render.figures.style import STATE_GLYPHS, STATE_ROLES
from winml.modelkit.render.figures.text_size import text_width

_LEFT, _MARGIN, _TOP, _BOTTOM = 64.0, 20.0, 34.0, 244.0
_STRIP, _STRIP_HEIGHT = 254.0, 24.0
MOST_STEPS = 120
"""Steps that are drawn one by one; of more, neighbours are drawn as one."""
_MOST_NAMES = 60
"""Steps whose names are tried: of more, no other finds a place."""
_MEANINGS = {
    "good": "proven gain",
    "unsure": "no proven gain",
    "bad": "slower, not accurate enough or failed",
    "quiet": "not timed",
}
_UNITS = ((300.0, 1.0, "seconds"), (9000.0, 60.0, "minutes"), (math.inf, 3600.0, "hours"))
"""Longest time in seconds -> the unit of its axis."""


@dataclass(frozen=True)
class Step:
    """What a search did for some time."""

    label: str
    description: str
    seconds: float
    style: str
    """Style of its state in `render/marks.py`."""
    state: str
    value: float | None = None
    """What it gained; None where nothing was measured."""
    proven: bool = False
    """Whether its gain is proven, so that it leads when it is the largest."""


def bundle(steps: Sequence[Step], most: int = MOST_STEPS) -> list[Step]:
    """The steps; neighbours as one where there are more than a picture shows."""
    size = -(-len(steps) // most) or 1
    return [_merge(steps[i : i + size]) for i in range(0, len(steps), size)] if size > 1 else list(steps)


def _merge(steps: Sequence[Step]) -> Step:
    if len(steps) == 1:
        return steps[0]
    counts = ", ".join(f"{count} {state}" for state, count in Counter(step.state for step in steps).items())
    # One that is proven stands for all, whatever others seem to gain.
    best = max(steps, key=lambda step: (step.proven, -math.inf if step.value is None else step.value))
    label = f"{steps[0].label} to {steps[-1].label}"
    return Step(
        label=label,
        description=f"{label}: {counts}; best {best.description}",
        seconds=sum(step.seconds for step in steps),
        style=best.style,
        state=best.state,
        value=best.value,
        proven=best.proven,
    )


def course_figure(
    steps: Sequence[Step], base: float, axis: str, title: str, width: float = WIDE, *, log: bool = False
) -> str:
    """The picture; an empty text without steps. `base` is the gain of the baseline, at which the line starts."""
    if not steps:
        return ""
    shown = bundle(steps)
    total = sum(step.seconds for step in shown)
    unit = next(scale for limit, scale, _ in _UNITS if total <= limit)
    name = next(word for limit, _, word in _UNITS if total <= limit)
    right = width - _MARGIN
    values = [base, *(step.value for step in shown if step.value is not None)]
    y = Scale(*(log_range if log else padded_range)(values), _BOTTOM, _TOP, log=log)
    left = max(_LEFT, axis_room(y, SMALL, 5))
    x = Scale(0.0, max(total / unit, 1e-3), left, right)
    present = {step.style for step in shown}
    keys = [Key(STATE_GLYPHS[s], text, STATE_ROLES[s]) for s, text in _MEANINGS.items() if s in present]
    axis_at = _STRIP + _STRIP_HEIGHT + 6
    canvas = Canvas(width, axis_at + 52 + legend_height(keys, width))
    canvas.x_axis(x, axis_at, name, most=4 if is_narrow(width) else 8)
    canvas.y_axis(y, left, axis + (", logarithmic" if log else ""), right=right, most=5)
    line = _best_so_far(shown, base, x, y, unit)
    canvas.add("polyline", points=polyline(line), class_="wk-line")
    canvas.take_line(line)
    places = _places(shown, x, unit)
    for step, (_, end) in zip(shown, places, strict=True):
        if step.value is not None:
            canvas.take(end - 6, y.at(step.value) - 6, end + 6, y.at(step.value) + 6)
    for step, (start, end) in zip(shown, places, strict=True):
        _draw(canvas, step, start, end, None if step.value is None else y.at(step.value))
    # The proven ones are named first, the best before others, while there is room.
    ranked = sorted(zip(shown, places, strict=True), key=lambda one: (not one[0].proven, -(one[0].value or 0.0)))
    for step, (_, end) in ranked[:_MOST_NAMES]:
        if step.value is not None:
            canvas.label(end, y.at(step.value), step.label, lowest=_STRIP - 2)
    draw_legend(canvas, keys, axis_at + 52)
    return canvas.svg(title)


def _places(steps: Sequence[Step], x: Scale, unit: float) -> list[tuple[float, float]]:
    """Where each step starts and ends."""
    places = []
    start = 0.0
    for step in steps:
        end = start + step.seconds / unit
        places.append((x.at(start), min(x.at(end), x.end)))
        start = end
    return places


def _best_so_far(steps: Sequence[Step], base: float, x: Scale, y: Scale, unit: float) -> list[tuple[float, float]]:
    """The line of the best proven gain, with a corner at each step that leads."""
    points, best = [(x.start, y.at(base))], base
    for step, (_, end) in zip(steps, _places(steps, x, unit), strict=True):
        if step.proven and step.value is not None and step.value > best:
            points += [(end, y.at(best)), (end, y.at(step.value))]
            best = step.value
    return [*points, (x.end, y.at(best))]


def _draw(canvas: Canvas, step: Step, start: float, end: float, up: float | None) -> None:
    glyph = STATE_GLYPHS[step.style]
    with canvas.mark(step.description, class_=f"wk-mark wk-{STATE_ROLES[step.style]}"):
        length = max(end - start - 1.0, 1.0)
        canvas.add("rect", x=min(start, canvas.width - _MARGIN - 1), y=_STRIP, width=length, height=_STRIP_HEIGHT,
                   class_="wk-tint")  # fmt: skip
        # Glyph and name where there is room, else the glyph, else nothing.
        text = next((t for t in (f"{glyph} {step.label}", glyph) if text_width(t, SMALL) + 4 < length), None)
        if text is not None:
            canvas.text((start + end) / 2, _STRIP + _STRIP_HEIGHT / 2 + SMALL * 0.35, text, anchor="middle", size=SMALL)
        if up is None:
            return
        if step.style == "bad":
            canvas.add("path", d=f"M{end - 4:.1f} {up - 4:.1f}l8 8m0 -8l-8 8", class_="wk-path")
        else:
            hollow = {} if step.style == "good" else {"class_": "wk-tint"}
            canvas.add("circle", cx=end, cy=up, r=6 if step.style == "good" else 5, **hollow)

"""A value over positions: a line per row, with the band between its lowest and highest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.measurement import NS_PER_MS
from winml.modelkit.core.statistics import median
from winml.modelkit.render.figures.canvas import SMALL, WIDE, Canvas, is_narrow, polyline
from winml.modelkit.render.figures.legend import Key, draw_legend, legend_height
from winml.modelkit.render.figures.scale import Scale, axis_room, padded_range

if TYPE_CHECKING:
    from winml.modelkit.measuring.generation import GenerationPerf, PromptPerf

_TOP, _BOTTOM, _MARGIN, _LEFT = 34.0, 244.0, 20.0, 48.0
_ROLES = ("main", "good", "unsure", "bad", "quiet")
_MOST_POINTS = 200
"""Points of a line that are drawn; of more, every n-th of them."""
_BEYOND = 3.0
"""A band that reaches so many times as high as the highest line is cut at the frame."""


@dataclass(frozen=True)
class Course:
    """A line of the picture."""

    label: str
    description: str
    """What the line says, with exact values."""
    points: tuple[tuple[float, float, float, float], ...]
    """Position, value, lowest and highest value there."""


def courses_of(result: GenerationPerf) -> list[Course]:
    """The time of a step over the tokens before it, a line for every length of prompts.

    A point is the median of session medians in ms, between the lowest and the highest of them.
    """
    found = []
    for index, prompt in enumerate(result.prompts):
        points = []
        for step in range(result.new_tokens - 1):
            texts = [session.prompts[index].texts for session in result.sessions]
            times = [median([text.step_ns[step] for text in one]) / NS_PER_MS for one in texts]
            points.append((float(prompt.prompt_tokens + step + 1), median(times), min(times), max(times)))
        label = f"prompt of {prompt.prompt_tokens} tokens"
        known = prompt.last_to_first_quarter is not None
        said = f"the last quarter of steps takes {slowdown(prompt)} as long as the first" if known else "few steps"
        found.append(Course(label, f"{label}: {said}", tuple(points)))
    return found


def slowdown(prompt: PromptPerf) -> str:
    """How much longer the last steps take than the first: `1.08 times (1.05 … 1.11)`."""
    ratio = prompt.last_to_first_quarter
    if ratio is None or ratio.median is None:
        return "unknown"
    spread = "" if ratio.interval is None else f" ({ratio.interval.low:.2f} … {ratio.interval.high:.2f})"
    return f"{ratio.median:.2f} times{spread}"


def position_figure(courses: Sequence[Course], axes: tuple[str, str], title: str, width: float = WIDE) -> str:
    """The picture; an empty text without points. `axes` names positions and values."""
    shown = [course for course in courses if course.points]
    if not shown:
        return ""
    highest = max(point[1] for course in shown for point in course.points)
    tops = [min(point[3], _BEYOND * highest) for course in shown for point in course.points]
    places = [point[0] for course in shown for point in course.points]
    y = Scale(*padded_range([0.0, *tops]), _BOTTOM, _TOP)
    x = Scale(*padded_range(places), max(_LEFT, axis_room(y, SMALL, 5)), width - _MARGIN)
    keys = [Key("━", course.label, _ROLES[number % len(_ROLES)]) for number, course in enumerate(shown)]
    canvas = Canvas(width, _BOTTOM + 52 + legend_height(keys, width))
    canvas.x_axis(x, _BOTTOM, axes[0], most=4 if is_narrow(width) else 8)
    canvas.y_axis(y, x.start, axes[1], right=x.end, most=5)
    for number, course in enumerate(shown):
        every = -(-len(course.points) // _MOST_POINTS)
        points = course.points[::every]
        with canvas.mark(course.description, class_=f"wk-mark wk-{_ROLES[number % len(_ROLES)]}"):
            upper = [(x.at(at), y.at(min(high, y.high))) for at, _, _, high in points]
            lower = [(x.at(at), y.at(max(low, y.low))) for at, _, low, _ in points]
            canvas.add("polygon", points=polyline([*upper, *reversed(lower)]), class_="wk-tint", stroke="none")
            canvas.add("polyline", points=polyline([(x.at(at), y.at(value)) for at, value, _, _ in points]),
                       class_="wk-path")  # fmt: skip
    draw_legend(canvas, keys, _BOTTOM + 52)
    return canvas.svg(title)

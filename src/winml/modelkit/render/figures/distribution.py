"""How long single runs took: a histogram with p50, p90 and p99, on a logarithmic axis where the tail is long."""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping, Sequence

from winml.modelkit.render.figures.canvas import SMALL, WIDE, Canvas, is_narrow
from winml.modelkit.render.figures.scale import Scale, log_range, padded_range

_HEIGHT = 250.0
_TOP, _BOTTOM = 58.0, 200.0
_PIXELS_PER_BAR = 14.0
_LONG_TAIL = 4.0
"""A run that took so many times the median has a linear axis squeeze all others into its first bars."""


def latency_figure(samples_ms: Sequence[float], marks_ms: Mapping[str, float], width: float = WIDE) -> str:
    """The picture; an empty text without samples. `marks_ms` are at most three percentiles of the result, by name."""
    ordered = sorted(value for value in samples_ms if math.isfinite(value) and value > 0)
    if not ordered:
        return ""
    log = ordered[-1] > _LONG_TAIL * ordered[len(ordered) // 2]
    low, high = (log_range if log else padded_range)((*ordered, *marks_ms.values()))
    scale = Scale(max(low, 0.0) if not log else low, high, 24, width - 110, log=log)
    bars = round((scale.end - scale.start) / _PIXELS_PER_BAR)
    edges = _edges(scale, bars)
    counts = [bisect.bisect_left(ordered, edges[i + 1]) - bisect.bisect_left(ordered, edges[i]) for i in range(bars)]
    canvas = Canvas(width, _HEIGHT)
    upright = Scale(0, max(counts) or 1, _BOTTOM, _TOP)
    canvas.x_axis(scale, _BOTTOM, "ms per run" + (", logarithmic" if log else ""), most=4 if is_narrow(width) else 8)
    for number, count in enumerate(counts):
        if not count:
            continue
        first, last = scale.at(edges[number]), scale.at(edges[number + 1])
        said = f"{count} of {len(ordered)} runs took {edges[number]:.3g} to {edges[number + 1]:.3g} ms"
        with canvas.mark(said):
            canvas.add(
                "rect", x=first + 0.5, y=upright.at(count), width=max(last - first - 1, 1),
                height=_BOTTOM - upright.at(count), class_="wk-bar",
            )  # fmt: skip
    for number, (name, value) in enumerate(sorted(marks_ms.items(), key=lambda one: one[1])):
        x, y = scale.at(value), 14 + 15 * number
        canvas.add("path", d=f"M{x:.1f} {y - 10}V{_BOTTOM:.1f}", class_="wk-zero")
        # To the right and each lower than the one before: no line of a later one crosses it.
        canvas.text(x + 5, y, f"{name} {value:.3g} ms", size=SMALL)
    return canvas.svg(sentence(ordered, marks_ms))


def _edges(scale: Scale, bars: int) -> list[float]:
    """Bounds of bars of one width on the axis."""
    if not scale.log:
        return [scale.low + (scale.high - scale.low) * i / bars for i in range(bars + 1)]
    low, high = math.log10(scale.low), math.log10(scale.high)
    return [10 ** (low + (high - low) * i / bars) for i in range(bars + 1)]


def sentence(samples_ms: Sequence[float], marks_ms: Mapping[str, float]) -> str:
    """What the picture shows, in words."""
    longest = max(samples_ms)
    middle = marks_ms.get("p50") or sorted(samples_ms)[len(samples_ms) // 2]
    return (
        f"Half of {len(samples_ms)} runs took at most {middle:.3g} ms, the longest {longest / middle:.1f} times that."
    )

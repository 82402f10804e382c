"""Whether a metric is high enough and a drop small enough: yes, no, or inconclusive."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.intervals import paired_difference_interval, wilson_interval
from winml.modelkit.core.latency import Interval
from winml.modelkit.evaluation.metrics import SCALED, Estimate

Answer = Literal["within", "exceeded", "inconclusive"]
By = Literal["interval", "value"]
Limits = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Check:
    """A limit, and whether it is held."""

    check: Literal["min-metric", "max-metric", "max-drop", "min-agreement"]
    metric: str
    limit: float
    by: By
    answer: Answer
    needed: int | None
    """With inconclusive: about how many samples would decide, if they continue like the ones seen."""


def _limits(found: Estimate, by: By) -> Limits | None:
    if by == "value":
        return None if found.value is None else (found.value, found.value)
    return None if found.interval is None else (found.interval.low, found.interval.high)


def _hold_below(limits: Limits | None, limit: float) -> Answer:
    """Exceeded when a number lies above the limit with its whole interval; inconclusive when the limit lies inside."""
    if limits is None or limits[0] <= limit < limits[1]:
        return "inconclusive"
    return "exceeded" if limits[0] > limit else "within"


def judge_drop(found: Estimate, limit: float, by: By) -> Answer:
    """Exceeded when the data show a drop, or a metric, above the limit, within when they rule one out."""
    return _hold_below(_limits(found, by), limit)


def judge_metric(found: Estimate, limit: float, by: By) -> Answer:
    """Exceeded when the data show a metric below the limit, within when they rule one out."""
    limits = _limits(found, by)
    return _hold_below(None if limits is None else (-limits[1], -limits[0]), -limit)


MOST_SAMPLES = 10_000_000
"""More samples than this are as good as never."""


def _interval_at(found: Estimate, value: float, interval: Interval) -> Callable[[int], Limits]:
    """The interval that a number of samples would have if they continued like the ones seen."""
    count, level = found.n, interval.level
    if found.worse is not None and found.better is not None:
        worse, better = found.worse / count, found.better / count
        return lambda n: paired_difference_interval(worse * n, better * n, n, level=level)
    if found.method == SCALED:
        # Bounds of a metric cut off one side at most.
        width = max(interval.high - value, value - interval.low)
        scale = width / wilson_interval(0.0, count, level=level)[1]
        return lambda n: (value - (half := scale * wilson_interval(0.0, n, level=level)[1]), value + half)
    if math.isclose(interval.high - value, wilson_interval(0.0, count, level=level)[1]):
        # No two samples differ: what was never seen becomes rarer in proportion to their number.
        return lambda n: (value - (half := wilson_interval(0.0, n, level=level)[1]), value + half)
    if found.method == "wilson":
        return lambda n: wilson_interval(value, n, level=level)
    below, above = value - interval.low, interval.high - value
    return lambda n: (value - below * math.sqrt(count / n), value + above * math.sqrt(count / n))


def samples_needed(found: Estimate | None, limit: float) -> int | None:
    """About how many samples would decide, if they continue like the ones seen; None when that is unknown."""
    if found is None or found.value is None or found.interval is None or found.value == limit:
        return None
    interval_at = _interval_at(found, found.value, found.interval)

    def decides(count: int) -> bool:
        low, high = interval_at(count)
        return low > limit or high <= limit

    high = max(2, found.n)
    while not decides(high):
        high *= 2
        if high > MOST_SAMPLES:
            return None
    low = found.n
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if decides(middle) else (middle, high)
    return high

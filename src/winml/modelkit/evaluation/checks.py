"""Is a metric high enough, is a drop small enough: yes, no, or the data cannot tell."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

from winml.modelkit.core.intervals import paired_difference_interval, wilson_interval

Answer = Literal["within", "exceeded", "inconclusive"]
By = Literal["interval", "value"]


def _limits(found: dict[str, Any], by: By) -> tuple[float, float] | None:
    if by == "value":
        return None if found["value"] is None else (found["value"], found["value"])
    return None if found["interval"] is None else (found["interval"]["low"], found["interval"]["high"])


def above(found: dict[str, Any], limit: float, by: By) -> bool | None:
    """Whether a number lies above the limit with its whole interval; None when the limit lies inside."""
    limits = _limits(found, by)
    if limits is None or limits[0] <= limit < limits[1]:
        return None
    return limits[0] > limit


def max_drop(found: dict[str, Any], limit: float, by: By) -> Answer:
    """Exceeded when the data show a drop above the limit, within when they rule one out."""
    beyond = above(found, limit, by)
    return "inconclusive" if beyond is None else "exceeded" if beyond else "within"


def min_metric(found: dict[str, Any], limit: float, by: By) -> Answer:
    """Exceeded when the data show a metric below the limit, within when they rule one out."""
    mirrored = {
        "value": None if found["value"] is None else -found["value"],
        "interval": found["interval"] and {"low": -found["interval"]["high"], "high": -found["interval"]["low"]},
    }
    return max_drop(mirrored, -limit, by)


MOST_SAMPLES = 10_000_000
"""More samples than this are as good as never."""

Limits = tuple[float, float]


def _around(value: float, half: float) -> Limits:
    return value - half, value + half


def _interval_at(found: dict[str, Any]) -> Callable[[int], Limits]:
    """The interval that so many samples would have if they went on as the ones seen."""
    value, count, interval = found["value"], found["n"], found["interval"]
    if "worse" in found:
        worse, better = found["worse"] / count, found["better"] / count
        return lambda n: paired_difference_interval(worse * n, better * n, n, level=interval["level"])
    if math.isclose(interval["high"] - value, wilson_interval(0.0, count, level=interval["level"])[1]):
        # No two samples differ: what was never met becomes rarer in proportion to their number.
        return lambda n: _around(value, wilson_interval(0.0, n, level=interval["level"])[1])
    if found["method"] == "wilson":
        return lambda n: wilson_interval(value, n, level=interval["level"])
    below, above_ = value - interval["low"], interval["high"] - value
    return lambda n: (value - below * math.sqrt(count / n), value + above_ * math.sqrt(count / n))


def samples_needed(found: dict[str, Any] | None, limit: float) -> int | None:
    """About how many samples would decide, if they go on as the ones seen; None when that cannot be said."""
    if found is None or found["value"] is None or found["interval"] is None or found["value"] == limit:
        return None
    interval_at = _interval_at(found)

    def decides(count: int) -> bool:
        low, high = interval_at(count)
        return low > limit or high <= limit

    high: int = max(2, found["n"])
    while not decides(high):
        high *= 2
        if high > MOST_SAMPLES:
            return None
    low: int = found["n"]
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if decides(middle) else (middle, high)
    return high

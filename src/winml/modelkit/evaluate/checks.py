"""Is a metric high enough, is a drop small enough: yes, no, or the data cannot tell."""

from __future__ import annotations

from typing import Any, Literal

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

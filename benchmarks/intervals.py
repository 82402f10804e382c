"""Intervals that benchmarks and the page of their results share."""

from __future__ import annotations

import math

from winml.modelkit.core.statistics import incomplete_beta


def clopper_pearson(hits: int, count: int) -> tuple[float, float]:
    """95 % limits of a share."""

    def solve(target: float, a: float, b: float) -> float:
        low, high = 0.0, 1.0
        for _ in range(100):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if incomplete_beta(a, b, middle) < target else (low, middle)
        return low

    low = 0.0 if hits == 0 else solve(0.025, hits, count - hits + 1)
    high = 1.0 if hits == count else solve(0.975, hits + 1, count - hits)
    return low, high


def interval_of_median(values: list[float]) -> tuple[float, float, float]:
    """Median with the 95 % interval from order statistics (binomial)."""
    ordered, n = sorted(values), len(values)
    rank = max(0, math.floor(n / 2 - 0.98 * math.sqrt(n)) - 1)
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    return middle, ordered[rank], ordered[n - 1 - rank]

"""How sure an accuracy, a correlation or their difference is, in plain Python: results are judged without numpy."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from functools import lru_cache

from winml.modelkit.core.statistics import mean, percentile


@lru_cache(maxsize=64)
def normal_quantile(share: float) -> float:
    """The value below which `share` of the standard normal distribution lies."""
    if not 0.0 < share < 1.0:
        raise ValueError(f"normal quantile is defined for 0 < share < 1 but got {share}")
    low, high = -40.0, 40.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if 0.5 * math.erfc(-middle / math.sqrt(2.0)) < share else (low, middle)
    return 0.5 * (low + high)


def wilson_interval(share: float, count: int, *, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a proportion that was seen as `share` of `count`.

    For the mean of numbers from 0 to 1 it is on the safe side: none of them varies more than a proportion does.
    """
    z2 = normal_quantile(0.5 + level / 2.0) ** 2
    centre = (share + z2 / (2 * count)) / (1 + z2 / count)
    half = math.sqrt(z2 * (share * (1 - share) + z2 / (4 * count)) / count) / (1 + z2 / count)
    return max(0.0, centre - half), min(1.0, centre + half)


def _square_and_add(
    first: tuple[float, float, float], second: tuple[float, float, float], correlation: float
) -> tuple[float, float]:
    """Interval of a difference from (value, low, high) of its two sides, which go up and down together."""

    def half(a: float, b: float) -> float:
        return math.sqrt(max(0.0, a * a + b * b - 2 * correlation * a * b))

    (p, p_low, p_high), (q, q_low, q_high) = first, second
    return p - q - half(p - p_low, q_high - q), p - q + half(p_high - p, q - q_low)


def paired_difference_interval(
    first_only: float, second_only: float, count: float, *, level: float = 0.95
) -> tuple[float, float]:
    """Tango's (1998) score interval for how much larger a share is in the first of two answers about the same samples.

    `first_only` samples are true in the first answer alone, `second_only` in the second alone; samples that both
    answer alike add to `count` and to nothing else. With no difference at all the ends are ±z²/(count + z²).
    """
    z = normal_quantile(0.5 + level / 2.0)

    def score(difference: float) -> float:
        # The likeliest share of `second_only` if the true difference were `difference`.
        b = (2 * count - first_only + second_only) * difference - first_only - second_only
        c = -second_only * difference * (1 - difference)
        share = (math.sqrt(max(0.0, b * b - 8 * count * c)) - b) / (4 * count)
        variance = count * (2 * share + difference * (1 - difference))
        distance = first_only - second_only - count * difference
        return distance / math.sqrt(variance) if variance > 0 else math.copysign(math.inf, distance)

    def end(low: float, high: float, wanted: float) -> float:
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if score(middle) > wanted else (low, middle)
        return 0.5 * (low + high)

    value = (first_only - second_only) / count
    return end(-1.0, value, z), end(value, 1.0, -z)


def pearson(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Pearson's correlation; None where one side does not vary."""
    a, b = mean(first), mean(second)
    products = math.fsum((x - a) * (y - b) for x, y in zip(first, second, strict=True))
    norm = math.sqrt(math.fsum((x - a) ** 2 for x in first)) * math.sqrt(math.fsum((y - b) ** 2 for y in second))
    return max(-1.0, min(1.0, products / norm)) if norm > 0.0 else None


def ranks(values: Sequence[float]) -> list[float]:
    """The place of each value in ascending order, from 1; equal values share the mean of their places."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for place in order[start:end]:
            found[place] = (start + 1 + end) / 2
        start = end
    return found


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Spearman's rank correlation; None where one side does not vary."""
    return pearson(ranks(first), ranks(second))


def correlation_interval(value: float, count: int, *, by_rank: bool, level: float = 0.95) -> tuple[float, float]:
    """Fisher's z interval of a correlation; with the variance of Bonett and Wright (2000) for one of ranks."""
    if count < 4:
        raise ValueError("an interval of a correlation needs at least four pairs")
    if abs(value) == 1.0:
        return value, value
    spread = math.sqrt((1.0 + value * value / 2.0 if by_rank else 1.0) / (count - 3))
    half = normal_quantile(0.5 + level / 2.0) * spread
    return math.tanh(math.atanh(value) - half), math.tanh(math.atanh(value) + half)


def correlation_difference_interval(
    first: float, second: float, between: float, count: int, *, by_rank: bool, level: float = 0.95
) -> tuple[float, float]:
    """Zou's (2007) interval of `first` - `second`, both correlations with one thing; `between` is theirs."""
    limits = [(r, *correlation_interval(r, count, by_rank=by_rank, level=level)) for r in (first, second)]
    rest = (1 - first * first) * (1 - second * second)
    if rest <= 0.0:
        return _square_and_add(limits[0], limits[1], 0.0)
    shared = (between - first * second / 2) * (1 - first**2 - second**2 - between**2) + between**3
    return _square_and_add(limits[0], limits[1], max(-1.0, min(1.0, shared / rest)))


def bootstrap_interval(
    values: Sequence[float], *, seed: int = 0, resamples: int = 1000, level: float = 0.95
) -> tuple[float, float]:
    """Percentile bootstrap of a mean; the same numbers for the same seed."""
    # `random()` is the one method that gives the same numbers in every version of Python.
    draw, count = random.Random(seed).random, len(values)  # noqa: S311 - resampling, not a secret
    means = sorted(math.fsum(values[int(draw() * count)] for _ in range(count)) / count for _ in range(resamples))
    return percentile(means, (1 - level) / 2), percentile(means, (1 + level) / 2)

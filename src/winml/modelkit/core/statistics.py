"""The statistics of measurements, in plain Python: a command that measures imports neither numpy nor scipy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value below which `share` (0 to 1) of an ascending sequence lies, linear between neighbours."""
    if not ordered:
        raise ValueError("percentile of nothing")
    position = share * (len(ordered) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def median(values: Sequence[float]) -> float:
    return percentile(sorted(values), 0.5)


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def std(values: Sequence[float]) -> float | None:
    """Sample standard deviation, None for fewer than two values."""
    if len(values) < 2:
        return None
    centre = mean(values)
    return math.sqrt(math.fsum((v - centre) ** 2 for v in values) / (len(values) - 1))


def sqnr_db(relative: float) -> float:
    """Signal to quantization noise ratio behind a relative error above zero."""
    return -20.0 * math.log10(relative)


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Continued fraction of the incomplete beta function (modified Lentz)."""
    tiny = 1e-300
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    result = d
    for m in range(1, 500):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 + numerator * d
            d = 1.0 / (d if abs(d) > tiny else tiny)
            c = 1.0 + numerator / c
            c = c if abs(c) > tiny else tiny
            result *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return result


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularised incomplete beta function I_x(a, b)."""
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    if x < (a + 1.0) / (a + b + 2.0):
        return math.exp(log_front) * _beta_fraction(a, b, x) / a
    return 1.0 - math.exp(log_front) * _beta_fraction(b, a, 1.0 - x) / b


def t_cdf(t: float, df: float) -> float:
    """Student's t distribution function."""
    tail = 0.5 * incomplete_beta(df / 2.0, 0.5, df / (df + t * t))
    return 1.0 - tail if t > 0 else tail


@lru_cache(maxsize=512)
def t_quantile(share: float, df: float) -> float:
    """The t value below which `share` of Student's distribution with `df` degrees of freedom lies."""
    if not 0.0 < share < 1.0 or df <= 0:
        raise ValueError(f"t quantile is defined for 0 < share < 1 and df > 0 but got {share}, {df}")
    if share < 0.5:
        return -t_quantile(1.0 - share, df)
    low, high = 0.0, 1.0
    while t_cdf(high, df) < share:
        high *= 2.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if t_cdf(middle, df) < share:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@lru_cache(maxsize=512)
def f_quantile(share: float, df1: float, df2: float) -> float:
    """The value below which `share` of the F distribution lies."""
    if not 0.0 < share < 1.0 or df1 <= 0 or df2 <= 0:
        raise ValueError(f"F quantile is defined for 0 < share < 1 and df > 0 but got {share}, {df1}, {df2}")

    def cdf(x: float) -> float:
        return incomplete_beta(df1 / 2.0, df2 / 2.0, df1 * x / (df1 * x + df2))

    low, high = 0.0, 1.0
    while cdf(high) < share:
        high *= 2.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if cdf(middle) < share else (low, middle)
    return 0.5 * (low + high)


def log_t_interval(values: Sequence[float], *, level: float = 0.95) -> tuple[float, float]:
    """Student t interval of the geometric mean of positive values; needs at least two of them."""
    logs = [math.log(v) for v in values]
    spread = std(logs)
    if spread is None:
        raise ValueError("an interval needs at least two values")
    half = t_quantile(0.5 + level / 2.0, len(logs) - 1) * spread / math.sqrt(len(logs))
    centre = mean(logs)
    return math.exp(centre - half), math.exp(centre + half)

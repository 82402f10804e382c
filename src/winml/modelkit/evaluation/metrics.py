"""From scores of single samples to metrics with intervals, without numpy: stored scores can be judged again."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from winml.modelkit.core.intervals import (
    bootstrap_interval,
    correlation_difference_interval,
    correlation_interval,
    paired_difference_interval,
    pearson,
    spearman,
    wilson_interval,
)
from winml.modelkit.core.statistics import mean
from winml.modelkit.evaluation import corpus

LEVEL = 0.95
DROP_LEVEL = 0.90
"""Of the interval of a drop: each end holds with 95 %, and a limit for a drop asks about one end."""
GOLD = "gold"
"""The series a correlation is taken with."""
MIN_PAIRS = 4
"""Pairs that an interval of a correlation needs."""

MIN_SAMPLES = 8
"""Samples that an interval of a metric of all samples together needs."""

Kind = Literal["share", "mean", "pearson", "spearman", "ratio", "mean_iou", "map", "map_50"]
Series = Mapping[str, Sequence[Any]]
"""What each sample gives, by name: numbers, which are 0 and 1 for a share, or records of classes."""
Limits = tuple[float, float]

_CORRELATIONS: dict[str, Callable[[Sequence[float], Sequence[float]], float | None]] = {
    "pearson": pearson,
    "spearman": spearman,
}


_TOGETHER = ("ratio", "mean_iou", "map", "map_50")


@dataclass(frozen=True)
class Metric:
    """One number about a model: which series it is made of, and how."""

    name: str
    kind: Kind
    series: str
    over: tuple[str, ...] = ()
    """With a ratio: the series that `series` is a part of; of two, the mean of their sums."""
    lower: bool = False
    """Whether less is better."""

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name, "kind": self.kind, "series": self.series, "over": list(self.over), "lower": self.lower
        }  # fmt: skip


def metric_from_json(value: dict[str, Any]) -> Metric:
    return Metric(**{**value, "over": tuple(value["over"])})


def _answer(
    value: float | None,
    limits: Limits | None,
    count: int,
    method: str,
    reason: str | None = None,
    *,
    level: float = LEVEL,
) -> dict[str, Any]:
    interval = None if limits is None else {"low": limits[0], "high": limits[1], "level": level}
    return {"value": value, "interval": interval, "n": count, "method": method, "reason": reason}


def _constant(values: Sequence[float]) -> bool:
    return len(set(values)) == 1


def share(values: Sequence[float]) -> dict[str, Any]:
    """The share of samples with 1, with Wilson's interval."""
    value = mean(values)
    return _answer(value, wilson_interval(value, len(values), level=LEVEL), len(values), "wilson")


def _mean(values: Sequence[float]) -> dict[str, Any]:
    """The mean of numbers from 0 to 1; where all are equal the bootstrap sees no spread and Wilson's is taken."""
    value = mean(values)
    if _constant(values):
        return _answer(value, wilson_interval(value, len(values), level=LEVEL), len(values), "wilson")
    return _answer(value, bootstrap_interval(values, level=LEVEL), len(values), "bootstrap")


def _correlation(metric: Metric, series: Series) -> dict[str, Any]:
    values, gold = series[metric.series], series[GOLD]
    method, by_rank = f"fisher-{metric.kind}", metric.kind == "spearman"
    value = _CORRELATIONS[metric.kind](values, gold)
    if value is None:
        return _answer(None, None, len(values), method, "one side is the same for all samples")
    if len(values) < MIN_PAIRS:
        return _answer(value, None, len(values), method, f"an interval needs at least {MIN_PAIRS} samples")
    limits = correlation_interval(value, len(values), by_rank=by_rank, level=LEVEL)
    return _answer(value, limits, len(values), method)


def _of(metric: Metric, series: Series) -> corpus.Of:
    if metric.kind == "ratio":
        return corpus.ratio(series[metric.series], [series[name] for name in metric.over])
    if metric.kind == "mean_iou":
        return corpus.mean_overlap(series[metric.series])
    return corpus.precision(series[metric.series], loose=metric.kind == "map_50")


def _together(of: corpus.Of, count: int, bounds: Limits | None, level: float = LEVEL) -> dict[str, Any]:
    """A metric of all samples together; where leaving out samples changes nothing, as much as one unseen could."""
    value = of(range(count))
    if value is None:
        return _answer(None, None, count, "jackknife", "the samples hold nothing to find")
    if count < MIN_SAMPLES:
        return _answer(value, None, count, "jackknife", f"an interval needs at least {MIN_SAMPLES} samples")
    half = corpus.jackknife(of, count, level=level)
    if half is None:
        return _answer(value, None, count, "jackknife", "all there is to find is in a few samples")
    method = "jackknife" if half else "wilson"
    half = half or wilson_interval(0.0, count, level=level)[1]
    low, high = value - half, value + half
    limits = (low, high) if bounds is None else (max(low, min(bounds[0], value)), min(high, max(bounds[1], value)))
    return _answer(value, limits, count, method, level=level)


def _bounds(metric: Metric) -> Limits:
    # More words can be wrong than there are.
    return (0.0, math.inf) if metric.lower else (-math.inf if metric.kind == "ratio" else 0.0, 1.0)


def summary(metric: Metric, series: Series) -> dict[str, Any]:
    """Value, interval, number of samples and the method of the interval."""
    if metric.kind in _TOGETHER:
        return _together(_of(metric, series), len(series[metric.series]), _bounds(metric))
    if metric.kind == "share":
        return share(series[metric.series])
    return _mean(series[metric.series]) if metric.kind == "mean" else _correlation(metric, series)


def _share_drop(reference: Sequence[float], candidate: Sequence[float]) -> dict[str, Any]:
    """The drop of a share, with how many samples only one of the two models is right about: they alone count."""
    worse = sum(1 for r, c in zip(reference, candidate, strict=True) if r and not c)
    better = sum(1 for r, c in zip(reference, candidate, strict=True) if c and not r)
    count = len(reference)
    limits = paired_difference_interval(worse, better, count, level=DROP_LEVEL)
    return {
        **_answer((worse - better) / count, limits, count, "tango", level=DROP_LEVEL),
        "worse": worse,
        "better": better,
    }


def _mean_drop(reference: Sequence[float], candidate: Sequence[float]) -> dict[str, Any]:
    differences = [r - c for r, c in zip(reference, candidate, strict=True)]
    count, value = len(differences), mean(differences)
    if _constant(differences):
        # No spread to resample: as much as a kind of sample could differ that was not met in `count`.
        unseen = wilson_interval(0.0, count, level=DROP_LEVEL)[1]
        return _answer(value, (value - unseen, value + unseen), count, "wilson", level=DROP_LEVEL)
    limits = bootstrap_interval(differences, level=DROP_LEVEL)
    return _answer(value, limits, count, "paired-bootstrap", level=DROP_LEVEL)


def _correlation_drop(metric: Metric, reference: Series, candidate: Series) -> dict[str, Any]:
    correlate, count = _CORRELATIONS[metric.kind], len(candidate[metric.series])
    first = correlate(reference[metric.series], reference[GOLD])
    second = correlate(candidate[metric.series], candidate[GOLD])
    between = correlate(reference[metric.series], candidate[metric.series])
    if first is None or second is None or between is None:
        return _answer(None, None, count, "zou", "one side is the same for all samples")
    if count < MIN_PAIRS:
        return _answer(first - second, None, count, "zou", f"an interval needs at least {MIN_PAIRS} samples")
    limits = correlation_difference_interval(
        first, second, between, count, by_rank=metric.kind == "spearman", level=DROP_LEVEL
    )
    return _answer(first - second, limits, count, "zou", level=DROP_LEVEL)


def _together_drop(metric: Metric, reference: Series, candidate: Series) -> dict[str, Any]:
    first, second = _of(metric, reference), _of(metric, candidate)

    def difference(kept: Sequence[int]) -> float | None:
        before, after = first(kept), second(kept)
        if before is None or after is None:
            return None
        return after - before if metric.lower else before - after

    found = _together(difference, len(candidate[metric.series]), None, DROP_LEVEL)
    return {**found, "method": "paired-jackknife" if found["method"] == "jackknife" else found["method"]}


def drop(metric: Metric, reference: Series, candidate: Series) -> dict[str, Any]:
    """How much worse the metric is than the reference's on the same samples, pair by pair."""
    if metric.kind in _TOGETHER:
        return _together_drop(metric, reference, candidate)
    if metric.kind in _CORRELATIONS:
        return _correlation_drop(metric, reference, candidate)
    first, second = reference[metric.series], candidate[metric.series]
    if metric.kind == "mean":
        return _mean_drop(first, second)
    return _share_drop(first, second)

"""From scores of single samples to metrics with intervals, without numpy: stored scores can be judged again."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.intervals import (
    bootstrap_interval,
    correlation_difference_interval,
    correlation_interval,
    paired_difference_interval,
    pearson,
    spearman,
    wilson_interval,
)
from winml.modelkit.core.latency import Interval
from winml.modelkit.core.statistics import mean
from winml.modelkit.core.values import key
from winml.modelkit.evaluation import corpus

LEVEL = 0.95
DROP_LEVEL = 0.90
"""Of the interval of a drop: each end holds with 95 %, and a limit for a drop asks about one end."""
GOLD = "gold"
"""The series a correlation is taken with."""
MIN_PAIRS = 4
"""Pairs that an interval of a correlation needs."""

SCALED = "scaled-wilson"
"""The method where no two samples differ and their numbers have a scale of their own."""

MIN_SAMPLES = 8
"""Samples that an interval of a metric of all samples together needs."""

Kind = Literal[
    "share", "mean", "number", "pearson", "spearman", "ratio", "rate", "perplexity", "r2", "mean_iou", "map", "map_50",
    "pq", "auc", "bleu", "chrf", "score", "total",
]  # fmt: skip
"""`mean` is of numbers from 0 to 1, `number` of numbers on a scale of their own: errors, decibels; `ratio` is a part of
a whole, `rate` so much for each of something: bits per token; `score` and `total` are what a custom metric gives."""
Series = Mapping[str, Sequence[Any]]
"""What each sample gives, by name: numbers, which are 0 and 1 for a share, or records of classes."""
Limits = tuple[float, float]

_CORRELATIONS: dict[str, Callable[[Sequence[float], Sequence[float]], float | None]] = {
    "pearson": pearson,
    "spearman": spearman,
}


_TOGETHER = (
    "ratio", "rate", "perplexity", "r2", "mean_iou", "map", "map_50", "pq", "auc", "bleu", "chrf", "total",
)  # fmt: skip
_OWN_SCALE = ("number", "rate", "perplexity", "score", "total")


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
    bounds: Limits | None = None
    """The lowest and the highest value that it can have, where its kind does not say; None where that is unknown."""


def check_range(metric: Metric, limits: Mapping[str, float | None]) -> None:
    """Raise for limits, by their option, that a fraction cannot have; metrics on a scale of their own have any."""
    if metric.kind in _OWN_SCALE or (metric.kind == "ratio" and metric.lower):
        return  # of errors there can be more than words or steps
    for option, limit in limits.items():
        low = 0.0 if option == "--max-drop" else -1.0
        if limit is None or low <= limit < 1.0 or (option != "--max-drop" and limit == 1.0):
            continue
        raise RequestError(
            f"`{option}` of `{metric.name}` is a fraction from {low:g} to 1 but got {limit:g}",
            hint="0.01 is one percentage point",
        )


def check_direction(metric: Metric, *, least: bool, most: bool) -> None:
    """Raise for a minimum of a metric that is better when it is lower, and the other way round."""
    if least and metric.lower:
        raise RequestError(
            f"`{metric.name}` is better when it is lower, so it has no minimum", hint="`--max-metric` is its limit"
        )
    if most and not metric.lower:
        raise RequestError(
            f"`{metric.name}` is better when it is higher, so it has no maximum", hint="`--min-metric` is its limit"
        )


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number about a model with its spread."""

    value: float | None
    interval: Interval | None
    n: int
    """Samples it is made from."""
    method: str
    reason: str | None
    """Why there is no value or no interval."""
    worse: int | None = key(omit=True)
    """Of the drop of a share: samples that only the reference is right about."""
    better: int | None = key(omit=True)
    """Of the drop of a share: samples that only the model is right about."""


@dataclass(frozen=True, kw_only=True)
class MetricEstimate(Estimate):
    """A metric, or by how much it is worse than the reference's."""

    kind: Kind


def _estimate(
    value: float | None,
    limits: Limits | None,
    count: int,
    method: str,
    reason: str | None = None,
    *,
    level: float = LEVEL,
) -> Estimate:
    interval = None if limits is None else Interval(low=limits[0], high=limits[1], level=level)
    return Estimate(value=value, interval=interval, n=count, method=method, reason=reason)


def _constant(values: Sequence[float]) -> bool:
    return len(set(values)) == 1


def share(values: Sequence[float]) -> Estimate:
    """The share of samples with 1, with Wilson's interval."""
    value = mean(values)
    return _estimate(value, wilson_interval(value, len(values), level=LEVEL), len(values), "wilson")


def _mean(values: Sequence[float]) -> Estimate:
    """The mean of numbers from 0 to 1; where all are equal the bootstrap sees no spread and Wilson's is taken."""
    value = mean(values)
    if _constant(values):
        return _estimate(value, wilson_interval(value, len(values), level=LEVEL), len(values), "wilson")
    return _estimate(value, bootstrap_interval(values, level=LEVEL), len(values), "bootstrap")


def _number(values: Sequence[float | None]) -> Estimate:
    """The mean of numbers on any scale; unknown where a sample gave none, because no number stands for that."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        reason = f"{len(values) - len(known)} of {len(values)} samples gave no number"
        return _estimate(None, None, len(values), "bootstrap", reason)
    return _of_scale(known, max(map(abs, known)), "bootstrap", LEVEL)


def _of_scale(values: Sequence[float], scale: float, method: str, level: float) -> Estimate:
    """The mean of numbers; where all are equal, one kind of sample that was not met may be off by the scale."""
    value, count = mean(values), len(values)
    if not _constant(values):
        return _estimate(value, bootstrap_interval(values, level=level), count, method, level=level)
    if not scale:
        return _estimate(value, None, count, method, "all samples give 0, which says nothing of others", level=level)
    half = scale * wilson_interval(0.0, count, level=level)[1]
    return _estimate(value, (value - half, value + half), count, SCALED, level=level)


def _is_binary(*series: Sequence[float]) -> bool:
    return all(value in (0.0, 1.0) for values in series for value in values)


def _scale(*series: Sequence[float]) -> float:
    """By how much the score of a sample could change: 1 for numbers from 0 to 1, else as far as scores lie apart."""
    values = [value for one in series for value in one]
    low, high = min(values), max(values)
    if low >= 0.0 and high <= 1.0:
        return 1.0
    return high - low or max(abs(low), abs(high))


def _score(values: Sequence[float]) -> Estimate:
    """The mean of numbers on any scale; zeros and ones are a share."""
    if _is_binary(values):
        return share(values)
    value, count = mean(values), len(values)
    if not _constant(values):
        return _estimate(value, bootstrap_interval(values, level=LEVEL), count, "bootstrap")
    if 0.0 <= value <= 1.0:
        return _mean(values)
    unseen = _scale(values) * wilson_interval(0.0, count, level=LEVEL)[1]
    return _estimate(value, (value - unseen, value + unseen), count, SCALED)


def _correlation(metric: Metric, series: Series) -> Estimate:
    values, gold = series[metric.series], series[GOLD]
    method, by_rank = f"fisher-{metric.kind}", metric.kind == "spearman"
    value = _CORRELATIONS[metric.kind](values, gold)
    if value is None:
        return _estimate(None, None, len(values), method, "one side is the same for all samples")
    if len(values) < MIN_PAIRS:
        return _estimate(value, None, len(values), method, f"an interval needs at least {MIN_PAIRS} samples")
    limits = correlation_interval(value, len(values), by_rank=by_rank, level=LEVEL)
    return _estimate(value, limits, len(values), method)


def _of(metric: Metric, series: Series) -> corpus.Of:
    if metric.kind == "total":
        return corpus.total(series[metric.series], metric.name)
    if metric.kind == "auc":
        return corpus.ranked_right(series[metric.series], series[metric.over[0]])
    if metric.kind in ("ratio", "rate"):
        return corpus.ratio(series[metric.series], [series[name] for name in metric.over])
    if metric.kind == "perplexity":
        return corpus.perplexity(series[metric.series], [series[name] for name in metric.over])
    if metric.kind in _OF_RECORDS:
        return _OF_RECORDS[metric.kind](series[metric.series])
    return corpus.precision(series[metric.series], loose=metric.kind == "map_50")


_OF_RECORDS: dict[str, Callable[[Sequence[Any]], corpus.Of]] = {
    "mean_iou": corpus.mean_overlap,
    "r2": corpus.determination,
    "pq": corpus.panoptic_quality,
    "bleu": corpus.bleu,
    "chrf": corpus.chrf,
}


def _why_unknown(metric: Metric, series: Series) -> str:
    """Why a metric of all samples together has no value."""
    if metric.kind == "total":
        return f"`total` gave no number for these {len(series[metric.series])} samples"
    missing = any(
        value is None or (metric.kind == "r2" and any(predicted is None for _, predicted in value))
        for value in series[metric.series]
    )
    if missing:
        return "some samples gave no number"
    return "all labels are the same" if metric.kind == "auc" else "the samples hold nothing to find"


def _together(
    of: corpus.Of,
    count: int,
    bounds: Limits | None,
    level: float = LEVEL,
    *,
    scale: float = 1.0,
    scaled: bool = False,
    reason: str,
) -> Estimate:
    """A metric of all samples together; where no sample changes it, one unseen sample sets the interval.

    `scale` is how far an unseen sample could lie away, and `scaled` says that the metric has a scale of its own;
    `reason` is why there is no value, where there is none.
    """
    value = of(range(count))
    if value is None:
        return _estimate(None, None, count, "jackknife", reason)
    if count < MIN_SAMPLES:
        return _estimate(value, None, count, "jackknife", f"an interval needs at least {MIN_SAMPLES} samples")
    half = corpus.jackknife(of, count, level=level)
    if half is None:
        return _estimate(value, None, count, "jackknife", "all there is to find is in a few samples")
    method = "jackknife" if half else SCALED if scaled else "wilson"
    half = half or scale * wilson_interval(0.0, count, level=level)[1]
    low, high = value - half, value + half
    limits = (low, high) if bounds is None else (max(low, min(bounds[0], value)), min(high, max(bounds[1], value)))
    return _estimate(value, limits, count, method, level=level)


def _bounds(metric: Metric) -> Limits | None:
    if metric.kind == "total" or metric.bounds is not None:
        return metric.bounds
    # More words can be wrong than there are.
    return (0.0, math.inf) if metric.lower else (-math.inf if metric.kind in ("ratio", "r2") else 0.0, 1.0)


def estimate(metric: Metric, series: Series) -> MetricEstimate:
    """Value, interval, number of samples and the method of the interval."""
    return MetricEstimate(kind=metric.kind, **vars(_estimate_metric(metric, series)))


def _estimate_metric(metric: Metric, series: Series) -> Estimate:
    if metric.kind in _TOGETHER:
        of, count = _of(metric, series), len(series[metric.series])
        scale = _total_scale(metric, count, of)
        scaled, reason = metric.kind == "total", _why_unknown(metric, series)
        return _together(of, count, _bounds(metric), scale=scale, scaled=scaled, reason=reason)
    if metric.kind == "score":
        return _score(series[metric.series])
    if metric.kind == "share":
        return share(series[metric.series])
    if metric.kind == "number":
        return _number(series[metric.series])
    return _mean(series[metric.series]) if metric.kind == "mean" else _correlation(metric, series)


def _total_scale(metric: Metric, count: int, *of: corpus.Of) -> float:
    """How far an unseen sample could move a metric: by all of it, where its scale is the user's own."""
    if metric.kind != "total":
        return 1.0
    if metric.bounds is not None:
        return metric.bounds[1] - metric.bounds[0]
    return max((abs(value) for one in of if (value := one(range(count))) is not None), default=0.0) or 1.0


def _share_drop(reference: Sequence[float], candidate: Sequence[float]) -> Estimate:
    """The drop of a share, with how many samples only one of the two models is right about: they alone count."""
    worse = sum(1 for r, c in zip(reference, candidate, strict=True) if r and not c)
    better = sum(1 for r, c in zip(reference, candidate, strict=True) if c and not r)
    count = len(reference)
    limits = paired_difference_interval(worse, better, count, level=DROP_LEVEL)
    found = _estimate((worse - better) / count, limits, count, "tango", level=DROP_LEVEL)
    return replace(found, worse=worse, better=better)


def _score_drop(reference: Sequence[float], candidate: Sequence[float], *, lower: bool) -> Estimate:
    if not _is_binary(reference, candidate):
        worse, better = (candidate, reference) if lower else (reference, candidate)
        return _mean_drop(worse, better, scale=_scale(reference, candidate))
    if not lower:
        return _share_drop(reference, candidate)
    return _share_drop([1.0 - value for value in reference], [1.0 - value for value in candidate])


def _mean_drop(reference: Sequence[float], candidate: Sequence[float], *, scale: float = 1.0) -> Estimate:
    differences = [r - c for r, c in zip(reference, candidate, strict=True)]
    count, value = len(differences), mean(differences)
    if _constant(differences):
        # No spread to resample: as much as a kind of sample could differ that was not met in `count`.
        unseen = scale * wilson_interval(0.0, count, level=DROP_LEVEL)[1]
        method = "wilson" if scale == 1.0 else SCALED
        return _estimate(value, (value - unseen, value + unseen), count, method, level=DROP_LEVEL)
    limits = bootstrap_interval(differences, level=DROP_LEVEL)
    return _estimate(value, limits, count, "paired-bootstrap", level=DROP_LEVEL)


def _number_drop(reference: Sequence[float | None], candidate: Sequence[float | None], *, lower: bool) -> Estimate:
    pairs = [(r, c) for r, c in zip(reference, candidate, strict=True) if r is not None and c is not None]
    if len(pairs) < len(reference):
        reason = f"{len(reference) - len(pairs)} of {len(reference)} samples gave no number"
        return _estimate(None, None, len(reference), "paired-bootstrap", reason)
    differences = [c - r if lower else r - c for r, c in pairs]
    scale = max(abs(value) for pair in pairs for value in pair)
    return _of_scale(differences, scale, "paired-bootstrap", DROP_LEVEL)


def _correlation_drop(metric: Metric, reference: Series, candidate: Series) -> Estimate:
    correlate, count = _CORRELATIONS[metric.kind], len(candidate[metric.series])
    first = correlate(reference[metric.series], reference[GOLD])
    second = correlate(candidate[metric.series], candidate[GOLD])
    between = correlate(reference[metric.series], candidate[metric.series])
    if first is None or second is None or between is None:
        return _estimate(None, None, count, "zou", "one side is the same for all samples")
    if count < MIN_PAIRS:
        return _estimate(first - second, None, count, "zou", f"an interval needs at least {MIN_PAIRS} samples")
    limits = correlation_difference_interval(
        first, second, between, count, by_rank=metric.kind == "spearman", level=DROP_LEVEL
    )
    return _estimate(first - second, limits, count, "zou", level=DROP_LEVEL)


def _together_drop(metric: Metric, reference: Series, candidate: Series) -> Estimate:
    first, second = _of(metric, reference), _of(metric, candidate)

    def difference(kept: Sequence[int]) -> float | None:
        before, after = first(kept), second(kept)
        if before is None or after is None:
            return None
        return after - before if metric.lower else before - after

    count = len(candidate[metric.series])
    everything = range(count)
    reason = _why_unknown(metric, reference if first(everything) is None else candidate)
    scale, scaled = _total_scale(metric, count, first, second), metric.kind == "total"
    found = _together(difference, count, None, DROP_LEVEL, scale=scale, scaled=scaled, reason=reason)
    return replace(found, method="paired-jackknife") if found.method == "jackknife" else found


def estimate_drop(metric: Metric, reference: Series, candidate: Series) -> MetricEstimate:
    """How much worse the metric is than the reference's on the same samples, pair by pair."""
    return MetricEstimate(kind=metric.kind, **vars(_estimate_drop(metric, reference, candidate)))


def _estimate_drop(metric: Metric, reference: Series, candidate: Series) -> Estimate:
    if metric.kind in _TOGETHER:
        return _together_drop(metric, reference, candidate)
    if metric.kind in _CORRELATIONS:
        return _correlation_drop(metric, reference, candidate)
    first, second = reference[metric.series], candidate[metric.series]
    if metric.kind == "number":
        return _number_drop(first, second, lower=metric.lower)
    if metric.kind == "mean":
        return _mean_drop(first, second)
    if metric.kind == "score":
        return _score_drop(first, second, lower=metric.lower)
    return _share_drop(first, second)

"""The configs of a search as points: what each gains, and what that costs in accuracy or size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from winml.modelkit.core.objective import TIMED
from winml.modelkit.core.verdict import speedup
from winml.modelkit.render.autoconfig import gain, gain_interval, quality
from winml.modelkit.render.figures.pareto import Point
from winml.modelkit.render.units import size

if TYPE_CHECKING:
    from winml.modelkit.search.result import SearchResult, TrialResult

GAINS = {
    "latency": "times as fast as the baseline, logarithmic",
    "size": "bytes saved, %",
    "placement": "pieces saved, %",
    "first-token": "times as fast to the first token as the baseline, logarithmic",
    "tokens-per-second": "tokens per second as a multiple of the baseline's, logarithmic",
    "memory": "peak memory saved, %",
}
"""The axis of gains, by objective."""


def is_timed(result: SearchResult) -> bool:
    """Whether gains are speeds, which are factors; what is counted is a share."""
    return result.objective in TIMED


def is_less_better(result: SearchResult) -> bool:
    """Whether less of what the gate compares is better, as of a perplexity."""
    return any(trial.accuracy is not None and bool(trial.accuracy.less_is_better) for trial in result.trials)


def gain_value(result: SearchResult, trial: TrialResult) -> float | None:
    """What a config gains on the axis of gains; None for one that was not measured."""
    verdict = trial.deciding_verdict
    saved = 0.0 if trial.outcome == "baseline" else None if verdict is None else verdict.gain_pct
    return None if saved is None else speedup(saved) if is_timed(result) else saved


def gain_bounds(result: SearchResult, trial: TrialResult) -> tuple[float, float] | None:
    """The interval of a gain on the same axis; what is counted has none."""
    verdict = trial.deciding_verdict
    if not is_timed(result) or verdict is None or verdict.interval_pct is None:
        return None
    return speedup(verdict.interval_pct[0]), speedup(verdict.interval_pct[1])


def quality_points(result: SearchResult) -> list[Point]:
    """Gain, and accuracy or agreement, of every config that has both."""
    points = []
    for trial in result.trials:
        known = trial.accuracy
        if known is None or known.value is None:
            continue
        between = None if known.interval is None else (known.interval.low, known.interval.high)
        # As it is written: further digits are those of a processor, and put configs on the front that gain nothing.
        points += _point(result, trial, round(known.value, 4), quality(known), between)
    return points


def size_points(result: SearchResult, unit: float) -> list[Point]:
    """Gain and size of the artifact, in units of so many bytes, of every config that has both."""
    points = []
    for trial in result.trials:
        if trial.artifact is not None:
            points += _point(result, trial, trial.artifact.bytes / unit, size(trial.artifact.bytes), None)
    return points


def _point(
    result: SearchResult, trial: TrialResult, up: float, said: str, between: tuple[float, float] | None
) -> list[Point]:
    """The point of a config that works and was measured; nothing for others."""
    across = gain_value(result, trial)
    if across is None or trial.outcome not in ("baseline", "measured"):
        return []
    verdict, champion = trial.deciding_verdict, result.champion
    words = " ".join(filter(None, (trial.label if verdict else "", gain(verdict), gain_interval(verdict), said)))
    marked = champion is not None and trial.id == champion.trial.id
    base = trial.outcome == "baseline"
    name = "baseline" if base else trial.id
    return [Point(across, up, name, words, gain_bounds(result, trial), between, marked, base)]

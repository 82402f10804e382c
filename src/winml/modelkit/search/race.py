"""The race of trials: the leader, its rivals, the next round, and the Pareto front."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.statistics import t_quantile
from winml.modelkit.search.trial import Metric, Trial, Yardstick

RIVALS_P = 0.02
"""Probability, over all rivals together, that one is dropped wrongly."""
TOLERANCE = math.log(1.007)
"""A rival that can be better by no more than this need not be distinguished from the leader."""

NEGLIGIBLE = math.log(1.003)
"""A lead this small is not worth another change."""


@dataclass(frozen=True)
class Runner:
    """A measured trial in the race."""

    trial: Trial
    score: float
    rounds: int


def rank_runners(trials: Sequence[Trial]) -> list[Runner]:
    """Trials that were measured and may win, best first; of equal ones the one with fewer changes."""
    found = [
        Runner(trial, sum(trial.series.deciding) / len(trial.series.deciding), len(trial.series.deciding))
        for trial in trials
        if trial.outcome == "measured" and trial.series is not None and trial.series.disturbed is None
    ]
    return sorted(found, key=lambda runner: (-runner.score, len(runner.trial.choice)))


def put_simplest_first(ranked: Sequence[Runner]) -> list[Runner]:
    """The runners, with the one of fewest changes first among those that hardly differ from the leader."""
    close = [runner for runner in ranked if ranked[0].score - runner.score < NEGLIGIBLE]
    simplest = min(close, key=lambda runner: len(runner.trial.choice), default=None)
    return [] if simplest is None else [simplest, *(runner for runner in ranked if runner is not simplest)]


def advantage(rival: Trial, leader: Trial, yardstick: Yardstick, rivals: int) -> tuple[float, float] | None:
    """Lower and upper bound of how much better the rival is than the leader; None while that is unknown."""
    assert rival.series is not None
    assert leader.series is not None
    # Trials decided on different clocks are compared by wall time.
    metric: Metric = rival.series.metric if rival.series.metric == leader.series.metric else "wall"
    ours, theirs = yardstick.estimate(rival.series, metric), yardstick.estimate(leader.series, metric)
    if ours is None or theirs is None:
        return None
    error = math.hypot(ours.error, theirs.error)
    half = 0.0 if error == 0 else t_quantile(1 - RIVALS_P / max(1, rivals), min(ours.df, theirs.df)) * error
    gap = ours.mean - theirs.mean
    return gap - half, gap + half


def choose_runner(trials: Sequence[Trial], yardstick: Yardstick, *, field_size: int, max_rounds: int) -> Trial | None:
    """The trial whose next round is most informative: the leader or its closest rival, whichever has fewer rounds.

    None when no rival can be better by more than the tolerance, the leader has its verdict against the baseline, or
    all relevant trials have had their rounds.
    """
    ranked = rank_runners(trials)[:field_size]
    if not ranked:
        return None
    leader, rivals = ranked[0], ranked[1:]
    closest = _closest(leader, rivals, yardstick, max_rounds)
    if closest is not None:
        return min((leader, closest), key=lambda runner: runner.rounds).trial
    undecided = yardstick.verdict_of(leader.trial).verdict == "INCONCLUSIVE"
    return leader.trial if leader.rounds < max_rounds and undecided else None


def is_behind(trial: Trial, leader: Trial, yardstick: Yardstick) -> bool:
    """Whether a measured trial is certainly no better than the leader."""
    bounds = advantage(trial, leader, yardstick, 1)
    return bounds is not None and bounds[1] <= TOLERANCE


def _closest(leader: Runner, rivals: Sequence[Runner], yardstick: Yardstick, max_rounds: int) -> Runner | None:
    """The rival that could be better than the leader by most, and by more than the tolerance."""
    found: list[tuple[float, Runner]] = []
    for rival in rivals:
        bounds = advantage(rival.trial, leader.trial, yardstick, len(rivals))
        upper = math.inf if bounds is None else bounds[1]
        if upper > TOLERANCE and min(rival.rounds, leader.rounds) < max_rounds:
            found.append((upper, rival))
    return max(found, key=lambda pair: pair[0])[1] if found else None


def pareto_front(points: Mapping[str, Sequence[float]]) -> tuple[str, ...]:
    """Names of points that no other one dominates, in the order given; larger is better in every coordinate."""

    def dominates(a: Sequence[float], b: Sequence[float]) -> bool:
        return all(x >= y for x, y in zip(a, b, strict=True)) and any(x > y for x, y in zip(a, b, strict=True))

    return tuple(name for name, point in points.items() if not any(dominates(p, point) for p in points.values()))

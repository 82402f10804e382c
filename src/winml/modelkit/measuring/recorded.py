"""What recorded session medians still show: a pure function, for numbers that others measured.

In a sequential sweep a config and the hour it was measured in cannot be told apart. What bounds the hour's share is
how far one and the same config moved between its own sessions, or between two entries that are the same config: a
difference no larger than that shows nothing. Where the sessions drift one way through the whole sweep, the drift is as
far as all of them lie apart. The other part is sampling: few sessions, so Student's t.

A claim is about configs and not about entries of a record: where several entries are the same config, each of them has
to give the answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product, takewhile
from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.statistics import mean, t_quantile
from winml.modelkit.core.sweep import Config, Sweep
from winml.modelkit.core.verdict import gain_pct

Answer = Literal["supported", "not supported", "insufficient"]
Effect = Literal["faster", "slower", "neutral", "unknown"]

LEVEL = 0.99
"""Level of the interval a difference has to clear; one of a dozen configs of a sweep is picked for being extreme."""
NEUTRAL_LEVEL = 0.95
NEUTRAL_PCT = 5.0
"""A difference that is ruled out beyond this is none: the smallest gain the recorded sweeps acted on."""
MIN_SESSIONS = 3
_ROUNDING = 1 + 1e-9
"""What logarithms of equal ratios differ by."""
TREND_SESSIONS = 8
TREND_P = 0.01
"""Below this p value of the rank correlation with time, the sessions of a sweep drift one way."""


@dataclass(frozen=True)
class Drift:
    """How far times moved without a change of config, as a log ratio, and the configs that showed it."""

    log_ratio: float
    configs: tuple[str, ...]
    trend: bool = False
    """Whether it is the span of sessions that drift one way through the sweep."""

    @property
    def factor(self) -> float:
        return math.exp(self.log_ratio)


@dataclass(frozen=True)
class PairAnswer:
    """What a pair of configs shows."""

    base: str
    candidate: str
    answer: Answer
    effect: Effect
    reason: str
    gain_pct: float | None = None
    interval_pct: tuple[float, float] | None = None
    """Of the gain, by the sessions alone, at the level of the decision."""
    drift_pct: float | None = None
    ranges_apart: bool | None = None


def drift(sweep: Sweep, candidate: str) -> Drift | None:
    """How far times moved without a change of config; None when no config has two sessions.

    A trend is looked for in what was measured before the candidate: what came later may differ for its own reasons.
    """
    groups: list[list[Config]] = []
    for config in sweep.configs:
        group = next((g for g in groups if g[0].equals(config)), None)
        if group is None:
            groups.append([config])
        else:
            group.append(config)
    moved = [_span(group) for group in groups if sum(len(c.sessions_ms) for c in group) > 1]
    before = list(takewhile(lambda c: c.id != candidate, sweep.configs))
    if _trends([ms for c in before for ms in c.sessions_ms]):
        moved.append(_span(before, trend=True))
    return max(moved, key=lambda d: d.log_ratio, default=None)


def _span(group: Sequence[Config], *, trend: bool = False) -> Drift:
    values = [(ms, c.id) for c in group for ms in c.sessions_ms]
    low, high = min(values), max(values)
    return Drift(math.log(high[0] / low[0]), tuple(sorted({low[1], high[1]})), trend)


def _trends(times: Sequence[float]) -> bool:
    """Whether the rank correlation of session medians with their order is beyond chance."""
    n = len(times)
    if n < TREND_SESSIONS:
        return False
    # Ranks from 0, equal values sharing theirs.
    ordered, centre = sorted(times), (n - 1) / 2
    ranks = [(ordered.index(v) + n - 1 - ordered[::-1].index(v)) / 2 for v in times]
    spread = math.fsum((r - centre) ** 2 for r in ranks)
    if spread == 0:
        return False
    along = math.fsum((r - centre) * (i - centre) for i, r in enumerate(ranks))
    rho = along / math.sqrt(spread * math.fsum((i - centre) ** 2 for i in range(n)))
    if abs(rho) >= 1:
        return True
    return abs(rho) * math.sqrt((n - 2) / (1 - rho * rho)) > t_quantile(1 - TREND_P / 2, n - 2)


@dataclass(frozen=True)
class _Difference:
    """Mean of log(base / candidate) with its standard error."""

    mean: float
    error: float
    df: int

    def half(self, level: float) -> float:
        return t_quantile(0.5 + level / 2.0, self.df) * self.error

    def bounds_pct(self, level: float) -> tuple[float, float]:
        return gain_pct(self.mean - self.half(level)), gain_pct(self.mean + self.half(level))


def _difference(base: Config, candidate: Config) -> _Difference:
    a, b = ([math.log(ms) for ms in c.sessions_ms] for c in (base, candidate))
    df = len(a) + len(b) - 2
    squares = sum(math.fsum((v - mean(part)) ** 2 for v in part) for part in (a, b))
    return _Difference(mean(a) - mean(b), math.sqrt(squares / df * (1 / len(a) + 1 / len(b))), df)


def judge_pair(sweep: Sweep, base: str, candidate: str) -> PairAnswer:
    """Whether the candidate differs from the base in a recorded sweep, and which way."""
    arms = sweep.config(base), sweep.config(candidate)
    if arms[0] is None or arms[1] is None:
        missing = base if arms[0] is None else candidate
        return PairAnswer(base, candidate, "insufficient", "unknown", f"{missing} is not in the record")
    few = [c for c in arms if c is not None and len(c.sessions_ms) < MIN_SESSIONS]
    if few:
        counts = " and ".join(f"{c.id} has {len(c.sessions_ms) or 'no'} recorded sessions" for c in few)
        reason = f"too few: {counts}, {MIN_SESSIONS} are needed to estimate their variation"
        return PairAnswer(base, candidate, "insufficient", "unknown", reason)
    found = _judge_entries(sweep, arms[0], arms[1])
    if arms[0].equals(arms[1]):
        return found
    pairs = product(_entries(sweep, arms[0]), _entries(sweep, arms[1]))
    return _as_configs(found, [_judge_entries(sweep, a, b) for a, b in pairs])


def _entries(sweep: Sweep, config: Config) -> list[Config]:
    """The entries of a record that are one config, if they have enough sessions."""
    same = [c for c in sweep.configs if c is config or c.equals(config)]
    return [c for c in same if len(c.sessions_ms) >= MIN_SESSIONS]


def _as_configs(found: PairAnswer, all_entries: Sequence[PairAnswer]) -> PairAnswer:
    """What a pair shows, taking every entry that is the same config for it."""
    others = [o for o in all_entries if (o.answer, o.effect) != (found.answer, found.effect)]
    if not others:
        return found
    other = others[0]
    if all(o.answer == found.answer for o in others):
        return replace(found, effect="unknown")
    pairs = [f"{j.base} -> {j.candidate} is {j.answer} ({j.reason})" for j in (found, other)]
    reason = f"entries of the same configs disagree: {pairs[0]}; {pairs[1]}"
    return replace(found, answer="insufficient", effect="unknown", reason=reason)


def _judge_entries(sweep: Sweep, base: Config, candidate: Config) -> PairAnswer:
    found = _difference(base, candidate)
    moved = drift(sweep, candidate.id)
    assert moved is not None  # both arms have several sessions
    # Interleaved arms share their hours, so that only sampling is left.
    envelope = 0.0 if sweep.order == "interleaved" else moved.log_ratio
    answer, effect, reason = _answer(sweep, found, moved, envelope)
    a, b = base.sessions_ms, candidate.sessions_ms
    apart = max(a) < min(b) or max(b) < min(a)
    if answer == "supported" and not apart:
        answer, effect, reason = "insufficient", "unknown", "the ranges of the sessions overlap"
    return PairAnswer(
        base.id,
        candidate.id,
        answer,
        effect,
        reason,
        gain_pct(found.mean),
        found.bounds_pct(LEVEL),
        100 * (moved.factor - 1),
        apart,
    )


def _answer(sweep: Sweep, found: _Difference, moved: Drift, envelope: float) -> tuple[Answer, Effect, str]:
    size = abs(found.mean)
    reach = found.half(NEUTRAL_LEVEL) + envelope
    limit = -math.log1p(-NEUTRAL_PCT / 100)
    if size + reach < limit:
        return "not supported", "neutral", f"a difference of {NEUTRAL_PCT:g} % or more is ruled out"
    if envelope and size <= envelope * _ROUNDING:
        return "not supported", "unknown", f"{_describe_drift(sweep, moved)}, more than the difference itself"
    if size > found.half(LEVEL) + envelope:
        return "supported", "faster" if found.mean > 0 else "slower", _size(found.mean, moved, envelope)
    low, high = found.bounds_pct(LEVEL)
    spread = f"by the sessions alone it is between {low:+.0f} and {high:+.0f} %"
    return "insufficient", "unknown", f"{_describe_drift(sweep, moved)}; {spread}" if envelope else spread


def _size(log_ratio: float, moved: Drift, envelope: float) -> str:
    factor = math.exp(abs(log_ratio))
    size = f"{factor:.1f} times" if factor >= 2 else f"{100 * (factor - 1):.0f} %"
    beyond = f", beyond the {_times(moved)} by which times drifted" if envelope else ""
    return f"{size} {'faster' if log_ratio > 0 else 'slower'}{beyond}"


def _times(moved: Drift) -> str:
    return f"{moved.factor:.1f} times" if moved.factor >= 2 else f"{100 * (moved.factor - 1):.0f} %"


def _describe_drift(sweep: Sweep, moved: Drift) -> str:
    """The drift as a phrase."""
    order = "sequential" if sweep.order == "sequential" else "order not recorded"
    where = ", ".join(moved.configs)
    if moved.trend:
        return f"{order}, and times drift one way by {_times(moved)} through the sweep ({where})"
    how = "equal configs" if len(moved.configs) > 1 else "sessions of one config"
    return f"{order}, and {how} ({where}) differ by {_times(moved)}"

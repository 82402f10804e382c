"""From round values to a verdict: a pure function, so that stored measurements can be judged again.

A round value is log(base / candidate): positive when the candidate is faster. See `docs/measuring.md` for the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.measurement import CompareProtocol, Round
from winml.modelkit.core.statistics import f_quantile, mean, median, t_quantile
from winml.modelkit.core.verdict import Clock, OtherClock, Outcome, Verdict, gain_pct
from winml.modelkit.measuring.protocols import DESIGN_RATE

Gate = Literal["pass", "fail", "unknown"]
"""Whether a candidate is slower than the base by more than a limit."""

NOISIER_P = 0.05
"""Below this p value the rounds are noisier than the calibration, which then lends nothing."""


@dataclass(frozen=True)
class Estimate:
    """Mean log ratio with its standard error and degrees of freedom."""

    mean: float
    error: float
    df: int
    rounds: int
    calibrated: bool

    def bounds(self, level: float = 0.95) -> tuple[float, float]:
        half = t_quantile(0.5 + level / 2.0, self.df) * self.error
        return self.mean - half, self.mean + half

    def interval_pct(self) -> tuple[float, float]:
        low, high = self.bounds()
        return gain_pct(low), gain_pct(high)


def estimate(values: Sequence[float], calibration: Sequence[float], lent_df: int = 3) -> Estimate | None:
    """Mean of the values; variance pooled with that of A/A rounds, whose mean is known to be zero.

    None when there is too little to know a variance. A calibration may be from quieter times: it lends few degrees of
    freedom, never makes the variance smaller than the values' own, and lends nothing when an F test tells them apart.
    """
    n, k = len(values), len(calibration)
    if n < 2:
        return None
    centre = mean(values)
    own_sum = math.fsum((v - centre) ** 2 for v in values)
    own = own_sum / (n - 1)
    lent = math.fsum(v * v for v in calibration) / k if k else 0.0
    if lent == 0.0 or (n >= 3 and own / lent > f_quantile(1 - NOISIER_P, n - 1, k)):
        return Estimate(centre, math.sqrt(own / n), n - 1, n, calibrated=False)
    df = n - 1 + lent_df
    pooled = max(own, (own_sum + lent_df * lent) / df)
    return Estimate(centre, math.sqrt(pooled / n), df, n, calibrated=True)


def round_value(base: Round, candidate: Round, clock: Clock, *, paired: bool) -> float:
    """Log ratio of one round: the median over pairs, or of medians when the arms took turns."""
    a, b = (r.on(clock) for r in (base, candidate))
    if not a or not b or min(*a, *b) <= 0:
        raise ValueError("a clock that stands still cannot be compared")
    if not paired:
        return math.log(median(a) / median(b))
    return median([math.log(x / y) for x, y in zip(a, b, strict=False)])


def round_values(rounds: Iterable[Round], candidate: int, clock: Clock, *, paired: bool) -> list[float]:
    """Values of all rounds in which arm 0 and the candidate both have samples."""
    by_round: dict[int, dict[int, Round]] = {}
    for r in rounds:
        if r.wall_ns:
            by_round.setdefault(r.round, {})[r.arm] = r
    return [
        round_value(arms[0], arms[candidate], clock, paired=paired)
        for _, arms in sorted(by_round.items())
        if 0 in arms and candidate in arms
    ]


def _significant(found: Estimate, protocol: CompareProtocol, tests: int) -> bool:
    p = (protocol.boundary_p if found.calibrated else protocol.boundary_p_alone) / tests
    return found.error > 0 and found.mean / found.error > t_quantile(1 - p, found.df)


def _may_look(found: Estimate, protocol: CompareProtocol) -> bool:
    first = protocol.first_look if found.calibrated else protocol.first_look_alone
    return found.rounds >= first


def _outcome(found: Estimate, protocol: CompareProtocol, tests: int, metric: Clock) -> tuple[Outcome, str] | None:
    """The outcome at this look; None to continue."""
    gain, (what, worse) = gain_pct(found.mean), _words(metric)
    if _significant(found, protocol, tests) and gain >= protocol.keep_pct:
        if gain >= protocol.marginal_pct:
            return "KEEP", f"{gain:.1f} % less {what}"
        return "MARGINAL_KEEP", f"{gain:.1f} % less {what}: significant, but below {protocol.marginal_pct:g} %"
    high = found.interval_pct()[1]
    if high < protocol.marginal_pct:
        if high < 0:
            return "DISCARD", f"{worse}: {-gain:.1f} % more {what} than the base"
        return "DISCARD", f"a gain of {protocol.marginal_pct:g} % or more is ruled out"
    return None


def judge(
    values: Sequence[float],
    *,
    calibration: Sequence[float] = (),
    other: Sequence[float] = (),
    protocol: CompareProtocol,
    metric: Clock,
    tests: int = 1,
    last: bool = False,
) -> Verdict | None:
    """The verdict at this look, or None when another round is needed.

    `other` are the values on the other clock: when its 95 % interval lies wholly on the other side of zero the clocks
    contradict each other and nothing is decided. `tests` is the number of candidates that compete. With `last` there
    will be no further round.
    """
    found = estimate(values, calibration, protocol.lent_df)
    if found is None:
        return _unknown(len(values), metric) if last else None
    decided = _outcome(found, protocol, tests, metric) if _may_look(found, protocol) else None
    if decided is None and not last and found.rounds < protocol.max_rounds:
        return None
    word, reason = decided or _explain_undecided(found, protocol, metric)
    verdict = Verdict(
        verdict=word,
        reason=reason,
        gain_pct=gain_pct(found.mean),
        interval_pct=found.interval_pct(),
        rounds=found.rounds,
        metric=metric,
        error_rate=DESIGN_RATE,
        other_clock=_other(other, metric),
    )
    return _check_other_clock(verdict, other, protocol)


def _unknown(rounds: int, metric: Clock) -> Verdict:
    return Verdict("INCONCLUSIVE", "too few rounds to estimate their variation", rounds=rounds, metric=metric)


def _words(metric: Clock) -> tuple[str, str]:
    """What is saved, and what a candidate is that saves none of it."""
    return ("memory", "larger") if metric == "memory" else ("time", "slower")


def _explain_undecided(found: Estimate, protocol: CompareProtocol, metric: Clock) -> tuple[Outcome, str]:
    """What the rounds suggest, and what it would take to decide, from the spread seen so far."""
    spread = found.error * math.sqrt(found.rounds)
    half = abs(found.mean) if abs(found.mean) > 0.005 else protocol.marginal_pct / 100.0
    rounds = math.ceil((3.5 * spread / half) ** 2)
    needed = f"a decision needs about {max(rounds, found.rounds + 1)} rounds, {found.rounds} were run"
    gain, (low, high), (what, worse) = gain_pct(found.mean), found.interval_pct(), _words(metric)
    if high < 0:
        return "INCONCLUSIVE", f"probably {worse}: {-gain:.1f} % more {what}, but {needed}"
    if low > 0:
        better = "smaller" if metric == "memory" else "faster"
        return "INCONCLUSIVE", f"probably {better}: {gain:.1f} % less {what}, but {needed}"
    return "INCONCLUSIVE", (
        f"rounds vary by {100 * spread:.1f} %: {needed}; a quieter machine or fewer threads reduce the variation"
    )


def _other(values: Sequence[float], metric: Clock) -> OtherClock:
    found = estimate(values, ())
    if found is None:
        return OtherClock()
    return OtherClock("wall" if metric == "cpu" else "cpu", gain_pct(found.mean), found.interval_pct())


def _check_other_clock(verdict: Verdict, other: Sequence[float], protocol: CompareProtocol) -> Verdict:
    """INCONCLUSIVE when the other clock's 95 % interval lies wholly where the verdict says it cannot be."""
    found = estimate(other, ())
    if found is None or verdict.gain_pct is None or verdict.verdict == "INCONCLUSIVE":
        return verdict
    low, high = found.interval_pct()
    name = "wall" if verdict.metric == "cpu" else "CPU"
    shown = f"{gain_pct(found.mean):+.1f} %"
    if (verdict.kept and high < 0) or (verdict.gain_pct < 0 and low > 0):
        return replace(verdict, verdict="INCONCLUSIVE", reason=f"the {name} clock shows the opposite ({shown})")
    if verdict.verdict == "DISCARD" and low > protocol.marginal_pct:
        return replace(verdict, verdict="INCONCLUSIVE", reason=f"no gain, but the {name} clock shows one ({shown})")
    return verdict


def gate(
    values: Sequence[float],
    *,
    calibration: Sequence[float] = (),
    protocol: CompareProtocol,
    limit_pct: float,
    last: bool = False,
) -> Gate | None:
    """Whether the candidate is slower than the base by more than a limit: `fail`, `pass`, None to continue.

    It fails when a slowdown beyond the limit is shown at the error rate of a verdict, and passes when one is ruled out
    at `gate_p` per look. `unknown` when there is no further round and neither could be shown.
    """
    found = estimate(values, calibration, protocol.lent_df)
    if found is None or found.error == 0 or not _may_look(found, protocol):
        return "unknown" if last else None
    beyond = (-found.mean - math.log1p(limit_pct / 100.0)) / found.error
    if beyond > t_quantile(1 - protocol.boundary_p, found.df):
        return "fail"
    if -beyond > t_quantile(1 - protocol.gate_p, found.df):
        return "pass"
    return "unknown" if last else None


def replay(
    values: Sequence[float],
    *,
    calibration: Sequence[float],
    other: Sequence[float],
    protocol: CompareProtocol,
    metric: Clock,
    tests: int = 1,
) -> Verdict:
    """The verdict stored rounds lead to, looked at in the order they were made."""
    for n in range(1, len(values) + 1):
        verdict = judge(
            values[:n],
            calibration=calibration,
            other=other[:n],
            protocol=protocol,
            metric=metric,
            tests=tests,
            last=n == len(values),
        )
        if verdict is not None:
            return verdict
    return _unknown(len(values), metric)

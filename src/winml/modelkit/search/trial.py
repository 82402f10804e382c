"""A trial: how far a choice got, and its rounds against the baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.environment import Environment
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.latency import ArmMemory, ArmTimes, Interval
from winml.modelkit.core.measurement import CompareProtocol
from winml.modelkit.core.placement import Placement
from winml.modelkit.core.values import key
from winml.modelkit.core.verdict import Clock, Verdict, gain_pct
from winml.modelkit.measuring.judge import Estimate, estimate, judge
from winml.modelkit.search.space import Choice, ConfigJSON, Option, label

TrialOutcome = Literal["baseline", "measured", "same", "failed", "inaccurate", "slower"]
Step = Literal["build", "probe", "accuracy", "measuring"]
Metric = Literal["cpu", "wall", "memory", "exact"]

EXACT: Metric = "exact"
"""The metric of values that are counted, not timed: one value, no spread."""


@dataclass(frozen=True)
class Series:
    """Round values log(baseline / trial) on each clock, and the clock that decides."""

    metric: Metric
    values: Mapping[str, tuple[float, ...]]
    disturbed: str | None = None
    """Why these rounds are not used."""
    medians_ms: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)
    """Per clock and round: the median of the baseline and of the trial, where times were measured."""

    def __post_init__(self) -> None:
        if self.metric not in self.values:
            raise DataError(f"a series has no values on the deciding clock (`{self.metric}`)")

    @property
    def deciding(self) -> tuple[float, ...]:
        return self.values[self.metric]

    def extend(self, more: Series) -> Series:
        """The series with more rounds of the same trial."""
        if set(more.values) != set(self.values):
            raise DataError("rounds of one trial were measured with different clocks")
        values = {clock: (*taken, *more.values[clock]) for clock, taken in self.values.items()}
        clocks = {*self.medians_ms, *more.medians_ms}
        medians = {c: (*self.medians_ms.get(c, ()), *more.medians_ms.get(c, ())) for c in clocks}
        return replace(self, values=values, disturbed=more.disturbed or self.disturbed, medians_ms=medians)


def exact_series(value: float) -> Series:
    """A value without spread."""
    return Series(EXACT, {EXACT: (value,)})


@dataclass(frozen=True, kw_only=True)
class Note:
    """Why a level is skipped, or tried early or late."""

    kind: Literal["skip", "blocked", "boost", "order"]
    knob: str
    level: str
    source: str
    """A finding's id, or the source of the fact: `graph`, `data`, `target`."""
    reason: str
    weight: float = key(internal=True, default=0.0)
    """What it adds to the priority of the level."""

    @property
    def option(self) -> Option:
        return self.knob, self.level

    @property
    def excludes(self) -> bool:
        return self.kind in ("skip", "blocked")


@dataclass(frozen=True, kw_only=True)
class TrialArtifact:
    """The files built from a config."""

    digest: str
    fingerprint: str | None
    """Of the graph; null where it cannot be read."""
    bytes: int


@dataclass(frozen=True, kw_only=True)
class StageRun:
    """A stage of a build."""

    stage: str
    hit: bool
    """Whether the cache had its result."""
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """The accuracy of a trial, from its evaluation."""

    kind: Literal["task", "agreement"]
    metric: str | None
    value: float | None
    interval: Interval | None
    drop: float | None
    drop_interval: Interval | None
    agreement: float | None
    """The median cosine with the given model's outputs."""
    samples: int
    less_is_better: bool | None = key(omit=True)
    """Of the metric; absent where more is better."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a config does not work."""

    code: str
    message: str
    hint: str | None


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is known about a trial; steps it did not reach are absent."""

    config: ConfigJSON
    step: Step | None = key(omit=True)
    """The last step it started."""
    target: str | None = key(omit=True)
    artifact: TrialArtifact | None = key(omit=True)
    stages: tuple[StageRun, ...] | None = key(omit=True)
    identity: str | None = key(omit=True)
    placement: Placement | None = key(omit=True)
    ms: Mapping[str, float] | None = key(omit=True)
    """Median of the probe by clock."""
    verdict_s: float | None = key(omit=True)
    """Expected time of a verdict."""
    environment: Environment | None = key(omit=True)
    """The baseline's, for all."""
    accuracy: Accuracy | None = key(omit=True)
    failure: Failure | None = key(omit=True)
    reused_from: str | None = key(omit=True)


@dataclass(frozen=True, kw_only=True)
class FreshRounds:
    """The measurement of a confirmation; empty for counted values."""

    measurement: str | None = key(omit=True)
    """The name of its samples in the folder of the search."""
    times: ArmTimes | None = key(omit=True)
    memory: ArmMemory | None = key(omit=True)
    """Where memory is what is searched for."""


@dataclass(frozen=True)
class Trial:
    """A choice that was tried."""

    id: str
    choice: Choice
    outcome: TrialOutcome
    reason: str
    """Why it ended early, or empty."""
    option: Option | None
    """The knob and level it was tried for, if for one."""
    same_as: str | None
    series: Series | None
    facts: Facts
    because: tuple[Note, ...]
    """Notes on its levels."""
    seconds: float

    @property
    def label(self) -> str:
        return label(self.choice)

    @property
    def works(self) -> bool:
        return self.outcome in ("baseline", "measured", "same")


@dataclass(frozen=True)
class Yardstick:
    """How to judge series: the protocol, and A/A rounds whose variance is pooled."""

    protocol: CompareProtocol
    calibration: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def estimate(self, series: Series, metric: Metric | None = None) -> Estimate | None:
        """Mean and standard error on a clock; None with too few values."""
        metric = metric or series.metric
        values = series.values[metric]
        if metric == EXACT:
            return Estimate(values[0], 0.0, 1, 1, calibrated=False)
        return estimate(values, self.calibration.get(metric, ()), self.protocol.lent_df)

    def verdict(self, series: Series) -> Verdict:
        """The verdict of the rounds so far against the baseline."""
        if series.metric == "exact":
            gain = gain_pct(series.deciding[0])
            if gain >= self.protocol.keep_pct:
                return Verdict("KEEP", f"{gain:.1f} % less, counted", gain_pct=gain, interval_pct=(gain, gain))
            reason = "no less than the baseline, counted"
            return Verdict("DISCARD", reason, gain_pct=gain, interval_pct=(gain, gain))
        metric: Clock = series.metric
        if series.disturbed is not None:
            return Verdict("INCONCLUSIVE", series.disturbed, rounds=len(series.deciding), metric=metric)
        judged = judge(
            series.deciding,
            calibration=self.calibration.get(series.metric, ()),
            other=() if metric == "memory" else series.values["wall" if metric == "cpu" else "cpu"],
            protocol=self.protocol,
            metric=metric,
            last=True,
        )
        assert judged is not None
        return _settle(judged)

    def verdict_of(self, trial: Trial) -> Verdict:
        """The verdict on a measured trial."""
        assert trial.series is not None
        return self.verdict(trial.series)


def _settle(verdict: Verdict) -> Verdict:
    """A trial whose whole interval is slower is discarded: a search has no use for how much slower exactly.

    Where the other clock shows the opposite, nothing is decided.
    """
    if verdict.interval_pct is None or verdict.gain_pct is None or verdict.interval_pct[1] >= 0:
        return verdict
    other = verdict.other_clock.interval_pct
    if verdict.verdict not in ("DISCARD", "INCONCLUSIVE") or (other is not None and other[0] > 0):
        return verdict
    worse, what = ("larger", "memory") if verdict.metric == "memory" else ("slower", "time")
    rounds = f"{verdict.rounds} round{'s' if verdict.rounds != 1 else ''}"
    reason = f"{worse}: {-verdict.gain_pct:.0f} % more {what}, discarded after {rounds}"
    return replace(verdict, verdict="DISCARD", reason=reason)

"""What became of a choice: how far it got, and the rounds it was measured in against the baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NotRequired, TypedDict

from winml.modelkit.core.errors import DataError
from winml.modelkit.core.verdict import Clock, Verdict, gain_pct
from winml.modelkit.measuring.judge import Estimate, estimate, judge
from winml.modelkit.measuring.protocols import CompareProtocol
from winml.modelkit.search.space import Choice, label

Outcome = Literal["baseline", "measured", "same", "failed", "inaccurate", "slower"]
Metric = Literal["cpu", "wall", "exact"]

EXACT: Metric = "exact"
"""The metric of what is counted and not timed: one value, no spread."""


@dataclass(frozen=True)
class Series:
    """Round values log(baseline / trial) on each clock, and the clock that decides."""

    metric: Metric
    values: Mapping[str, tuple[float, ...]]
    disturbed: str | None = None
    """Why these rounds decide nothing."""
    medians_ms: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)
    """Per clock and round: the median of the baseline and of the trial, where times were measured."""

    @property
    def deciding(self) -> tuple[float, ...]:
        return self.values[self.metric]

    def joined(self, more: Series) -> Series:
        """With more rounds of the same trial."""
        if set(more.values) != set(self.values):
            raise DataError("rounds of one trial were taken by different clocks")
        values = {clock: (*taken, *more.values[clock]) for clock, taken in self.values.items()}
        clocks = {*self.medians_ms, *more.medians_ms}
        medians = {c: (*self.medians_ms.get(c, ()), *more.medians_ms.get(c, ())) for c in clocks}
        return replace(self, values=values, disturbed=more.disturbed or self.disturbed, medians_ms=medians)

    def to_json(self) -> dict[str, Any]:
        values = {clock: list(taken) for clock, taken in self.values.items()}
        medians = {clock: [list(pair) for pair in taken] for clock, taken in self.medians_ms.items()}
        return {"metric": self.metric, "values": values, "disturbed": self.disturbed, "medians_ms": medians}


class SeriesForm(TypedDict):
    """A series in the journal."""

    metric: Metric
    values: dict[str, list[float]]
    disturbed: str | None
    medians_ms: NotRequired[dict[str, list[tuple[float, float]]]]


def series_from_json(value: Mapping[str, Any]) -> Series:
    if value["metric"] not in value["values"]:
        raise DataError(f"a series has no values on the clock that decides (`{value['metric']}`)")
    medians = value.get("medians_ms", {})  # a journal of an earlier version has none
    return Series(
        value["metric"],
        {c: tuple(taken) for c, taken in value["values"].items()},
        value["disturbed"],
        {c: tuple((pair[0], pair[1]) for pair in taken) for c, taken in medians.items()},
    )


def exact(value: float) -> Series:
    """A value without spread."""
    return Series(EXACT, {EXACT: (value,)})


@dataclass(frozen=True)
class Trial:
    """A choice that was tried."""

    id: str
    choice: Choice
    outcome: Outcome
    reason: str
    """Why it got no further, or empty."""
    option: tuple[str, str] | None = None
    """The knob and level it was tried for, when it was tried for one."""
    same_as: str | None = None
    series: Series | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What else is known: artifact, placement, accuracy, warnings."""
    because: tuple[Mapping[str, Any], ...] = ()
    """What spoke for trying it."""
    seconds: float = 0.0

    @property
    def label(self) -> str:
        return label(self.choice)

    @property
    def works(self) -> bool:
        return self.outcome in ("baseline", "measured", "same")

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "choice": [list(pair) for pair in self.choice],
            "outcome": self.outcome,
            "reason": self.reason,
            "option": None if self.option is None else list(self.option),
            "same_as": self.same_as,
            "series": None if self.series is None else self.series.to_json(),
            "facts": dict(self.facts),
            "because": [dict(reason) for reason in self.because],
            "seconds": self.seconds,
        }


class _Artifact(TypedDict):
    digest: str
    bytes: int


class _Accuracy(TypedDict):
    value: float | None


class _Environment(TypedDict):
    machine: dict[str, Any]


class _Facts(TypedDict):
    config: dict[str, Any]
    target: NotRequired[str | None]
    step: NotRequired[str | None]
    identity: NotRequired[str]
    artifact: NotRequired[_Artifact | None]
    accuracy: NotRequired[_Accuracy | None]
    ms: NotRequired[dict[str, float] | None]
    verdict_s: NotRequired[float]
    environment: NotRequired[_Environment]
    placement: NotRequired[dict[str, Any] | None]


class TrialForm(TypedDict):
    """A trial in the journal."""

    id: str
    choice: list[tuple[str, str]]
    outcome: Outcome
    reason: str
    option: tuple[str, str] | None
    same_as: str | None
    series: SeriesForm | None
    facts: _Facts
    because: list[dict[str, Any]]
    seconds: float


def trial_from_json(value: Mapping[str, Any]) -> Trial:
    option, series = value["option"], value["series"]
    return Trial(
        id=value["id"],
        choice=tuple((knob, level) for knob, level in value["choice"]),
        outcome=value["outcome"],
        reason=value["reason"],
        option=None if option is None else (option[0], option[1]),
        same_as=value["same_as"],
        series=None if series is None else series_from_json(series),
        facts=value["facts"],
        because=tuple(value["because"]),
        seconds=value["seconds"],
    )


def _clock(metric: Metric) -> Clock:
    return "cpu" if metric == "cpu" else "wall"


def _other(metric: Metric) -> Clock:
    return "wall" if metric == "cpu" else "cpu"


@dataclass(frozen=True)
class Yardstick:
    """How series become numbers with a spread: the protocol, and A/A rounds that lend their variance."""

    protocol: CompareProtocol
    calibration: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def estimate(self, series: Series, metric: Metric | None = None) -> Estimate | None:
        """Mean and standard error on a clock; None when there is too little to know a spread."""
        metric = metric or series.metric
        values = series.values[metric]
        if metric == EXACT:
            return Estimate(values[0], 0.0, 1, 1, calibrated=False)
        return estimate(values, self.calibration.get(metric, ()), self.protocol.lent_df)

    def verdict(self, series: Series) -> Verdict:
        """What the rounds so far say of the trial against the baseline."""
        if series.metric == EXACT:
            return self._counted(series.deciding[0])
        metric = _clock(series.metric)
        if series.disturbed is not None:
            return Verdict("INCONCLUSIVE", series.disturbed, rounds=len(series.deciding), metric=metric)
        judged = judge(
            series.deciding,
            calibration=self.calibration.get(series.metric, ()),
            other=series.values[_other(series.metric)],
            protocol=self.protocol,
            metric=metric,
            last=True,
        )
        assert judged is not None
        return judged

    def verdict_of(self, trial: Trial) -> Verdict:
        """The verdict on a measured trial."""
        assert trial.series is not None
        return self.verdict(trial.series)

    def _counted(self, value: float) -> Verdict:
        gain = gain_pct(value)
        if gain >= self.protocol.keep_pct:
            return Verdict("KEEP", f"{gain:.1f} % less, counted", gain_pct=gain, interval_pct=(gain, gain))
        reason = "no less than the baseline, counted"
        return Verdict("DISCARD", reason, gain_pct=gain, interval_pct=(gain, gain))

"""The outcome of a comparison: ranking, gate, failures. Shared by measuring and judging again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.distance import Distance
from winml.modelkit.core.environment import Environment
from winml.modelkit.core.errors import CheckFailed, DataError, ModelkitError, PartlyDone, RunFailedError
from winml.modelkit.core.latency import ArmMemory, ArmTimes, Spread
from winml.modelkit.core.measurement import NS_PER_MS, Arm, Measurement, PairProtocol, Round
from winml.modelkit.core.placement import Placement
from winml.modelkit.core.result import CommandResult
from winml.modelkit.core.statistics import median
from winml.modelkit.core.values import in_json, key
from winml.modelkit.core.verdict import Clock, Verdict, speedup
from winml.modelkit.graph.sizes import Size
from winml.modelkit.measuring.calibration import Calibration, ClockValues
from winml.modelkit.measuring.judge import Gate
from winml.modelkit.measuring.reports import Probe
from winml.modelkit.measuring.summary import arm_memory, arm_times


@dataclass(frozen=True, kw_only=True)
class ComparedArm:
    label: str
    arm: Arm = key(inline=True)
    fingerprint: str | None = None
    placement: Placement | None = None


@dataclass(frozen=True, kw_only=True)
class Parity:
    """How far the outputs of a candidate are from the base's."""

    outputs: tuple[Distance, ...]
    min_cosine: float | None
    max_relative: float | None
    within_tolerance: bool


@dataclass(frozen=True, kw_only=True)
class Confirmation:
    """A second measurement on fresh rounds."""

    first: Verdict
    verdict: Verdict
    measurement: Measurement
    calibration: str | None


@dataclass(frozen=True, kw_only=True)
class Sentinel:
    """What the machine did while the arms were measured."""

    base_drift_pct: float | None
    load_max: float | None
    pressure_max_pct: float | None
    priority: str | None
    disturbed: bool = False


@dataclass(frozen=True, kw_only=True)
class Candidate(ComparedArm):
    verdict: Verdict
    times: ArmTimes | None = None
    """Of the rounds whose gain is reported, or of a probe."""
    memory: ArmMemory | None = key(omit=True)
    """Where memory is what is compared."""
    parity: Parity | None = None
    environment: Environment | None = None
    gate: Gate | None = None
    measurement: Measurement | None = None
    calibration: str | None = None
    """The name of its A/A rounds in `calibrations`."""
    confirmation: Confirmation | None = None
    tests: int = 1
    """How many candidates compete."""
    conditions: Sentinel | None = None
    warnings: tuple[str, ...] = ()

    @property
    @in_json
    def speedup(self) -> float | None:
        """How many times as fast it is as the base."""
        return None if self.verdict.gain_pct is None else speedup(self.verdict.gain_pct)

    @property
    @in_json
    def speedup_interval(self) -> tuple[float, float] | None:
        interval = self.verdict.interval_pct
        return None if interval is None else (speedup(interval[0]), speedup(interval[1]))

    def with_times(self) -> Candidate:
        """With the milliseconds of its rounds where there are any, or the memory where that is compared."""
        taken = (self.confirmation or self).measurement
        if taken is None:
            return self
        metric = pair_protocol(taken).metric
        if metric == "memory":
            return replace(self, memory=arm_memory(taken))
        return replace(self, times=arm_times(taken, metric))


@dataclass(frozen=True, kw_only=True)
class CompareInputs:
    sizes: Mapping[str, Size] = field(default_factory=dict)
    """Sizes of open dimensions, and where each comes from."""


@dataclass(frozen=True, kw_only=True, repr=False)
class CompareResult(CommandResult):
    """Candidates against a base."""

    schema: Literal["winml/compare/1"] = "winml/compare/1"
    ok: Literal[True] = True
    base: ComparedArm
    candidates: tuple[Candidate, ...]
    calibrations: Mapping[str, Calibration]
    fail_if_slower_pct: float | None
    environment: Environment
    inputs: CompareInputs = field(default_factory=CompareInputs)
    warnings: tuple[str, ...]

    @property
    @in_json
    def ranking(self) -> tuple[str, ...]:
        """Labels, kept candidates first, then by gain."""
        known = [(c, c.verdict.gain_pct) for c in self.candidates if c.verdict.gain_pct is not None]
        ranked = sorted(known, key=lambda one: (not one[0].verdict.kept, -one[1]))
        return tuple(c.label for c, _ in ranked)

    def calibration_values(self, calibration: str | None) -> ClockValues:
        """Values of the A/A rounds that a measurement used."""
        return ClockValues() if calibration is None else self.calibrations[calibration].values


@dataclass(frozen=True, kw_only=True)
class PartialCompare:
    """The result so far of a comparison that failed or was interrupted."""

    result: CompareResult = key(inline=True)
    unfinished_rounds: tuple[Round, ...]

    @property
    def has_samples(self) -> bool:
        return bool(self.unfinished_rounds or self.result.candidates)


def pair_protocol(taken: Measurement) -> PairProtocol:
    """How two arms were measured against each other."""
    if not isinstance(taken.protocol, PairProtocol):
        raise DataError("`measurement.protocol` is that of a single arm")
    return taken.protocol


def probe_times(base: Probe, probe: Probe, metric: Clock) -> ArmTimes:
    """Times of two arms that were only probed."""
    reason = f"a probe of {len(probe.on(metric))} runs"
    base_ms, candidate_ms = (
        Spread(median=median(side.on(metric)) / NS_PER_MS, interval=None, interval_reason=reason, rounds=0)
        for side in (base, probe)
    )
    return ArmTimes(metric=metric, base_ms=base_ms, candidate_ms=candidate_ms)


def gate_of_probe(limit_pct: float | None, verdict: Verdict) -> Gate | None:
    """What the gate says of a verdict that needed no measuring."""
    if limit_pct is None or verdict.gain_pct is None:
        return None
    return "fail" if verdict.gain_pct < -limit_pct else "pass"


def raise_for(result: CompareResult) -> None:
    """The gate's answer and failed candidates as errors, with the whole result."""
    _raise_gate(result)
    failed = [c for c in result.candidates if c.verdict.verdict == "FAILED"]
    if failed:
        words = "; ".join(f"`{c.label}`: {c.verdict.reason}" for c in failed)
        kind: type[ModelkitError] = RunFailedError if len(failed) == len(result.candidates) else PartlyDone
        raise kind(words, result=result)


def _raise_gate(result: CompareResult) -> None:
    limit = result.fail_if_slower_pct
    if limit is None:
        return
    slower = [c for c in result.candidates if c.gate == "fail"]
    if slower:
        words = ", ".join(f"`{c.label}` by {-(c.verdict.gain_pct or 0.0):.1f} %" for c in slower)
        raise CheckFailed(f"slower than the base by more than {limit:g} %: {words}", result=result)
    unknown = [c.label for c in result.candidates if c.gate == "unknown"]
    if unknown:
        raise RunFailedError(
            f"cannot tell whether {', '.join(unknown)} is slower by more than {limit:g} %",
            hint="use a quieter machine, fewer threads or a larger limit",
            result=result,
        )

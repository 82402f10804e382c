"""Summaries of a measurement: latency in ms with its interval, throughput, one line per session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.latency import ArmMemory, ArmTimes, CPUTime, Interval, Latency, Spread
from winml.modelkit.core.measurement import NS_PER_MS, Measurement, Round
from winml.modelkit.core.statistics import log_t_interval, mean, median, percentile, std
from winml.modelkit.core.verdict import Clock
from winml.modelkit.session.report import SessionReport

MIN_SESSIONS = 3
_STOOD_STILL = "the clock is too coarse to see a run"


def _interval(values: Sequence[float], no_ratio: str = _STOOD_STILL) -> tuple[Interval | None, str | None]:
    if len(values) < MIN_SESSIONS:
        return None, f"an interval needs at least {MIN_SESSIONS} sessions but there are {len(values)}"
    if min(values) <= 0:
        return None, no_ratio
    low, high = log_t_interval(values)
    return Interval(low=low, high=high, level=0.95), None


def _distribution(samples_ns: Sequence[float], medians_ms: Sequence[float]) -> dict[str, Any]:
    ordered = sorted(ns / NS_PER_MS for ns in samples_ns)
    interval, reason = _interval(medians_ms)
    return {
        "mean": mean(ordered),
        "min": ordered[0],
        "max": ordered[-1],
        "p50": percentile(ordered, 0.50),
        "p90": percentile(ordered, 0.90),
        "p95": percentile(ordered, 0.95),
        "p99": percentile(ordered, 0.99),
        "std": std(ordered),
        "interval": interval,
        "interval_reason": reason,
    }


def spread_of(values: Sequence[float], no_ratio: str = _STOOD_STILL) -> Spread:
    """The median of one value per round, and a t interval on their log; `no_ratio` says why one may be zero."""
    interval, reason = _interval(values, no_ratio)
    middle = median(values) if values else None
    return Spread(median=middle, interval=interval, interval_reason=reason, rounds=len(values))


def latency_of(sessions: Sequence[Sequence[int]]) -> Latency:
    """Times of all runs from the nanoseconds of every session."""
    medians_ms = [median(samples) / NS_PER_MS for samples in sessions]
    return Latency(**_distribution([ns for samples in sessions for ns in samples], medians_ms))


def _medians_ms(rounds: Sequence[Round], clock: Clock) -> list[float]:
    return [median(r.cpu_ns if clock == "cpu" else r.wall_ns) / NS_PER_MS for r in rounds]


def arm_medians_ms(measurement: Measurement, clock: Clock) -> tuple[list[float], list[float]]:
    """Round medians of the base and of the candidate."""
    rounds = [r for r in measurement.rounds if r.wall_ns]
    base, candidate = (_medians_ms([r for r in rounds if r.arm == arm], clock) for arm in (0, 1))
    return base, candidate


def arm_memory(measurement: Measurement) -> ArmMemory:
    """The peak memory of the processes of each of two arms."""
    peaks: tuple[list[float], list[float]] = ([], [])
    for taken in measurement.rounds:
        peaks[taken.arm].extend(map(float, taken.on("memory")))
    base, candidate = map(spread_of, peaks)
    return ArmMemory(base_bytes=base, candidate_bytes=candidate)


def arm_times(measurement: Measurement, clock: Clock) -> ArmTimes:
    """What a run of each of two arms took.

    The interval of an arm holds what all rounds of it have in common with the machine; how the arms differ is shown by
    the gain, whose rounds share their hours.
    """
    base, candidate = arm_medians_ms(measurement, clock)
    return ArmTimes(metric=clock, base_ms=spread_of(base), candidate_ms=spread_of(candidate))


def latency(rounds: Sequence[Round]) -> Latency:
    """Times of all runs on the wall clock."""
    return latency_of([r.wall_ns for r in rounds])


def cpu_time(rounds: Sequence[Round]) -> CPUTime:
    """CPU time of a run; by session, its total divided by its runs, where the clock is too coarse for one."""
    if all(map(_sees_runs, rounds)):
        return CPUTime(**_distribution([ns for r in rounds for ns in r.cpu_ns], _medians_ms(rounds, "cpu")), per="run")
    means = [_cpu_p50_ms(r) for r in rounds]
    return CPUTime(**_distribution([round(m * NS_PER_MS) for m in means], means), per="session")


def _sees_runs(taken: Round | SessionReport) -> bool:
    """Whether the CPU clock moved in every run; that of Windows moves in steps of 15.6 ms."""
    return min(taken.cpu_ns) > 0


def _cpu_p50_ms(taken: Round | SessionReport) -> float:
    """CPU time of the middle run, or of the mean one where the clock does not see a run."""
    return (median(taken.cpu_ns) if _sees_runs(taken) else mean(taken.cpu_ns)) / NS_PER_MS


@dataclass(frozen=True, kw_only=True)
class SessionSummary:
    """One process."""

    process: int
    iterations: int
    p50_ms: float
    cpu_p50_ms: float
    open_ms: float
    first_run_ms: float | None
    load_before: float | None
    load_after: float | None


def summarize_session(process: int, report: SessionReport) -> SessionSummary:
    first_ns = report.first_run_ns
    return SessionSummary(
        process=process,
        iterations=len(report.wall_ns),
        p50_ms=median(report.wall_ns) / NS_PER_MS,
        cpu_p50_ms=_cpu_p50_ms(report),
        open_ms=report.open_ns / NS_PER_MS,
        first_run_ms=None if first_ns is None else first_ns / NS_PER_MS,
        load_before=report.load_before,
        load_after=report.load_after,
    )


@dataclass(frozen=True, kw_only=True)
class Throughput:
    runs_per_s: float
    batch: int | None
    samples_per_s: float | None


def throughput(rounds: Sequence[Round], batch: int | None) -> Throughput:
    """Runs per second of the timed loop; samples per second where the batch is known."""
    walls = [ns for r in rounds for ns in r.wall_ns]
    runs_per_s = len(walls) / (sum(walls) / 1e9)
    return Throughput(runs_per_s=runs_per_s, batch=batch, samples_per_s=runs_per_s * batch if batch else None)

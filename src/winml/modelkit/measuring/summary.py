"""Summaries of a measurement: latency in ms with its interval, throughput, one line per session."""

from __future__ import annotations

from typing import Any

from winml.modelkit.core.measurement import NS_PER_MS, Measurement, Round
from winml.modelkit.core.statistics import log_t_interval, mean, median, percentile, std
from winml.modelkit.core.verdict import Clock

MIN_SESSIONS = 3


def _interval(medians_ms: list[float]) -> tuple[dict[str, Any] | None, str | None]:
    if len(medians_ms) < MIN_SESSIONS:
        return None, f"an interval needs at least {MIN_SESSIONS} sessions but there are {len(medians_ms)}"
    if min(medians_ms) <= 0:
        return None, "the clock is too coarse to see a run"
    low, high = log_t_interval(medians_ms)
    return {"low": low, "high": high, "level": 0.95}, None


def distribution_ms(samples_ns: list[int], medians_ms: list[float]) -> dict[str, Any]:
    """Percentiles of all samples; the interval is a t interval on the log of session medians."""
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


def spread_ms(medians_ms: list[float]) -> dict[str, Any]:
    """The median of round medians, and a t interval on their log where there are enough."""
    interval, reason = _interval(medians_ms)
    middle = median(medians_ms) if medians_ms else None
    return {"median": middle, "interval": interval, "interval_reason": reason, "rounds": len(medians_ms)}


def arm_medians_ms(measurement: Measurement, clock: Clock) -> tuple[list[float], list[float]]:
    """Round medians of the base and of the candidate."""
    rounds = [r for r in measurement.rounds if r.wall_ns]
    base, candidate = (_medians_ms(tuple(r for r in rounds if r.arm == arm), f"{clock}_ns") for arm in (0, 1))
    return base, candidate


def arm_times(measurement: Measurement, clock: Clock) -> dict[str, Any]:
    """What a run of each of two arms took, in ms on one clock.

    The interval of an arm holds what all rounds of it have in common with the machine; how the arms differ is told by
    the gain, whose rounds share their hours.
    """
    base, candidate = arm_medians_ms(measurement, clock)
    return {"metric": clock, "base_ms": spread_ms(base), "candidate_ms": spread_ms(candidate)}


def _medians_ms(rounds: tuple[Round, ...], clock: str) -> list[float]:
    return [median(getattr(r, clock)) / NS_PER_MS for r in rounds]


def latency(measurement: Measurement) -> dict[str, Any]:
    """`latency_ms` on the wall clock and `cpu_ms`, the CPU time of a run over all threads."""
    rounds = measurement.rounds
    return {
        "latency_ms": distribution_ms([ns for r in rounds for ns in r.wall_ns], _medians_ms(rounds, "wall_ns")),
        "cpu_ms": _cpu_ms(rounds),
    }


def _sees_runs(taken: Round) -> bool:
    """Whether the CPU clock moved in every run; that of Windows moves in steps of 15.6 ms."""
    return min(taken.cpu_ns) > 0


def _cpu_ms(rounds: tuple[Round, ...]) -> dict[str, Any]:
    """CPU time of a run; by session, its total divided by its runs, where the clock is too coarse for one."""
    if all(map(_sees_runs, rounds)):
        samples = [ns for r in rounds for ns in r.cpu_ns]
        return {**distribution_ms(samples, _medians_ms(rounds, "cpu_ns")), "per": "run"}
    means = [_cpu_p50_ms(r) for r in rounds]
    return {**distribution_ms([round(m * NS_PER_MS) for m in means], means), "per": "session"}


def _cpu_p50_ms(taken: Round) -> float:
    """CPU time of the middle run, or of the mean one where the clock does not see a run."""
    return (median(taken.cpu_ns) if _sees_runs(taken) else mean(taken.cpu_ns)) / NS_PER_MS


def sessions(measurement: Measurement, reports: tuple[dict[str, Any], ...]) -> list[dict[str, Any]]:
    """One entry per process."""
    return [
        {
            "process": r.process,
            "iterations": len(r.wall_ns),
            "p50_ms": median(r.wall_ns) / NS_PER_MS,
            "cpu_p50_ms": _cpu_p50_ms(r),
            "open_ms": report["open_ns"] / NS_PER_MS,
            "first_run_ms": None if report["first_run_ns"] is None else report["first_run_ns"] / NS_PER_MS,
            "load_before": r.load_before,
            "load_after": r.load_after,
        }
        for r, report in zip(measurement.rounds, reports, strict=True)
    ]


def throughput(measurement: Measurement, batch: int | None) -> dict[str, Any]:
    """Runs per second of the timed loop; samples per second where the batch is known."""
    walls = [ns for r in measurement.rounds for ns in r.wall_ns]
    runs_per_s = len(walls) / (sum(walls) / 1e9)
    return {"runs_per_s": runs_per_s, "batch": batch, "samples_per_s": runs_per_s * batch if batch else None}

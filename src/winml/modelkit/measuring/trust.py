"""Reasons to distrust a measurement: load, waiting, variance, drift, sessions that disagree."""

from __future__ import annotations

from collections.abc import Sequence

from winml.modelkit.core.environment import Environment
from winml.modelkit.core.measurement import Measurement, Round
from winml.modelkit.core.statistics import median, percentile

COMPARE = "do not compare configs by these numbers"

LOAD_SHARE = 0.75
"""Load per core at which other work is likely to be in the samples."""
PRESSURE_PCT = 25.0
WAITING_SHARE = 0.15
SPREAD_SHARE = 0.5
DRIFT_SHARE = 0.1
SESSION_SHARE = 0.1
MIN_DRIFT_SAMPLES = 30


def load_warnings(environment: Environment, before: float | None) -> list[str]:
    """Other work on the machine; `before` is the load before the first session, which added our own."""
    cores = environment.machine.cores
    if before is not None and before > LOAD_SHARE * cores:
        return [f"machine load was {before:.1f} on {cores} cores; {COMPARE}"]
    pressure = environment.pressure_pct
    if pressure is not None and pressure > PRESSURE_PCT:
        return [f"programs waited for a CPU {pressure:.0f} % of the time before the run; {COMPARE}"]
    return []


def _waiting(measurement: Measurement) -> list[str]:
    """With one thread on the CPU EP wall time beyond CPU time is time spent waiting for a core."""
    arm = measurement.arms[0]
    if arm.target.ep != "cpu" or arm.session.threads != 1:
        return []
    wall = sum(sum(r.wall_ns) for r in measurement.rounds)
    cpu = sum(sum(r.cpu_ns) for r in measurement.rounds)
    share = 1 - cpu / wall if wall else 0.0
    return (
        [f"the process waited {100 * share:.0f} % of the time for a core; {COMPARE}"] if share > WAITING_SHARE else []
    )


def _spread(rounds: Sequence[Round]) -> list[str]:
    shares = []
    for r in rounds:
        ordered = sorted(r.wall_ns)
        shares.append((percentile(ordered, 0.9) - percentile(ordered, 0.1)) / percentile(ordered, 0.5))
    worst = max(shares)
    if worst <= SPREAD_SHARE:
        return []
    return [f"runs within a session spread by {100 * worst:.0f} % of the median (p10 to p90)"]


def _drift(rounds: Sequence[Round]) -> list[str]:
    drifts = []
    for r in rounds:
        third = len(r.wall_ns) // 3
        if len(r.wall_ns) >= MIN_DRIFT_SAMPLES:
            drifts.append(median(r.wall_ns[-third:]) / median(r.wall_ns[:third]) - 1)
    worst = max(drifts, key=abs, default=0.0)
    if abs(worst) <= DRIFT_SHARE:
        return []
    change = f"{100 * abs(worst):.0f} % {'slower' if worst > 0 else 'faster'}"
    return [f"runs became {change} within a session; raise `--warmup` or wait for the machine to cool"]


def session_warnings(medians: Sequence[float]) -> list[str]:
    """Sessions that disagree."""
    spread = max(medians) / min(medians) - 1
    return [f"session medians differ by {100 * spread:.0f} %; {COMPARE}"] if spread > SESSION_SHARE else []


def warnings(measurement: Measurement) -> list[str]:
    """Warnings for the user; empty when there is no reason to distrust the measurement."""
    rounds = [r for r in measurement.rounds if r.wall_ns]
    if not rounds:
        return []
    found = [
        *load_warnings(measurement.environment, measurement.rounds[0].load_before),
        *_waiting(measurement),
        *_spread(rounds),
        *_drift(rounds),
        *session_warnings([median(r.wall_ns) for r in rounds]),
    ]
    samples = sum(len(r.wall_ns) for r in rounds)
    if samples < 20:
        found.append(f"only {samples} runs: the higher percentiles are unreliable")
    return found

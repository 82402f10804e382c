"""Times of runs in ms, with what is known of their spread."""

from __future__ import annotations

from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.verdict import Clock


@dataclass(frozen=True, kw_only=True)
class Interval:
    low: float
    high: float
    level: float


@dataclass(frozen=True, kw_only=True)
class Latency:
    """Percentiles over all samples; the interval is a t interval on the log of session medians."""

    mean: float
    min: float
    max: float
    p50: float
    p90: float
    p95: float
    p99: float
    std: float | None
    interval: Interval | None
    interval_reason: str | None
    """Why there is no interval."""


@dataclass(frozen=True, kw_only=True)
class CPUTime(Latency):
    """CPU time of a run over all threads."""

    per: Literal["run", "session"]
    """`session`: the clock is too coarse for one run; totals of sessions are divided by their runs."""


@dataclass(frozen=True, kw_only=True)
class Spread:
    """The median of round medians, and a t interval on their log where there are enough."""

    median: float | None
    interval: Interval | None
    interval_reason: str | None
    rounds: int


@dataclass(frozen=True, kw_only=True)
class ArmMemory:
    """The peak memory of processes that ran each of two arms."""

    base_bytes: Spread
    candidate_bytes: Spread


@dataclass(frozen=True, kw_only=True)
class ArmTimes:
    """What a run of each of two arms took, in ms on one clock."""

    metric: Clock
    base_ms: Spread
    candidate_ms: Spread

"""The times of the runs of a perf() block, warm-up apart."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.measurement import NS_PER_MS
from winml.modelkit.core.statistics import mean, percentile
from winml.modelkit.session.monitor.ep_monitor import EPMonitor


class PerfStats:
    """Wall and CPU nanoseconds of every run; the first `warmup` runs are not part of the samples."""

    def __init__(self, warmup: int = 0) -> None:
        if warmup < 0:
            raise ValueError(f"warmup must be at least 0 but got {warmup}")
        self.warmup = warmup
        self._wall: list[int] = []
        self._cpu: list[int] = []

    def time_call(self, call: Callable[[], Any]) -> Callable[[], None]:
        """`call`, with its times recorded; a call that raises is not."""
        wall_clock, cpu_clock = time.perf_counter_ns, time.process_time_ns
        wall_ns, cpu_ns = self._wall, self._cpu

        def run() -> None:
            cpu_before = cpu_clock()
            before = wall_clock()
            call()
            after = wall_clock()
            cpu_ns.append(cpu_clock() - cpu_before)
            wall_ns.append(after - before)

        return run

    @property
    def runs(self) -> int:
        """Runs so far, warm-up included."""
        return len(self._wall)

    @property
    def warmup_runs(self) -> int:
        return min(self.warmup, self.runs)

    @property
    def warmup_ns(self) -> tuple[int, ...]:
        return tuple(self._wall[: self.warmup])

    @property
    def wall_ns(self) -> tuple[int, ...]:
        return tuple(self._wall[self.warmup :])

    @property
    def cpu_ns(self) -> tuple[int, ...]:
        return tuple(self._cpu[self.warmup :])

    @property
    def mean_ms(self) -> float | None:
        """None before the first run after warm-up."""
        return mean(self.wall_ns) / NS_PER_MS if self.wall_ns else None

    @property
    def p50_ms(self) -> float | None:
        return percentile(sorted(self.wall_ns), 0.5) / NS_PER_MS if self.wall_ns else None

    @property
    def p90_ms(self) -> float | None:
        return percentile(sorted(self.wall_ns), 0.9) / NS_PER_MS if self.wall_ns else None


@dataclass(frozen=True)
class PerfContext:
    """What a perf() block yields."""

    stats: PerfStats
    monitor: EPMonitor

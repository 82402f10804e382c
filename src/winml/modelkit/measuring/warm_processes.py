"""What comparisons and searches share: warm processes to try arms in, the plan for two arms, their calibration."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from winml.modelkit.core.environment import Environment
from winml.modelkit.core.events import OnEvent
from winml.modelkit.core.measurement import CompareProtocol
from winml.modelkit.core.statistics import median
from winml.modelkit.core.values import to_json
from winml.modelkit.measuring import calibration as calibrations
from winml.modelkit.measuring import rounds as bench
from winml.modelkit.measuring.calibration import Calibration
from winml.modelkit.measuring.events import CalibrationRoundDone, CalibrationStarted
from winml.modelkit.measuring.protocols import PROTOCOLS
from winml.modelkit.measuring.reports import Probe
from winml.modelkit.measuring.rounds import PRELOAD, ArmSpec, ComparePlan
from winml.modelkit.worker import priority
from winml.modelkit.worker.client import Worker

HANG_S = 10.0
HANG_FACTOR = 20.0
PROBE_FACTOR = 3.0


def huge_pages() -> dict[str, str] | None:
    """The environment for measuring processes: glibc's malloc asks for huge pages, for both arms alike.

    Which small pages a session gets makes it up to 2 % faster or slower for its whole life; with huge pages rounds of a
    20 MB model vary by 0.4 instead of 2 %. None where there is no such setting or the user has made one.
    """
    if sys.platform != "linux" or "GLIBC_TUNABLES" in os.environ:
        return None
    return {**os.environ, "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


def start(python: str | None) -> Worker:
    """A process to measure in."""
    return Worker(preload=PRELOAD, python=python, env=huge_pages())


def start_ordinary(python: str | None) -> Worker:
    """A process with pages of the ordinary size, whose memory is that of a user's."""
    return Worker(preload=PRELOAD, python=python)


class Probers:
    """Warm processes at ordinary priority to try arms in, one per environment."""

    def __init__(self) -> None:
        # Started now, so that it imports the runtime while the graphs are read.
        self._workers: dict[str | None, Worker] = {None: start(None)}

    def of(self, python: str | None) -> Worker:
        """The process of an environment; a new one when an arm has taken the last one down."""
        worker = self._workers.get(python)
        if worker is not None and not worker.alive:
            worker.close()
            worker = None
        if worker is None:
            worker = self._workers[python] = start(python)
        return worker

    def probe(self, spec: ArmSpec, saved: Path, timeout_s: float) -> Probe:
        return bench.probe_arm(self.of(spec.python), spec, saved, timeout_s=timeout_s)

    def close(self) -> None:
        """End them: an idle process with a runtime in it is still a process on the machine that is measured."""
        for worker in self._workers.values():
            worker.close()
        self._workers.clear()


@contextlib.contextmanager
def watching(wanted: bool) -> Iterator[bool]:
    """This process outranks the ones it measures, so that it can end them; whether that was permitted."""
    raised = priority.raise_priority(priority.WATCHING) if wanted else None
    try:
        yield raised is not None
    finally:
        if raised is not None:
            priority.lower_priority()


def hang_limit_s(base: Probe, base_probe_s: float) -> float:
    """How long a probe of a candidate may take before it counts as hanging."""
    return max(HANG_S, HANG_FACTOR * sum(base.wall_ns) / 1e9, PROBE_FACTOR * base_probe_s)


def plan_for(
    base: ArmSpec,
    candidate: ArmSpec,
    probes: tuple[Probe, Probe],
    *,
    protocol: CompareProtocol | None,
    raise_priority: bool,
    timeout_s: float,
    max_seconds: float,
    seed: int,
    tests: int = 1,
    fail_if_slower_pct: float | None = None,
) -> ComparePlan:
    """How two arms are measured against each other, from what probes of both showed."""
    mode = bench.choose_mode(base, candidate)
    devices = {base.arm.target.device, candidate.arm.target.device}
    slowest = next(d for d in ("npu", "gpu", "cpu") if d in devices)
    run_s = median(probes[0].wall_ns) / 1e9
    return ComparePlan(
        mode=mode,
        metric=bench.choose_metric(base, candidate, mode, probes),
        protocol=protocol or PROTOCOLS[slowest],
        raise_priority=raise_priority,
        round_timeout_s=max(timeout_s, 200 * run_s),
        run_s=run_s,
        max_seconds=max_seconds,
        seed=seed,
        tests=tests,
        fail_if_slower_pct=fail_if_slower_pct,
    )


def alive_together(base: ArmSpec, candidate: ArmSpec, plan: ComparePlan) -> tuple[ArmSpec, ArmSpec]:
    """The arms as they are opened: idle threads sleep in both when both are alive at the same time."""
    if plan.mode == "turns":
        return base, candidate
    return bench.without_spinning(base), bench.without_spinning(candidate)


def find_calibration(
    base: ArmSpec,
    plan: ComparePlan,
    *,
    graph: str,
    environment: Environment,
    on_event: OnEvent,
    recalibrate: bool = False,
) -> tuple[str, Callable[[], Calibration]]:
    """The name of the base's A/A rounds in the mode of a plan, and a function that loads or measures them."""
    name = calibrations.key(
        graph=graph,
        arm=base.arm,
        inputs=base.inputs,
        plan={
            **to_json(plan.describe()),
            "seed": None,
            "raised": plan.raise_priority,
            "huge_pages": huge_pages() is not None,
        },
        environment=environment,
    )

    def make() -> Calibration:
        started = time.monotonic()
        on_event(CalibrationStarted(plan.protocol.calibration_rounds))
        with watching(plan.raise_priority) as raised:
            taken = bench.measure(
                (base, base),
                replace(plan, raise_priority=raised),
                rounds=plan.protocol.calibration_rounds,
                start=start,
                on_round=lambda p: on_event(CalibrationRoundDone(p.count)),
                environment=environment,
            )
        seconds = time.monotonic() - started
        return Calibration(values=bench.calibration_values(taken), seconds=seconds, cached=False)

    return name, lambda: calibrations.recall(name, make, recalibrate=recalibrate)

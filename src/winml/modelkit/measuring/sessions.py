"""Measures one arm in several fresh processes, one after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import Interrupted, ModelkitError
from winml.modelkit.core.events import Event, OnEvent
from winml.modelkit.core.measurement import Arm, Measurement, NotMeasured, Round, SessionsProtocol
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import read
from winml.modelkit.graph.input_settings import InputSettings
from winml.modelkit.session.arm import MeasureArguments, Tracing, arm_arguments
from winml.modelkit.session.report import SessionEvent, SessionReport

T = TypeVar("T")

OPERATION = "session.measure"
_STOP_WAIT_S = 2.0


class Process(Protocol):
    """The part of a worker that measuring needs."""

    @property
    def pid(self) -> int: ...
    def ask(
        self,
        form: type[T],
        op: str,
        args: object,
        *,
        timeout_s: float | None,
        events: Any,
        on_event: Callable[[Any], None] | None,
        what: str | None,
    ) -> T: ...
    def stop(self, *, timeout_s: float) -> Any: ...
    def close(self) -> None: ...


MANY, FEW = (100, 10, 3), (3, 1, 1)
"""Timed runs, untimed runs before them and sessions: on a device, and on a simulator."""


@dataclass(frozen=True)
class AskedProtocol:
    """How often and for how long an arm is run; what is None is chosen for the target."""

    iterations: int | None = None
    warmup: int | None = None
    sessions: int | None = None
    cool_down_s: float = 0.0
    duration_s: float | None = None
    timeout_s: float | None = None

    def on(self, target: Target) -> PerfProtocol:
        """The protocol with every number: few runs where times are a simulator's, which say nothing of a device."""
        iterations, warmup, sessions = FEW if target.simulated else MANY
        return PerfProtocol(
            iterations=iterations if self.iterations is None else self.iterations,
            warmup=warmup if self.warmup is None else self.warmup,
            sessions=sessions if self.sessions is None else self.sessions,
            cool_down_s=self.cool_down_s,
            duration_s=self.duration_s,
            timeout_s=self.timeout_s,
        )


@dataclass(frozen=True)
class PerfProtocol:
    """How often and for how long an arm is run on its target."""

    iterations: int = 100
    warmup: int = 10
    sessions: int = 3
    cool_down_s: float = 0.0
    duration_s: float | None = None
    timeout_s: float | None = None

    def describe(self) -> SessionsProtocol:
        """What a measurement says of it."""
        return SessionsProtocol(
            iterations=None if self.duration_s is not None else self.iterations,
            duration_s=self.duration_s,
            warmup=self.warmup,
            sessions=self.sessions,
            cool_down_s=self.cool_down_s,
            timeout_s=self.timeout_s,
        )


@dataclass(frozen=True)
class SessionStarted(Event):
    """A session in a process of its own begins."""

    session: int
    pid: int


@dataclass(frozen=True)
class CoolingDown(Event):
    """Waiting before a session."""

    session: int


@dataclass(frozen=True)
class MachineSampled(Event):
    """The latest sample of every source of `--monitor`."""

    latest: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class PartialPerf:
    """What was measured before a failure."""

    measurement: Measurement | NotMeasured

    @property
    def has_samples(self) -> bool:
        return bool(self.measurement.rounds)


@dataclass(frozen=True)
class PerfRun:
    """An arm, and what each process reported of it."""

    arm: Arm
    protocol: PerfProtocol
    pids: tuple[int, ...] = ()
    reports: tuple[SessionReport, ...] = ()
    stopped: bool = False

    @property
    def rounds(self) -> tuple[Round, ...]:
        return tuple(
            Round(
                arm=0,
                round=number,
                process=pid,
                order=number,
                wall_ns=report.wall_ns,
                cpu_ns=report.cpu_ns,
                load_before=report.load_before,
                load_after=report.load_after,
            )
            for number, (pid, report) in enumerate(zip(self.pids, self.reports, strict=True))
        )

    @property
    def measurement(self) -> Measurement:
        """What was measured; there is at least one report."""
        first = self.reports[0]
        arm = self.arm
        if first.fixed_dims:
            arm = replace(arm, session=replace(arm.session, fixed_dims=first.fixed_dims))
        protocol = self.protocol.describe()
        return Measurement(arms=(arm,), rounds=self.rounds, protocol=protocol, environment=first.environment)

    @property
    def so_far(self) -> PartialPerf:
        if self.reports:
            return PartialPerf(measurement=self.measurement)
        return PartialPerf(measurement=NotMeasured(arms=(self.arm,), protocol=self.protocol.describe()))


def ask_session(
    process: Process,
    form: type[T],
    operation: str,
    args: object,
    *,
    what: str,
    timeout_s: float | None,
    on_event: OnEvent,
) -> T:
    """The report of one process, which has `stopped`; after Ctrl-C what it has so far, marked as stopped."""
    try:
        return process.ask(
            form, operation, args, timeout_s=timeout_s, events=SessionEvent, on_event=on_event, what=what
        )
    except KeyboardInterrupt:
        try:
            answer = process.stop(timeout_s=_STOP_WAIT_S)
        except ModelkitError as error:
            # A run that takes longer than a user waits after Ctrl-C is lost; finished sessions are not.
            raise Interrupted("interrupted", details=error.details) from error
        return cast("T", replace(cast("Any", read(form, answer)), stopped=True))


def measure_sessions(
    arm: Arm,
    protocol: PerfProtocol,
    *,
    inputs: InputSettings,
    strict_ep: bool,
    distribution: str | None = None,
    tracing: Tracing | None = None,
    start: Callable[[], Process],
    on_event: OnEvent,
) -> PerfRun:
    """Measure `arm` in `protocol.sessions` fresh processes; `tracing` asks each for a trace at a level.

    An error carries as its result what was measured before it; after Ctrl-C the samples so far are returned.
    """
    args = MeasureArguments(
        arm=arm_arguments(arm, distribution, inputs, strict_ep=strict_ep),
        warmup=protocol.warmup,
        iterations=protocol.iterations,
        duration_s=protocol.duration_s,
        tracing=tracing,
    )
    what = f"running `{Path(arm.artifact).name}` on {arm.target}"
    run = PerfRun(arm, protocol)
    for number in range(protocol.sessions):
        process: Process | None = None
        try:
            if number and protocol.cool_down_s:
                on_event(CoolingDown(number))
                time.sleep(protocol.cool_down_s)
            process = start()
            on_event(SessionStarted(number, process.pid))
            report = ask_session(
                process, SessionReport, OPERATION, args, what=what, timeout_s=protocol.timeout_s, on_event=on_event
            )
        except ModelkitError as error:
            error.result = run.so_far
            raise
        except KeyboardInterrupt:
            if not run.reports:
                raise
            return replace(run, stopped=True)
        finally:
            if process is not None:
                process.close()
        if report.wall_ns:
            run = replace(run, pids=(*run.pids, process.pid), reports=(*run.reports, report))
        if report.stopped:
            return replace(run, stopped=True)
    return run

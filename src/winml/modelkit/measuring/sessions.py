"""Measures one arm in several fresh processes, one after another."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from winml.modelkit.core.errors import Interrupted, ModelkitError
from winml.modelkit.core.measurement import Arm, Measurement, round_of
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import to_json

OPERATION = "session.measure"
PRELOAD = ("winml.modelkit.session.measure",)
_STOP_WAIT_S = 2.0


class Process(Protocol):
    """The part of a worker that measuring needs."""

    @property
    def pid(self) -> int: ...
    def call(
        self,
        op: str,
        args: dict[str, Any],
        *,
        timeout_s: float | None,
        on_event: Callable[[dict[str, Any]], None] | None,
        what: str | None,
    ) -> Any: ...
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

    def to_json(self) -> dict[str, Any]:
        return {
            "name": "sessions",
            "iterations": None if self.duration_s is not None else self.iterations,
            "duration_s": self.duration_s,
            "warmup": self.warmup,
            "sessions": self.sessions,
            "cool_down_s": self.cool_down_s,
            "timeout_s": self.timeout_s,
        }


@dataclass(frozen=True)
class PerfRun:
    """A measurement with what each process reported besides its samples."""

    measurement: Measurement
    reports: tuple[dict[str, Any], ...]
    stopped: bool = False


OnEvent = Callable[[dict[str, Any]], None]


def _measurement(arm: Arm, protocol: PerfProtocol, pids: list[int], reports: list[dict[str, Any]]) -> Measurement:
    rounds = tuple(round_of(0, i, pid, i, r, r) for i, (pid, r) in enumerate(zip(pids, reports, strict=True)))
    environment = reports[0]["environment"] if reports else {}
    if reports and reports[0].get("fixed_dims"):
        arm = replace(arm, session=replace(arm.session, fixed_dims=reports[0]["fixed_dims"]))
    return Measurement((arm,), rounds, protocol.to_json(), environment)


def _arguments(
    arm: Arm,
    protocol: PerfProtocol,
    inputs: dict[str, Any],
    distribution: str | None,
    *,
    strict_ep: bool,
    tracing: dict[str, Any] | None,
) -> dict[str, Any]:
    return {
        "model": arm.artifact,
        "ep": arm.target.ep,
        "device": arm.target.device,
        "simulated": arm.target.simulated,
        "session": to_json(arm.session),
        "inputs": inputs,
        "warmup": protocol.warmup,
        "iterations": protocol.iterations,
        "duration_s": protocol.duration_s,
        "strict_ep": strict_ep,
        "distribution": distribution,
        "tracing": tracing,
    }


def _one(
    process: Process, args: dict[str, Any], what: str, timeout_s: float | None, on_event: OnEvent
) -> dict[str, Any]:
    """The report of one process; after Ctrl-C what it has so far, marked as stopped."""
    try:
        report: dict[str, Any] = process.call(OPERATION, args, timeout_s=timeout_s, on_event=on_event, what=what)
    except KeyboardInterrupt:
        try:
            report = process.stop(timeout_s=_STOP_WAIT_S)
        except ModelkitError as error:
            # A run that takes longer than a user waits after Ctrl-C is lost; finished sessions are not.
            raise Interrupted("interrupted", details=error.details) from error
        report["stopped"] = True
    return report


def measure_sessions(
    arm: Arm,
    protocol: PerfProtocol,
    *,
    inputs: dict[str, Any],
    strict_ep: bool,
    distribution: str | None = None,
    tracing: dict[str, Any] | None = None,
    start: Callable[[], Process],
    on_event: OnEvent,
) -> PerfRun:
    """Measure `arm` in `protocol.sessions` fresh processes; `tracing` asks each for a trace at a level.

    An error carries in its details what was measured before it; after Ctrl-C the samples so far are returned.
    """
    args = _arguments(arm, protocol, inputs, distribution, strict_ep=strict_ep, tracing=tracing)
    what = f"running `{Path(arm.artifact).name}` on {arm.target}"
    pids: list[int] = []
    reports: list[dict[str, Any]] = []
    stopped = False
    for number in range(protocol.sessions):
        process: Process | None = None
        try:
            _cool_down(number, protocol, on_event)
            process = start()
            on_event({"event": "session", "session": number, "pid": process.pid})
            report = _one(process, args, what, protocol.timeout_s, on_event)
        except ModelkitError as error:
            error.details["measurement"] = _measurement(arm, protocol, pids, reports).to_json()
            raise
        except KeyboardInterrupt:
            if not reports:
                raise
            stopped = True
            break
        finally:
            if process is not None:
                process.close()
        if report["wall_ns"]:
            pids.append(process.pid)
            reports.append(report)
        if report["stopped"]:
            stopped = True
            break
    return PerfRun(_measurement(arm, protocol, pids, reports), tuple(reports), stopped=stopped)


def _cool_down(number: int, protocol: PerfProtocol, on_event: OnEvent) -> None:
    if number and protocol.cool_down_s:
        on_event({"event": "cool-down", "session": number})
        time.sleep(protocol.cool_down_s)

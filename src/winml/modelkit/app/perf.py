"""`winml perf`: how long a model takes on a target, with the evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from winml.modelkit.app import targets
from winml.modelkit.app.models import model_argument
from winml.modelkit.app.session_notes import fixed_dims, left_on_cpu, simulator_options
from winml.modelkit.bench import summary, trust
from winml.modelkit.bench.sessions import PRELOAD, PerfProtocol, PerfRun, measure_sessions
from winml.modelkit.core.errors import Interrupted
from winml.modelkit.core.measurement import Arm
from winml.modelkit.core.target import Target
from winml.modelkit.ep import options
from winml.modelkit.worker.client import Worker

SCHEMA = "winml/perf/1"
SIMULATED = "times are those of a simulator, not of a device; placement and outputs are real"
DEFAULT_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class PerfRequest:
    """Everything the user decided."""

    model: str
    target: str | None = None
    ep: str | None = None
    device: str | None = None
    protocol: PerfProtocol = field(default_factory=PerfProtocol)
    threads: int | None = None
    ep_options: dict[str, str] = field(default_factory=dict)
    inputs: dict[str, Any] = field(default_factory=dict)
    """How inputs are made or where they are read from, as `cli.words.input_request` gives it."""
    strict_ep: bool = False
    memory: bool = False


class _Processes:
    """Starts workers; the first one is on its way while the parent still works out what to ask."""

    def __init__(self) -> None:
        self._first: Worker | None = Worker(preload=PRELOAD)
        self._python: str | None = None

    def use(self, python: str | None) -> None:
        """Start workers with another environment's interpreter from now on."""
        if python is not None:
            self.close()
        self._python = python

    def start(self) -> Worker:
        worker, self._first = self._first, None
        return worker or Worker(preload=PRELOAD, python=self._python)

    def close(self) -> None:
        if self._first is not None:
            self._first.close()
            self._first = None


def perf(request: PerfRequest, on_event: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Measure and return the JSON object of the contract."""
    processes = _Processes()
    try:
        model = model_argument(request.model)
        resolved = targets.resolve(request.target, request.ep, request.device)
        processes.use(resolved.installed.python)
        threads = request.threads if request.threads is not None else model.section.threads
        given = options.with_threads(resolved.target, {**model.section.ep_options, **request.ep_options}, threads)
        section = replace(model.section, threads=threads, ep_options=options.checked(resolved.target, given))
        on_event({"event": "target", "target": resolved.target})
        run = measure_sessions(
            Arm(str(model.path), resolved.target, section),
            request.protocol,
            inputs=request.inputs,
            strict_ep=request.strict_ep,
            distribution=resolved.installed.package.distribution,
            start=processes.start,
            on_event=on_event,
        )
    finally:
        processes.close()
    if run.stopped:
        measured = _result(request, resolved.target, run) if run.reports else {}
        raise Interrupted("interrupted; what was measured is in the result", details=measured)
    return {"schema": SCHEMA, "ok": True, **_result(request, resolved.target, run)}


def _batch(run: PerfRun, request: PerfRequest) -> int | None:
    if request.inputs.get("batch_size") is not None:
        return int(request.inputs["batch_size"])
    leading = {t["shape"][0] if t["shape"] else None for t in run.reports[0]["inputs"]["tensors"].values()}
    return leading.pop() if len(leading) == 1 else None


def _placement_warnings(target: Target, run: PerfRun) -> list[str]:
    placements = [r["placement"] for r in run.reports]
    found = left_on_cpu(target, placements[0])
    if any(p != placements[0] for p in placements):
        found.append("placement differed between sessions")
    return found


def _result(request: PerfRequest, target: Target, run: PerfRun) -> dict[str, Any]:
    first = run.reports[0]
    # Nobody compares a simulator's times, so nothing needs to be said against them but that.
    doubts = [SIMULATED, *simulator_options(first)] if target.simulated else trust.warnings(run.measurement)
    warnings = [*_placement_warnings(target, run), *fixed_dims(target, first), *doubts]
    return {
        "model": request.model,
        **target.to_json(),
        **summary.latency(run.measurement),
        "throughput": summary.throughput(run.measurement, _batch(run, request)),
        "sessions": summary.sessions(run.measurement, run.reports),
        "placement": first["placement"],
        "inputs": first["inputs"],
        "io_binding": first["io_binding"],
        "provider_options": first["provider_options"],
        "fixed_dims": first["fixed_dims"],
        "memory": first["memory"] if request.memory else None,
        "environment": run.measurement.environment,
        "measurement": run.measurement.to_json(),
        "warnings": warnings,
    }

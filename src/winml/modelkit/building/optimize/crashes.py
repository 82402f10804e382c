"""Native code may end the process of a stage; what it was at is left out, and the rest goes on in another process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from winml.modelkit.building.events import (
    LeavingNodes,
    OptimizedOutputs,
    PassStarted,
    QuantizedOutputs,
    StageEvent,
)
from winml.modelkit.building.optimize.result import Crashes
from winml.modelkit.core.errors import WorkerCrashed
from winml.modelkit.core.values import to_json
from winml.modelkit.worker import exit_reason
from winml.modelkit.worker.client import Worker

R = TypeVar("R")

LIBRARY_CRASHES = 3
"""After so many crashes in one library the rest of its passes is left out: it cannot even read the model."""


def ask(
    form: type[R],
    start: Callable[[], Worker],
    operation: str,
    args: Mapping[str, Any],
    *,
    timeout_s: float | None,
    on_event: Callable[[StageEvent], None],
    what: str,
) -> R:
    """The answer of an operation; a crash in a pass, or in comparing outputs, is told to a worker that begins anew."""
    crashes = Crashes()
    last: StageEvent | None = None

    def listen(event: StageEvent) -> None:
        nonlocal last
        last = event
        on_event(event)

    while True:
        told = {} if crashes == Crashes() else {"crashes": to_json(crashes)}
        with start() as worker:
            try:
                return worker.ask(
                    form,
                    operation,
                    {**args, **told},
                    timeout_s=timeout_s,
                    events=StageEvent,
                    on_event=listen,
                    what=what,
                )
            except WorkerCrashed as error:
                reason = _reason(error)
                further = None if reason is None else _add(crashes, last, reason)
                if further is None:
                    raise
                crashes = further


def _add(crashes: Crashes, last: StageEvent | None, reason: str) -> Crashes | None:
    """With one more, by the last event before it; None when leaving that out would not help."""
    match last:
        case PassStarted(name=name) if name not in crashes.passes:
            return replace(crashes, passes={**crashes.passes, name: reason})
        case QuantizedOutputs() | LeavingNodes() | OptimizedOutputs(of="source") if crashes.source is None:
            return replace(crashes, source=reason)
        case OptimizedOutputs(of="result") if not crashes.careful:
            return replace(crashes, careful=True)
    return None


def _reason(error: WorkerCrashed) -> str | None:
    """How the process ended, if it ended by its own fault; a process that was killed may have been killed for good."""
    code = error.details.get("returncode")
    how = None if code is None else exit_reason.describe(code)
    return None if how is None or exit_reason.KILLED in how else f"its process {how}"

"""Native code may crash the process of a stage; what it was running is skipped, and another process continues."""

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
"""After this many crashes in one library the rest of its passes is skipped: it cannot even read the model."""


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
    """The answer of an operation; after a crash in a pass, or in comparing outputs, a new worker skips it."""
    crashes = Crashes()
    last: StageEvent | None = None

    def listen(event: StageEvent) -> None:
        nonlocal last
        last = event
        on_event(event)

    while True:
        extra = {} if crashes == Crashes() else {"crashes": to_json(crashes)}
        with start() as worker:
            try:
                return worker.ask(
                    form,
                    operation,
                    {**args, **extra},
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
    """With one more, by the last event before it; None when skipping that would not help."""
    match last:
        case PassStarted(name=name) if name not in crashes.passes:
            return replace(crashes, passes={**crashes.passes, name: reason})
        case QuantizedOutputs() | LeavingNodes() | OptimizedOutputs(of="source") if crashes.source is None:
            return replace(crashes, source=reason)
        case OptimizedOutputs(of="result") if not crashes.careful:
            return replace(crashes, careful=True)
    return None


def _reason(error: WorkerCrashed) -> str | None:
    """How the process ended, if it crashed; a process that was killed may have been killed for a reason."""
    code = error.details.get("returncode")
    how = None if code is None else exit_reason.describe(code)
    return None if how is None or exit_reason.KILLED in how else f"its process {how}"

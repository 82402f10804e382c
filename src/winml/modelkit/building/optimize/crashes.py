"""Native code may end the process of a stage; what it was at is left out, and the rest goes on in another process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from winml.modelkit.core.errors import WorkerCrashed
from winml.modelkit.worker import exit_reason
from winml.modelkit.worker.client import Worker

OnEvent = Callable[[dict[str, Any]], None]

LIBRARY_CRASHES = 3
"""After so many crashes in one library the rest of its passes is left out: it cannot even read the model."""


@dataclass(frozen=True)
class Crashes:
    """What ended a process so far."""

    passes: Mapping[str, str] = field(default_factory=dict)
    """Reasons by pass."""
    source: str | None = None
    """Why the model as it came is not run, so that outputs are not compared; quantizing compares them, too."""
    careful: bool = False
    """Whether the result ended the process when it was run: outputs are compared after each pass then."""

    def after(self, last: Mapping[str, Any], reason: str) -> Crashes | None:
        """With one more, by the last event before it; None when leaving that out would not help."""
        name = last.get("pass")
        if last.get("event") == "pass" and name not in self.passes:
            return replace(self, passes={**self.passes, str(name): reason})
        if _runs_source(last) and self.source is None:
            return replace(self, source=reason)
        if last.get("event") == "compare" and last.get("of") == "result" and not self.careful:
            return replace(self, careful=True)
        return None


def _runs_source(last: Mapping[str, Any]) -> bool:
    """Whether the optimizer, or the quantizer, was running the model."""
    event = last.get("event")
    return event in ("comparing", "leaving") or (event == "compare" and last.get("of") == "source")


def call(
    start: Callable[[], Worker],
    operation: str,
    args: Mapping[str, Any],
    *,
    timeout_s: float | None,
    on_event: OnEvent,
    what: str,
) -> Any:
    """The answer of an operation; a crash in a pass, or in comparing outputs, is told to a worker that begins anew."""
    crashes = Crashes()
    last: dict[str, Any] = {}

    def listen(event: dict[str, Any]) -> None:
        last.clear()
        last.update(event)
        on_event(event)

    while True:
        told = {} if crashes == Crashes() else {"crashes": asdict(crashes)}
        with start() as worker:
            try:
                return worker.call(operation, {**args, **told}, timeout_s=timeout_s, on_event=listen, what=what)
            except WorkerCrashed as error:
                reason = _reason(error)
                further = None if reason is None else crashes.after(last, reason)
                if further is None:
                    raise
                crashes = further


def _reason(error: WorkerCrashed) -> str | None:
    """How the process ended, if it ended by its own fault; a process that was killed may have been killed for good."""
    code = error.details.get("returncode")
    how = None if code is None else exit_reason.describe(code)
    return None if how is None or exit_reason.KILLED in how else f"its process {how}"

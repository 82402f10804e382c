"""One way to run a stage: what its worker answers, and what it was doing when the worker crashed.

A build runs stages with the cache between them (`pipeline/run.py`), `winml optimize` and `winml quantize` one alone
(`pipeline/alone.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from winml.modelkit.building.events import OptimizedOutputs, PassStarted, StageEvent
from winml.modelkit.building.optimize import crashes
from winml.modelkit.building.pipeline.table import StageInfo
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import WorkerCrashed, WorkerTimeout
from winml.modelkit.core.events import OnEvent
from winml.modelkit.worker.client import Worker


@dataclass(frozen=True)
class StageWords:
    """What errors of a stage say."""

    what: str
    uncompared: str
    """The hint where it was comparing outputs."""
    end: str = ""
    """Added to the message about a worker that crashed."""


def words_in_build(stage: StageInfo) -> StageWords:
    return StageWords(f"stage `{stage.name}`", "`--no-optimize` skips the stage")


def run_stage(
    stage: StageInfo,
    args: Mapping[str, Any],
    *,
    start: Callable[[], Worker],
    timeout_s: float | None,
    on_event: OnEvent,
    words: StageWords,
) -> Mapping[str, Any]:
    """The report of a stage; the error of a worker that crashes names what it was doing."""
    last: StageEvent | None = None

    def listen(event: StageEvent) -> None:
        nonlocal last
        last = event
        on_event(event.step)

    try:
        return crashes.ask(
            dict[str, Any], start, stage.operation, args, timeout_s=timeout_s, on_event=listen, what=words.what
        )
    except (WorkerCrashed, WorkerTimeout) as error:
        if isinstance(last, PassStarted):
            at, hint = f"pass `{last.name}`", f"skip it with `--disable {last.name}`"
        elif isinstance(last, OptimizedOutputs):
            at, hint = "comparing outputs", words.uncompared
        else:
            raise
        raise error.with_message(f"{at}: {error.message}{words.end}", hint=hint) from None

"""One way to run a stage: what its worker answers, and what it was doing when the worker crashed.

A build runs stages with the cache between them (`pipeline/run.py`), `winml optimize` and `winml quantize` one alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from winml.modelkit.building import output_model
from winml.modelkit.building.events import OptimizedOutputs, PassStarted, StageEvent
from winml.modelkit.building.optimize import crashes
from winml.modelkit.building.pipeline.table import StageInfo
from winml.modelkit.core.errors import WorkerCrashed, WorkerTimeout
from winml.modelkit.core.events import OnEvent
from winml.modelkit.core.values import to_json
from winml.modelkit.worker.client import Worker
from winml.modelkit.worker.operations import OPERATIONS

R = TypeVar("R")


def run_stage(
    form: type[R],
    stage: StageInfo,
    args: Mapping[str, Any],
    *,
    start: Callable[[], Worker],
    timeout_s: float | None,
    on_event: OnEvent,
    what: str,
    uncompared: str,
    end: str = "",
) -> R:
    """The report of a stage; the error of a worker that crashes names what it was doing.

    `uncompared` is the hint where that was comparing outputs, `end` is added to such a message.
    """
    last: StageEvent | None = None

    def listen(event: StageEvent) -> None:
        nonlocal last
        last = event
        on_event(event.step)

    try:
        return crashes.ask(form, start, stage.operation, args, timeout_s=timeout_s, on_event=listen, what=what)
    except (WorkerCrashed, WorkerTimeout) as error:
        if isinstance(last, PassStarted):
            at, hint = f"pass `{last.name}`", f"skip it with `--disable {last.name}`"
        elif isinstance(last, OptimizedOutputs):
            at, hint = "comparing outputs", uncompared
        else:
            raise
        raise error.with_message(f"{at}: {error.message}{end}", hint=hint) from None


def run_alone(
    form: type[R],
    stage: StageInfo,
    arguments: object,
    output: Path,
    *,
    overwrite: bool,
    timeout_s: float | None,
    on_event: OnEvent,
    what: str,
    uncompared: str = "",
) -> R:
    """The report of a stage whose result goes to a file of the user's; the file is complete or absent.

    `arguments` is the value that the operation takes; it writes beside `output` until it is done.
    """
    module, _, _ = OPERATIONS[stage.operation].partition(":")
    with output_model.stage_output(output, overwrite=overwrite) as staged:
        return run_stage(
            form,
            stage,
            {**to_json(arguments), "output": str(staged)},
            start=lambda: Worker(preload=(module,)),
            timeout_s=timeout_s,
            on_event=on_event,
            what=what,
            uncompared=uncompared,
            end="; nothing was written",
        )

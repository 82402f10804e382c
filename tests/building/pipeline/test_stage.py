"""A stage in its process: steps are told, and a process that dies is blamed on what it was doing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from winml.modelkit.building.events import Calibrating, OptimizedOutputs, PassStarted, StageEvent, StageStep
from winml.modelkit.building.pipeline.stage import StageWords, run_stage
from winml.modelkit.building.pipeline.table import OPTIMIZE
from winml.modelkit.core.errors import WorkerTimeout
from winml.modelkit.core.events import Event
from winml.modelkit.worker.client import Worker

WORDS = StageWords("optimizing", "compare nothing", "; nothing was written")


class TellingWorker:
    """Tells one event, and dies when told so."""

    def __init__(self, event: StageEvent, *, dies: bool) -> None:
        self._event, self._dies = event, dies

    def __enter__(self) -> TellingWorker:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ask(self, form: Any, op: str, args: dict[str, Any], *, on_event: Callable[[StageEvent], None], **_: Any) -> Any:
        assert op == "stages.optimize"
        on_event(self._event)
        if self._dies:
            raise WorkerTimeout("it took too long")
        return {"changed": True, "model": args["model"]}


def _run(worker: TellingWorker, events: list[Event]) -> Any:
    return run_stage(
        OPTIMIZE,
        {"model": "m"},
        start=lambda: cast("Worker", worker),
        timeout_s=1.0,
        on_event=events.append,
        words=WORDS,
    )


def test_the_report_is_returned_and_steps_are_told() -> None:
    events: list[Event] = []
    worker = TellingWorker(PassStarted(name="one", done=0, total=2), dies=False)
    assert _run(worker, events) == {"changed": True, "model": "m"}
    assert events == [StageStep("one", 0, 2)]


@pytest.mark.parametrize(
    ("event", "message", "hint"),
    [
        (
            PassStarted(name="one", done=0, total=2),
            "pass `one`: it took too long; nothing was written",
            "skip it with `--disable one`",
        ),
        (
            OptimizedOutputs(of="prepared"),
            "comparing outputs: it took too long; nothing was written",
            "compare nothing",
        ),
        (Calibrating(done=1, total=2), "it took too long", None),
    ],
)
def test_a_process_that_dies_is_blamed_on_what_it_was_doing(event: StageEvent, message: str, hint: str | None) -> None:
    with pytest.raises(WorkerTimeout) as caught:
        _run(TellingWorker(event, dies=True), [])
    assert (caught.value.message, caught.value.hint) == (message, hint)

"""A stage alone: its result is whole or not there, and a process that dies is blamed on what it was at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from winml.modelkit.building.events import Calibrating, OptimizedOutputs, PassStarted, StageEvent, StageStep
from winml.modelkit.building.pipeline import stage
from winml.modelkit.building.pipeline.stage import run_alone
from winml.modelkit.building.pipeline.table import OPTIMIZE
from winml.modelkit.core.errors import WorkerTimeout
from winml.modelkit.core.events import Event


class WritingWorker:
    """Tells one event, writes the model, and dies when told so."""

    def __init__(self, event: StageEvent, *, dies: bool) -> None:
        self._event, self._dies = event, dies

    def __call__(self, *, preload: tuple[str, ...]) -> WritingWorker:
        assert preload == ("winml.modelkit.building.optimize.stage",)
        return self

    def __enter__(self) -> WritingWorker:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ask(self, form: Any, op: str, args: dict[str, Any], *, on_event: Callable[[StageEvent], None], **_: Any) -> Any:
        on_event(self._event)
        Path(args["output"]).write_bytes(args["model"].encode())
        if self._dies:
            raise WorkerTimeout("it took too long")
        return {"changed": True}


def _run(output: Path, monkeypatch: pytest.MonkeyPatch, worker: WritingWorker, events: list[Event]) -> Any:
    monkeypatch.setattr(stage, "Worker", worker)
    return run_alone(
        dict[str, Any],
        OPTIMIZE,
        {"model": "m", "output": str(output)},
        output,
        overwrite=False,
        timeout_s=1.0,
        on_event=events.append,
        what="optimizing",
        uncompared="compare nothing",
    )


def test_the_result_is_put_in_place_and_steps_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Event] = []
    worker = WritingWorker(PassStarted(name="one", done=0, total=2), dies=False)
    assert _run(tmp_path / "out.onnx", monkeypatch, worker, events) == {"changed": True}
    assert events == [StageStep("one", 0, 2)]
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("out.onnx", "m")]


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
def test_a_process_that_dies_leaves_nothing_and_is_blamed_on_what_it_was_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, event: StageEvent, message: str, hint: str | None
) -> None:
    with pytest.raises(WorkerTimeout) as caught:
        _run(tmp_path / "out.onnx", monkeypatch, WritingWorker(event, dies=True), [])
    assert (caught.value.message, caught.value.hint) == (message, hint)
    assert list(tmp_path.iterdir()) == []

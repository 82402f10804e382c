from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from winml.modelkit.building.events import PassStarted, StageDone, StageStarted
from winml.modelkit.building.pipeline.artifact import Source, read_source
from winml.modelkit.building.pipeline.run import Pipeline, Step
from winml.modelkit.building.pipeline.table import StageInfo
from winml.modelkit.core.errors import DataError, RunFailedError, WorkerCrashed
from winml.modelkit.core.events import Event
from winml.modelkit.core.values import to_json
from winml.modelkit.store.cache import Cache

FIRST = StageInfo("first", 1, (), "test.append", "first.onnx")
SECOND = StageInfo("second", 1, (), "test.append", "second.onnx")


class AppendingWorker:
    """Does what a stage does, without a process: reads the model, appends the section's letter, writes the output."""

    def __init__(self, calls: list[str], *, before: Callable[[], None] = lambda: None) -> None:
        self._calls, self._before = calls, before

    def __enter__(self) -> AppendingWorker:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ask(self, form: Any, op: str, args: dict[str, Any], *, on_event: Any, **_: Any) -> dict[str, Any]:
        self._before()
        letter = args["section"]["letter"]
        self._calls.append(letter)
        if letter == "!":
            raise RunFailedError("the stage cannot do that")
        if letter == "x":
            on_event(PassStarted(name="some_fusion", done=0, total=1))
            raise WorkerCrashed("the process crashed")
        Path(args["output"]).write_bytes(Path(args["model"]).read_bytes() + letter.encode())
        return {"changed": True, "told": args.get("told")}


def step(stage: StageInfo, letter: str, **more: Any) -> Step:
    return Step(stage, {"letter": letter}, {"library": "1.0"}, **more)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"m")
    return path


class Builds:
    """Builds of one model in one cache, and the stages that really ran."""

    def __init__(self, model: Path, cache: Cache) -> None:
        self.model, self.cache = model, cache
        self.ran: list[str] = []
        self.events: list[Event] = []

    def pipeline(self, *, source: Source | None = None, before: Callable[[], None] = lambda: None, **more: Any) -> Any:
        return Pipeline(
            source or read_source(self.model, ()),
            cache=self.cache,
            start=lambda: AppendingWorker(self.ran, before=before),  # type: ignore[arg-type,return-value]
            on_event=self.events.append,
            **more,
        )

    def content(self, pipeline: Pipeline) -> bytes:
        return self.cache.objects.path(pipeline.artifact.files[pipeline.artifact.main]).read_bytes()


@pytest.fixture
def builds(model: Path, tmp_path: Path) -> Builds:
    return Builds(model, Cache(tmp_path / "cache"))


def test_every_stage_starts_from_the_result_of_the_one_before(builds: Builds) -> None:
    pipeline = builds.pipeline()
    pipeline.run(step(FIRST, "a"))
    pipeline.run(step(SECOND, "b"))
    assert builds.content(pipeline) == b"mab"
    assert [run.hit for run in pipeline.runs] == [False, False]
    assert pipeline.runs[1].key.parent == pipeline.runs[0].artifact.digest


def test_a_second_build_runs_nothing(builds: Builds) -> None:
    for _ in range(2):
        pipeline = builds.pipeline()
        pipeline.run(step(FIRST, "a"))
        pipeline.run(step(SECOND, "b"))
    assert builds.ran == ["a", "b"]
    assert [run.hit for run in pipeline.runs] == [True, True]
    assert builds.content(pipeline) == b"mab"


def test_a_change_late_in_the_build_leaves_the_stages_before_alone_and_is_explained(builds: Builds) -> None:
    for letter in "bc":
        pipeline = builds.pipeline()
        pipeline.run(step(FIRST, "a"))
        pipeline.run(step(SECOND, letter))
    assert builds.ran == ["a", "b", "c"]
    change = pipeline.runs[1].explanation.changes[0]
    assert (change.part, change.before, change.now) == ("section.letter", "b", "c")


def test_what_an_operation_is_only_told_is_not_in_the_key(builds: Builds) -> None:
    builds.pipeline().run(step(FIRST, "a", arguments={"told": "here"}))
    assert builds.pipeline().run(step(FIRST, "a", arguments={"told": "there"})).hit


def test_other_calibration_data_makes_another_key(builds: Builds) -> None:
    builds.pipeline().run(step(FIRST, "a", calibration="sha256:1"))
    assert not builds.pipeline().run(step(FIRST, "a", calibration="sha256:2")).hit


def test_a_build_that_fails_goes_on_from_the_last_finished_stage(builds: Builds) -> None:
    pipeline = builds.pipeline()
    pipeline.run(step(FIRST, "a"))
    with pytest.raises(RunFailedError):
        pipeline.run(step(SECOND, "!"))
    assert len(pipeline.runs) == 1
    again = builds.pipeline()
    assert again.run(step(FIRST, "a")).hit
    assert builds.content(again) == b"ma"


def test_a_rebuild_runs_everything_and_gives_the_same(builds: Builds) -> None:
    first = builds.pipeline()
    first.run(step(FIRST, "a"))
    second = builds.pipeline(rebuild=True)
    assert not second.run(step(FIRST, "a")).hit
    assert second.artifact == first.artifact
    assert builds.ran == ["a", "a"]


def test_nothing_is_left_in_the_work_folder_and_nothing_stored_when_a_stage_fails(builds: Builds) -> None:
    with pytest.raises(RunFailedError):
        builds.pipeline().run(step(FIRST, "!"))
    assert list(builds.cache.stages) == []
    assert [path.name for path in builds.cache.root.iterdir()] == ["locks"]


def test_a_source_that_changes_while_it_is_read_is_not_stored_under_its_old_digest(builds: Builds) -> None:
    def write() -> None:
        builds.model.write_bytes(b"other")

    with pytest.raises(DataError, match="changed while"):
        builds.pipeline(before=write).run(step(FIRST, "a"))
    assert list(builds.cache.stages) == []


def test_events_say_which_stage_runs_and_which_came_from_the_cache(builds: Builds) -> None:
    builds.pipeline().run(step(FIRST, "a"))
    builds.pipeline().run(step(FIRST, "a"))
    assert [(type(e), getattr(e, "hit", None)) for e in builds.events] == [
        (StageStarted, False), (StageDone, False), (StageStarted, True), (StageDone, True),
    ]  # fmt: skip


def test_a_stage_whose_end_was_reported_is_adopted_without_another_report(builds: Builds) -> None:
    done = builds.pipeline().run(step(FIRST, "a"))
    told = len(builds.events)
    after = builds.pipeline()
    after.adopt(done)
    assert after.runs == [done]
    assert after.artifact == done.artifact
    assert len(builds.events) == told


def test_a_stage_run_is_json(builds: Builds) -> None:
    run = builds.pipeline().run(step(FIRST, "a"))
    value = to_json(run.record())
    assert (value["stage"], value["cache"], value["file"]) == ("first", "miss", "first.onnx")
    assert value["digest"] == value["files"]["first.onnx"]
    assert value["libraries"] == {"library": "1.0"}


def test_a_pass_that_takes_the_worker_down_is_named(builds: Builds) -> None:
    with pytest.raises(WorkerCrashed, match="pass `some_fusion`: the process crashed") as caught:
        builds.pipeline().run(step(FIRST, "x"))
    assert caught.value.hint == "skip it with `--disable some_fusion`"


def test_two_builds_that_need_a_stage_at_the_same_time_run_it_once(builds: Builds) -> None:
    started, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        started.set()
        assert go_on.wait(30)

    first, second = builds.pipeline(before=hold), builds.pipeline()
    threads = [threading.Thread(target=lambda: first.run(step(FIRST, "a")))]
    threads[0].start()
    assert started.wait(30)
    threads.append(threading.Thread(target=lambda: second.run(step(FIRST, "a"))))
    threads[1].start()
    go_on.set()
    for thread in threads:
        thread.join(30)
    assert builds.ran == ["a"]
    assert sorted(run.hit for run in (*first.runs, *second.runs)) == [False, True]
    assert first.artifact == second.artifact

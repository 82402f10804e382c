"""The loop on an executor, a feed and a disk that do what a test wants."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import pytest

from winml.modelkit.build_matrix.loop import Loop, MatrixTools, Waiting
from winml.modelkit.build_matrix.models import MatrixModel
from winml.modelkit.build_matrix.plan import COMBOS, Cell, plan
from winml.modelkit.build_matrix.state import Build, Upload
from winml.modelkit.core.errors import UnavailableError
from winml.modelkit.core.target import Target
from winml.modelkit.dispatch.base import Job, Result


def cells(*models: str, targets: tuple[Target, ...] = COMBOS[:2]) -> list[Cell]:
    return list(plan([MatrixModel(name, name) for name in models], targets, run_stamp="s"))


@dataclass
class World:
    """Finishes jobs in order; builds, uploads and disk space are as scripted."""

    slots: int = 1
    builds: dict[str, str] = field(default_factory=dict)
    uploads: dict[str, deque[str]] = field(default_factory=dict)
    limit: int | None = None
    used: int = 0
    garbage: int = 0
    submitted: list[str] = field(default_factory=list)
    recorded: list[tuple[str, str]] = field(default_factory=list)
    most_running: int = 0
    _queue: deque[str] = field(default_factory=deque)

    # Executor
    def check(self, job: Job) -> None: ...

    def submit(self, job: Job) -> None:
        self.submitted.append(job.id)
        self._queue.append(job.id)
        self.most_running = max(self.most_running, len(self._queue))

    def wait(self, timeout_s: float) -> Result | None:
        return Result(self._queue.popleft(), "ok", 0, "", "", 1.0) if self._queue else None

    def close(self) -> None: ...

    # Disk: every built cell takes one, a published one becomes garbage
    def has_room(self, count: int) -> bool:
        return self.limit is None or self.used + count <= self.limit

    def is_full(self) -> bool:
        return self.limit is not None and self.used >= self.limit

    def free(self) -> None:
        self.used, self.garbage = self.used - self.garbage, 0

    # Builds and feed
    def accept(self, cell: Cell, result: Result) -> Build:
        status: Any = self.builds.get(cell.version, "ok")
        self.used += status == "ok"
        return Build(status, "complete", 1.0, "t")

    def publish(self, cell: Cell) -> Upload:
        script = self.uploads.get(cell.version)
        status: Any = script.popleft() if script else "uploaded"
        if status == "unavailable":
            raise UnavailableError("the login has expired")
        self.garbage += status == "uploaded"
        return Upload(status, "f", "t")

    def record(self, cell: Cell, happened: Build | Upload) -> None:
        self.recorded.append((cell.version, happened.status))

    def run(self, pending: list[Cell], *, first: tuple[Cell, ...] = (), feed: bool = True) -> Loop:
        def job(cell: Cell) -> Job:
            return Job(cell.version, ("x",))

        publish = self.publish if feed else None
        loop = Loop(MatrixTools(self, job, self.accept, publish, self.record, self, lambda _: None), Waiting(pending))
        loop.run(first)
        return loop


def test_every_cell_is_built_and_published_once() -> None:
    world, todo = World(slots=2), cells("a", "b")
    world.run(todo)
    assert sorted(world.submitted) == sorted(c.version for c in todo)
    assert sorted(world.recorded) == sorted((c.version, s) for c in todo for s in ("ok", "uploaded"))
    assert world.most_running == 2


def test_a_failed_build_is_not_published_and_does_not_stop_the_others() -> None:
    world, todo = World(), cells("a")
    world.builds[todo[0].version] = "failed"
    world.run(todo)
    assert world.recorded == [(todo[0].version, "failed"), (todo[1].version, "ok"), (todo[1].version, "uploaded")]


def test_a_package_that_is_refused_does_not_stop_the_others_but_a_feed_that_cannot_be_used_does() -> None:
    world, todo = World(), cells("a")
    world.uploads[todo[0].version] = deque(["failed"])
    loop = world.run(todo)
    assert loop.unpublished == [todo[0]]
    world = World()
    world.uploads[todo[0].version] = deque(["unavailable"])
    with pytest.raises(UnavailableError, match="login"):
        world.run(todo)
    assert world.recorded == [(todo[0].version, "ok")]


def test_what_was_built_before_is_published_first_without_being_built() -> None:
    world, todo = World(), cells("a")
    world.run(todo[1:], first=(todo[0],))
    assert world.recorded[0] == (todo[0].version, "uploaded")
    assert world.submitted == [todo[1].version]


def test_the_disk_stays_within_its_limit_while_published_cells_make_room() -> None:
    world, todo = World(slots=4, limit=2), cells("a", "b", "c")
    world.run(todo)
    assert len(world.submitted) == 6
    assert world.most_running <= 2
    assert world.used <= 2


def test_unpublished_cells_that_fill_the_limit_are_tried_again_and_then_the_run_goes_on() -> None:
    world, todo = World(limit=2), cells("a", "b")
    for cell in todo[:2]:
        world.uploads[cell.version] = deque(["failed"])
    world.run(todo)
    assert world.recorded.count((todo[0].version, "uploaded")) == 1
    assert world.recorded[-1] == (todo[3].version, "uploaded")


def test_unpublished_cells_that_fill_the_limit_for_good_stop_the_run_and_are_named() -> None:
    world, todo = World(limit=2), cells("a", "b")
    for cell in todo[:2]:
        world.uploads[cell.version] = deque(["failed"] * 9)
    with pytest.raises(UnavailableError, match="not published yet: ") as caught:
        world.run(todo)
    assert all(cell.version in caught.value.message for cell in todo[:2])
    assert world.submitted == [c.version for c in todo[:2]]


def test_without_a_feed_a_limit_that_is_reached_stops_the_run() -> None:
    world = World(limit=1)
    with pytest.raises(UnavailableError, match="nothing more can be removed"):
        world.run(cells("a"), feed=False)


def test_a_model_that_somebody_is_at_waits_until_it_is_warm_when_another_one_is_free() -> None:
    first, second, other, _ = cells("a", "b")
    assert Waiting([second, other]).take([first], set()) is other
    assert Waiting([second, other]).take([first], {"a"}) is second
    assert Waiting([second]).take([first], set()) is second


def test_a_cell_whose_device_is_in_use_lets_others_pass_unless_all_have_to_wait() -> None:
    todo = list(plan([MatrixModel(n, n) for n in "abc"], (COMBOS[0], COMBOS[5]), run_stamp="s", compiled=True))
    on_npu = todo[0]
    assert on_npu.compile
    waiting = Waiting(todo[1:])
    taken = [waiting.take([on_npu], {"a", "b", "c"}) for _ in range(len(waiting))]
    assert [cell.compile for cell in taken] == [False, False, False, True, True]
    assert [cell.model.name for cell in taken] == ["a", "b", "c", "b", "c"]


def test_a_cell_that_fails_before_there_is_a_job_does_not_stop_the_others() -> None:
    world, todo = World(), cells("a", "b")

    def job(cell: Cell) -> Job | Build:
        return Job(cell.version, ("x",)) if cell.model.name == "b" else Build("failed", "load", 0.0, "t")

    Loop(MatrixTools(world, job, world.accept, None, world.record, world, lambda _: None), Waiting(todo)).run()
    assert world.submitted == [cell.version for cell in todo[2:]]
    assert sorted(world.recorded) == sorted((cell.version, "ok" if cell in todo[2:] else "failed") for cell in todo)

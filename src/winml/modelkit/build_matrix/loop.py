"""The loop over cells: builds run as jobs, what is built is published, and the disk stays within its limit."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import Protocol

from winml.modelkit.build_matrix.events import CellPublishing, CellStarted
from winml.modelkit.build_matrix.plan import Cell
from winml.modelkit.build_matrix.state import Build, Upload
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import UnavailableError
from winml.modelkit.core.events import OnEvent
from winml.modelkit.core.target import Target
from winml.modelkit.dispatch.base import Executor, Job, Result

_POLL_S = 0.5


class Space(Protocol):
    """The disk a run may use."""

    def has_room(self, cells: int) -> bool:
        """Whether this many more cells probably fit."""

    def is_full(self) -> bool:
        """Whether the limit is reached now."""

    def free(self) -> None:
        """Remove what no pending cell needs; no build runs while this does."""


@dataclass(frozen=True)
class MatrixTools:
    """What the loop works with."""

    executor: Executor
    job: Callable[[Cell], Job | Build]
    """The job that builds a cell, or the failure when no job could be created."""
    accept: Callable[[Cell, Result], Build]
    """Takes over what a job produced, or cleans up after it."""
    publish: Callable[[Cell], Upload] | None
    """Publishes a built cell; raises `UnavailableError` when every other cell would fail too."""
    record: Callable[[Cell, Build | Upload], None]
    space: Space
    tell: OnEvent


class Waiting:
    """Cells to build, in order; choosing one costs the same however many there are."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._lines: dict[Target | None, deque[tuple[int, Cell]]] = {}
        """Cells with their number, by the device that building them needs; None for those that need none."""
        for number, cell in enumerate(cells):
            self._lines.setdefault(_device(cell), deque()).append((number, cell))

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    def take(self, running: Iterable[Cell], warm: set[str]) -> Cell:
        """Take out the first cell that need not wait for another, or the first of all when every one has to.

        It need not wait when its device is free, and its model has what targets share or none of its cells is running.
        """
        at_work = list(running)
        held = {_device(cell) for cell in at_work} - {None}
        cold = {cell.model.folder for cell in at_work} - warm
        free = [self._first(line, cold) for device, line in self._lines.items() if line and device not in held]
        number, cell = min((one for one in free if one is not None), key=_number, default=self._head())
        self._lines[_device(cell)].remove((number, cell))
        return cell

    @staticmethod
    def _first(line: deque[tuple[int, Cell]], cold: set[str]) -> tuple[int, Cell] | None:
        return next((one for one in line if one[1].model.folder not in cold), None)

    def _head(self) -> tuple[int, Cell]:
        return min((line[0] for line in self._lines.values() if line), key=_number)


def _number(one: tuple[int, Cell]) -> int:
    return one[0]


def _device(cell: Cell) -> Target | None:
    return cell.target if cell.compile else None


@dataclass
class Loop:
    """One run; everything that has to survive it goes through `tools.record`."""

    tools: MatrixTools
    pending: Waiting
    unpublished: list[Cell] = field(default_factory=list)
    """Built, but the feed did not accept them; their files are kept."""
    running: dict[str, Cell] = field(default_factory=dict)
    warm: set[str] = field(default_factory=set)
    """Models with a built cell, so that their other cells find what they share."""

    def run(self, publish_first: Iterable[Cell] = ()) -> None:
        """Build all pending cells and publish them."""
        for cell in publish_first:
            self._publish(cell)
        while self.pending or self.running:
            self._submit()
            result = self.tools.executor.wait(_POLL_S)
            if result is None:
                continue
            cell = self.running.pop(result.job)
            build = self.tools.accept(cell, result)
            self.tools.record(cell, build)
            if build.status == "ok":
                self.warm.add(cell.model.folder)
                self._publish(cell)

    def _submit(self) -> None:
        while self.pending and len(self.running) < self.tools.executor.slots:
            if not self.tools.space.has_room(len(self.running) + 1):
                if self.running:
                    return  # running cells may free space when they are published
                self._make_room()
            cell = self.pending.take(self.running.values(), self.warm)
            self.tools.tell(CellStarted(cell))
            job = self.tools.job(cell)
            if isinstance(job, Build):
                self.tools.record(cell, job)
                continue
            self.running[cell.version] = cell
            self.tools.executor.submit(job)

    def _publish(self, cell: Cell) -> None:
        if self.tools.publish is None:
            return
        self.tools.tell(CellPublishing(cell))
        upload = self.tools.publish(cell)
        self.tools.record(cell, upload)
        if upload.status != "uploaded" and cell not in self.unpublished:
            self.unpublished.append(cell)
        elif upload.status == "uploaded" and cell in self.unpublished:
            self.unpublished.remove(cell)

    def _make_room(self) -> None:
        """Make room for one more cell: collect, then publish again what the feed did not accept; else stop."""
        self.tools.space.free()
        if self.tools.space.has_room(1):
            return
        for cell in list(self.unpublished):
            self._publish(cell)
        self.tools.space.free()
        if self.tools.space.is_full():
            raise full(self.unpublished)


def full(unpublished: Sequence[Cell]) -> UnavailableError:
    """The error for a disk limit when nothing more can be freed."""
    if not unpublished:
        return UnavailableError("the limit of `--max-disk` is reached, and nothing more can be removed")
    listed = ", ".join(cell.version for cell in unpublished)
    return UnavailableError(f"the limit of `--max-disk` is reached by cells that are not published yet: {listed}")

"""The progress of a matrix, and an estimate of the remaining time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Generic, TypeVar

from winml.modelkit.build_matrix.state import CellState
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.values import AtLeast, Count

T = TypeVar("T")


@dataclass(frozen=True)
class Progress:
    """Counts of cells; every cell is done, failed or pending."""

    total: Count
    done: Count
    failed: Count
    pending: Count
    seconds_left: Annotated[float, AtLeast(0)] | None
    """Null until something was built."""


@dataclass
class Tally:
    """Counts that are updated cell by cell, so a change costs the same however many cells there are."""

    feed: str | None
    total: int = 0
    done: int = 0
    failed: int = 0
    built: int = 0
    seconds: float = 0.0

    def add(self, state: CellState, times: int = 1) -> None:
        """Count a cell; -1 removes it from the counts."""
        self.total += times
        self.done += times * state.is_done(self.feed)
        self.failed += times * state.has_failed
        if state.build is not None:
            self.built += times
            self.seconds += times * state.build.seconds

    def change(self, before: CellState, after: CellState) -> None:
        self.add(before, -1)
        self.add(after)

    def progress(self, jobs: int) -> Progress:
        """The remaining cells take as long as the builds so far, up to `jobs` in parallel."""
        pending = self.total - self.done - self.failed
        left = 0.0 if not pending else max(0.0, self.seconds) / self.built * pending / jobs if self.built else None
        return Progress(self.total, self.done, self.failed, pending, left)


def tally(versions: Iterable[str], states: Mapping[str, CellState], *, feed: str | None) -> Tally:
    """The counts of some cells."""
    counted = Tally(feed)
    for version in versions:
        counted.add(states.get(version, CellState()))
    return counted


class Paced(Generic[T]):
    """Work that costs more the larger a run is: repeated only as often as its share of the time allows."""

    def __init__(self, work: Callable[[], T], *, share: float = 0.1) -> None:
        self._work = work
        self._share = share
        self._due = -math.inf
        self._last: T

    def __call__(self) -> T:
        """The result, computed now or the last time."""
        return self.now() if time.monotonic() >= self._due else self._last

    def now(self) -> T:
        started = time.monotonic()
        self._last = self._work()
        ended = time.monotonic()
        self._due = ended + (ended - started) / self._share
        return self._last

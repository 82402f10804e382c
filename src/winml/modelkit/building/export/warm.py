"""Export workers that stay warm: importing torch and transformers costs more than exporting a small model.

On Linux a worker that has imported them forks a process for every export (`worker/program.py`): each starts from the
same state, and none can change another. Elsewhere every export has a worker of its own.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from winml.modelkit.core.errors import ModelkitError, RunFailedError
from winml.modelkit.worker.client import Message, OnEvent, Worker

PRELOAD = ("winml.modelkit.building.export.preloaded",)
EXPORT = "stages.export"
PRETRACE = "winml.modelkit.building.export.pretraced"
"""Traces a small model in the process that forks."""
_WORTH_A_TRACE = 2
"""Where there is a second export there are mostly more: the trace takes as long as it saves in two of them."""
CAN_FORK = sys.platform == "linux"


class ExportWorker(Worker):
    """A worker for exports; at the end of a `with` block its pool keeps it, as long as it is healthy."""

    def __init__(self, pool: ExportWorkers | None = None) -> None:
        # Threads of OpenBLAS would be there when the process forks; torch has its own.
        # Threads of torch that wait leave the processor to others: an export is not timed.
        env = {
            **os.environ,
            "OPENBLAS_NUM_THREADS": os.environ.get("OPENBLAS_NUM_THREADS", "1"),
            "OMP_WAIT_POLICY": os.environ.get("OMP_WAIT_POLICY", "PASSIVE"),
        }
        super().__init__(preload=PRELOAD if CAN_FORK else (), env=env, apart=CAN_FORK)
        self._pool = pool
        self._exports = 0

    def call(
        self,
        op: str,
        args: Message | None = None,
        *,
        timeout_s: float | None = None,
        on_event: OnEvent | None = None,
        what: str | None = None,
    ) -> Any:
        if op == EXPORT:
            self._exports += 1
            if self._exports == _WORTH_A_TRACE and CAN_FORK:
                self.preload(PRETRACE)
        return super().call(op, args, timeout_s=timeout_s, on_event=on_event, what=what)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # An error of ours is the answer to an export; after any other the process may still be at work.
        answered = kind is None or issubclass(kind, ModelkitError)
        if self._pool is None or not self._pool.take_back(self, keep=answered):
            self.close()


class ExportWorkers:
    """Workers that wait for the next export, at most `most` of them; threads may share them."""

    def __init__(self, most: int = 1) -> None:
        self.most = most
        self._waiting: list[ExportWorker] = []
        self._working: set[ExportWorker] = set()
        self._lock = threading.Lock()
        self._is_open = True
        self.started = 0
        """How many workers were started."""

    def start(self) -> ExportWorker:
        """A worker that waits, or a new one."""
        with self._lock:
            if not self._is_open:
                raise RunFailedError("no more exports are started")
            while self._waiting:
                worker = self._waiting.pop()
                if worker.alive:
                    break
                worker.close()
            else:
                self.started += 1
                worker = ExportWorker(self)
            self._working.add(worker)
            return worker

    def take_back(self, worker: ExportWorker, *, keep: bool) -> bool:
        """Whether a worker waits for the next export: it may, it is alive, and its process is as it was."""
        with self._lock:
            self._working.discard(worker)
            room = self._is_open and len(self._waiting) < self.most
            if not keep or not room or not worker.alive or not worker.is_fresh:
                return False
            self._waiting.append(worker)
            return True

    def close(self) -> None:
        """End all workers; an export that runs in another thread fails at once."""
        with self._lock:
            workers = [*self._waiting, *self._working]
            self._is_open = False
            self._waiting.clear()
        for worker in workers:
            worker.close()


_current: ExportWorkers | None = None


def start() -> Worker:
    """A worker for an export: that of the block around, or one that ends with the export."""
    return ExportWorker() if _current is None else _current.start()


def start_class() -> Worker:
    """A worker that runs the class of a model but exports nothing: that of the block around, or a plain one."""
    return Worker() if _current is None else _current.start()


@contextlib.contextmanager
def warm_exports() -> Iterator[ExportWorkers]:
    """Exports inside the block share a warm worker; blocks inside it share that of the outermost."""
    global _current
    if _current is not None:
        yield _current
        return
    _current = ExportWorkers()
    try:
        yield _current
    finally:
        pool, _current = _current, None
        pool.close()

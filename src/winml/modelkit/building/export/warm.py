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

from winml.modelkit.core.errors import ModelkitError
from winml.modelkit.worker.client import Worker

PRELOAD = ("winml.modelkit.building.export.preloaded",)
CAN_FORK = sys.platform == "linux"


class ExportWorker(Worker):
    """A worker for exports; at the end of a `with` block its pool keeps it, as long as it is healthy."""

    def __init__(self, pool: ExportWorkers | None = None) -> None:
        # Threads of OpenBLAS would be there when the process forks; torch has its own.
        env = {**os.environ, "OPENBLAS_NUM_THREADS": os.environ.get("OPENBLAS_NUM_THREADS", "1")}
        super().__init__(preload=PRELOAD if CAN_FORK else (), env=env, apart=CAN_FORK)
        self._pool = pool

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # An error of ours is the answer to an export; after any other the process may still be at work.
        answered = kind is None or issubclass(kind, ModelkitError)
        if self._pool is None or not answered or not self._pool.keep(self):
            self.close()


class ExportWorkers:
    """At most one worker that waits for the next export."""

    def __init__(self) -> None:
        self._kept: ExportWorker | None = None
        self._lock = threading.Lock()
        self._is_open = True
        self.started = 0
        """How many workers were started."""

    def start(self) -> ExportWorker:
        """The worker that waits, or a new one."""
        with self._lock:
            worker, self._kept = self._kept, None
        if worker is not None and worker.alive:
            return worker
        if worker is not None:
            worker.close()
        self.started += 1
        return ExportWorker(self)

    def keep(self, worker: ExportWorker) -> bool:
        """Whether a worker is kept for the next export: it is alive, and its process is as it was."""
        with self._lock:
            if not self._is_open or self._kept is not None or not worker.alive or not worker.is_fresh:
                return False
            self._kept = worker
            return True

    def close(self) -> None:
        with self._lock:
            worker, self._kept, self._is_open = self._kept, None, False
        if worker is not None:
            worker.close()


_current: ExportWorkers | None = None


def start() -> Worker:
    """A worker for an export: that of the block around, or one that ends with the export."""
    return ExportWorker() if _current is None else _current.start()


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

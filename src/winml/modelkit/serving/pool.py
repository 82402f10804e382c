"""Processes that hold the model, a queue before them, and a new process for each that died.

The loop of the server puts jobs in; a thread for each process takes them out, one after another. A process that crashes
or takes too long is one failed answer: the jobs behind it wait for the next process.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any, Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import ModelkitError, RunFailedError, WorkerCrashed, WorkerMemory, WorkerTimeout
from winml.modelkit.core.values import read, to_json
from winml.modelkit.serving.prediction import OpenArguments, OpenedModel
from winml.modelkit.worker.client import Worker, WorkerBug

Health = Literal["starting", "ready", "restarting", "failed", "stopped"]
_DEAD = (WorkerCrashed, WorkerTimeout, WorkerMemory)
_AGAIN_S = (0.0, 1.0, 5.0, 30.0)
"""How long to wait before the model is opened again, after none, one, two and more failures in a row."""


@dataclass
class Job:
    """One request to a process; `done` and `on_event` are called by the thread of the process."""

    op: str
    args: dict[str, Any]
    done: Callable[[Any, BaseException | None], None]
    on_event: Callable[[dict[str, Any]], None] | None = None
    is_dropped: bool = False
    """Whether nobody waits for the answer any more."""


class ModelPool:
    """The processes of a server."""

    def __init__(
        self,
        opening: OpenArguments,
        *,
        python: str | None,
        preload: tuple[str, ...],
        workers: int,
        timeout_s: float,
        open_timeout_s: float | None,
        what: str,
        log: Callable[[str], None],
    ) -> None:
        self._opening = to_json(opening)
        self._python, self._preload = python, preload
        self._timeout_s, self._open_timeout_s = timeout_s, open_timeout_s
        self._what, self._log = what, log
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self.opened: OpenedModel | None = None
        self.restarts = 0
        self.failure: str | None = None
        """Why the model cannot be opened again, of the last attempt."""
        self._slots = [_Slot(self, number) for number in range(workers)]
        self._stopped = threading.Event()

    def open(self) -> OpenedModel:
        """Open the model in every process; the first error is raised."""
        try:
            for slot in self._slots:
                self.opened = slot.open()
        except BaseException:
            self.close()
            raise
        assert self.opened is not None
        for slot in self._slots:
            slot.start()
        return self.opened

    @property
    def health(self) -> Health:
        """That of the best process."""
        states = {slot.health for slot in self._slots}
        order: tuple[Health, ...] = ("ready", "restarting", "starting", "failed", "stopped")
        return next(state for state in order if state in states)

    @property
    def pids(self) -> list[int]:
        return [slot.worker.pid for slot in self._slots if slot.worker is not None and slot.worker.alive]

    def put(self, job: Job) -> None:
        self._jobs.put(job)

    def drop(self, job: Job) -> None:
        """Nobody waits for this answer: what generates text is stopped, what has not begun never begins."""
        job.is_dropped = True
        for slot in self._slots:
            slot.stop_job(job)

    def close(self) -> None:
        """End all processes, also those that work."""
        self._stopped.set()
        for _ in self._slots:
            self._jobs.put(None)
        for slot in self._slots:
            slot.close()


class _Slot:
    """A place for one process."""

    def __init__(self, pool: ModelPool, number: int) -> None:
        self._pool = pool
        self._thread = threading.Thread(target=self._work, name=f"model-{number}", daemon=True)
        self._lock = threading.Lock()
        self._current: Job | None = None
        self.worker: Worker | None = None
        self.health: Health = "starting"

    def open(self) -> OpenedModel:
        pool = self._pool
        self.worker = Worker(preload=pool._preload, python=pool._python)
        what = f"opening {pool._what}"
        answer = self.worker.call("serving.open", pool._opening, timeout_s=pool._open_timeout_s, what=what)
        self.health = "ready"
        return read(OpenedModel, answer, "serving.open")

    def start(self) -> None:
        self._thread.start()

    def stop_job(self, job: Job) -> None:
        with self._lock:
            if self._current is job and self.worker is not None:
                self.worker.send_stop()

    def close(self) -> None:
        self.health = "stopped"
        if self.worker is not None:
            self.worker.close()

    def _work(self) -> None:
        while True:
            job = self._pool._jobs.get()
            if job is None or self._pool._stopped.is_set():
                return
            if job.is_dropped:
                job.done(None, None)
                continue
            if self.worker is None and not self._open_again():
                reason = self._pool.failure or "the model cannot be opened"
                job.done(None, RunFailedError(f"the model is not open: {reason}"))
                continue
            self._answer(job)

    def _answer(self, job: Job) -> None:
        pool, worker = self._pool, self.worker
        assert worker is not None
        with self._lock:
            self._current = job
        try:
            found = worker.call(
                job.op, job.args, timeout_s=pool._timeout_s, on_event=job.on_event, what=f"answering with {pool._what}"
            )
            error: BaseException | None = None
        except (ModelkitError, WorkerBug) as raised:
            found, error = None, raised
        finally:
            with self._lock:
                self._current = None
        if not worker.alive or isinstance(error, _DEAD):
            self.health = "restarting"
            self.worker = None
            worker.close()
        job.done(found, error)
        if self.worker is None and not pool._stopped.is_set():
            pool._log(f"the process with the model ended, and is started again: {error}")
            self._open_again()

    def _open_again(self) -> bool:
        """Open the model in a new process, some times; whether it is open."""
        pool = self._pool
        for pause_s in _AGAIN_S:
            if pool._stopped.wait(pause_s):
                return False
            try:
                self.open()
            except (ModelkitError, WorkerBug, OSError) as error:
                pool.failure = str(error).strip().splitlines()[-1]
                pool._log(f"the model cannot be opened again: {pool.failure}")
                self.health = "failed"
                if self.worker is not None:
                    self.worker.close()
                    self.worker = None
                continue
            pool.restarts += 1
            pool.failure = None
            return True
        return False

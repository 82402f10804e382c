"""Runs jobs on this machine, up to a number in parallel."""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from winml.modelkit.core.errors import UnavailableError
from winml.modelkit.dispatch.base import Job, Result
from winml.modelkit.dispatch.leftovers import Leftovers
from winml.modelkit.dispatch.run import run_job

_LEAST_S = 1.0
"""A program whose preparation took all its time still starts, and says what it waits for."""


class LocalPool:
    """A thread per running job; the thread that submits and waits is the only one that changes anything here."""

    def __init__(
        self,
        slots: int,
        *,
        has: Mapping[str, int] | None = None,
        notes: Path | None = None,
        prepare: Callable[[Job], None] = lambda _: None,
    ) -> None:
        """`has` is what jobs can use; `notes` is a folder that lists running processes, in case the pool is killed.

        `prepare` is called in the thread of a job before its program is started, and takes from the job's time.
        """
        self._slots = slots
        self._has = dict(has or {})
        self._held: Counter[str] = Counter()
        self._queued: list[Job] = []
        self._running: dict[str, tuple[Job, threading.Thread]] = {}
        self._done: queue.SimpleQueue[tuple[str, Result | BaseException]] = queue.SimpleQueue()
        self._cancelled = threading.Event()
        self._prepare = prepare
        self._leftovers = None if notes is None else Leftovers(notes)
        self.ended = () if self._leftovers is None else self._leftovers.end()
        """Processes that an earlier pool left behind."""

    @property
    def slots(self) -> int:
        return self._slots

    def check(self, job: Job) -> None:
        for name, count in job.needs.items():
            if count > self._has.get(name, 0):
                raise UnavailableError(
                    f"job `{job.id}` needs {count} of `{name}`, this machine has {self._has.get(name, 0)}"
                )

    def submit(self, job: Job) -> None:
        self.check(job)
        self._queued.append(job)
        self._start()

    def wait(self, timeout_s: float) -> Result | None:
        try:
            name, result = self._done.get(timeout=timeout_s)
        except queue.Empty:
            return None
        job, thread = self._running.pop(name)
        thread.join()
        self._held.subtract(job.needs)
        if isinstance(result, BaseException):
            raise result
        self._start()
        return result

    def _start(self) -> None:
        for job in list(self._queued):
            if len(self._running) < self._slots and self._fits(job):
                self._queued.remove(job)
                self._held.update(job.needs)
                thread = threading.Thread(target=self._run, args=(job,), name=f"job {job.id}", daemon=True)
                self._running[job.id] = (job, thread)
                thread.start()

    def _fits(self, job: Job) -> bool:
        return all(self._held[name] + count <= self._has.get(name, 0) for name, count in job.needs.items())

    def _run(self, job: Job) -> None:
        try:
            started = time.monotonic()
            self._prepare(job)
            prepared_s = time.monotonic() - started
            job = replace(job, timeout_s=max(job.timeout_s - prepared_s, _LEAST_S))
            if self._leftovers is None:
                result = run_job(job, cancelled=self._cancelled.is_set)
            else:
                result = run_job(job, cancelled=self._cancelled.is_set, on_start=self._leftovers.note)
                self._leftovers.forget(result.pids)
            self._done.put((job.id, replace(result, seconds=prepared_s + result.seconds)))
        except BaseException as error:  # noqa: BLE001 - a problem of this machine, or a bug: raised in `wait`
            self._done.put((job.id, error))

    def close(self) -> None:
        self._queued.clear()
        self._cancelled.set()
        for _, thread in self._running.values():
            thread.join()
        self._running.clear()

    def __enter__(self) -> LocalPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

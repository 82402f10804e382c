"""The calling side of a worker: one process that runs one operation at a time and cannot take us down with it."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Any, TypeVar, cast

from winml.modelkit.core import errors
from winml.modelkit.core.values import read, to_json
from winml.modelkit.worker import exit_reason, limits, scratch
from winml.modelkit.worker.limits import OperationLimits, limits_of
from winml.modelkit.worker.memory import memory_of
from winml.modelkit.worker.process_tree import ProcessTree
from winml.modelkit.worker.scratch import ScratchFolder

T = TypeVar("T")
Message = dict[str, Any]
OnEvent = Callable[[Message], None]

PROGRAM = Path(__file__).with_name("program.py")
SOURCE_ROOT = PROGRAM.parents[3]
"""Folder that holds the `winml` package."""

_LOG_TAIL_BYTES = 8192
_POLL_S = 0.1
_TOO_LATE: Message = {}
_GRACE_S = 2.0
_STARTING_S = 60.0
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


class WorkerBug(Exception):
    """An operation ended with an unexpected exception; the message is its traceback."""


class Worker:
    """A process that runs operations; its working directory is a folder of its own that goes with it."""

    def __init__(
        self,
        *,
        preload: tuple[str, ...] = (),
        python: str | None = None,
        env: dict[str, str] | None = None,
        apart: bool = False,
    ) -> None:
        """Start the process; it imports the modules of `preload` while the caller does other things.

        With `apart` every operation runs in a process that is forked for it, so that the worker stays as it is.
        """
        self._apart = apart
        self._log_start = 0
        self.is_fresh = apart
        """Whether no operation has run in the process itself since it imported what it needs."""
        self._scratch = ScratchFolder("winml-worker-")
        self.folder = self._scratch.path
        self._log_path = self.folder / "worker.log"
        # -P and -I keep the folder of program.py off the path; -I also keeps PYTHONPATH out of another environment.
        program = [python or sys.executable, "-I" if python else "-P", "-u", str(PROGRAM), str(SOURCE_ROOT)]
        with self._log_path.open("wb") as log:
            self._tree = ProcessTree(
                lambda lifeline: [*program, lifeline, str(os.getpid()), *preload], cwd=self.folder, stderr=log, env=env
            )
        self._messages: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._next_id = 0
        self._what = "the worker"
        self._memory: dict[str, int] | None = None
        self._limits = OperationLimits(None, None)
        self._looked = 0.0
        self._ended = False
        self._pid = self._own_pid = self._tree.pid
        self._is_known = threading.Event()
        # A copy, made here: a worker that is closed at once closes its pipe before the thread has begun.
        answers = os.fdopen(os.dup(cast("IO[bytes]", self._tree.process.stdout).fileno()), "rb")
        threading.Thread(target=self._read, args=(answers,), daemon=True).start()
        scratch.sweep_once()  # now, while the process imports

    @property
    def pid(self) -> int:
        """The number of the process that works, once it runs: that of the interpreter and not of its launcher."""
        self._is_known.wait(_STARTING_S)
        return self._pid

    @property
    def alive(self) -> bool:
        return not self._ended and self._tree.process.poll() is None

    def _read(self, answers: IO[bytes]) -> None:
        """Note the number that comes first and pass on every message; None when the process has closed its end."""
        with answers:
            for line in answers:
                try:
                    message = json.loads(line)  # noqa: TID251 - our own process wrote it
                except ValueError:
                    break  # a line cut off by the death of the process
                if not self._is_known.is_set():
                    self._pid = self._own_pid = message["pid"]
                    self._is_known.set()
                elif "forked" in message:
                    self._pid = message["forked"]  # its memory counts
                else:
                    self._messages.put(message)
        self._is_known.set()
        self._messages.put(None)

    def _send(self, message: Message) -> None:
        pipe = cast("IO[bytes]", self._tree.process.stdin)
        # The process is gone, or another thread closed the pipe: reading the answer shows how it ended.
        with contextlib.suppress(OSError, ValueError):
            pipe.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def call(
        self,
        op: str,
        args: Message | None = None,
        *,
        timeout_s: float | None = None,
        on_event: OnEvent | None = None,
        what: str | None = None,
    ) -> Any:
        """Run an operation and return its answer; its error, its death or a timeout is raised as ours.

        `what` names the work in those errors, in words a user knows. Without `timeout_s` the time is that of the kind
        of operation (`worker/limits.py`).
        """
        if self._ended:
            raise RuntimeError("this worker has ended")
        self._next_id += 1
        self._what = what or f"`{op}`"
        self._memory = None  # what others used, and left in the log, is not about this one
        if self._apart:
            self._pid = self._own_pid
            self._log_start = self._log_path.stat().st_size
        self._send({"id": self._next_id, "op": op, "args": args or {}, **({"apart": True} if self._apart else {})})
        self._limits = limits_of(op, args or {}, timeout_s)
        return self._collect(self._limits.timeout_s, on_event)

    def preload(self, *modules: str) -> None:
        """Import further modules in the process itself, before the operations that run from now on."""
        self._next_id += 1
        self._what = "importing what is needed"
        self._send({"id": self._next_id, "op": "ping", "args": {"modules": modules}})
        self._limits = limits_of("ping", {}, None)
        was_fresh = self.is_fresh
        self._collect(self._limits.timeout_s, None)
        self.is_fresh = was_fresh

    def ask(
        self,
        form: type[T],
        op: str,
        args: object = None,
        *,
        timeout_s: float | None = None,
        events: Any = None,
        on_event: Callable[[Any], None] | None = None,
        what: str | None = None,
    ) -> T:
        """`call` with values: `args` is one, the answer is read as `form`, events as `events` (a union of classes)."""

        def tell(message: Message) -> None:
            if on_event is not None:
                on_event(read(events, message, "event", error=errors.WorkerAnswerError))

        answer = self.call(
            op,
            to_json(args) if args is not None else None,
            timeout_s=timeout_s,
            on_event=None if events is None else tell,
            what=what,
        )
        return read(form, answer, op, error=errors.WorkerAnswerError)

    def stop(self, *, timeout_s: float) -> Any:
        """The answer of the running operation with what it has so far; for use after an interrupted `call`."""
        self._send({"op": "stop"})
        return self._collect(timeout_s, None)

    def send_stop(self) -> None:
        """Have the running operation end with what it has, as its answer to `call`; for another thread than that."""
        self._send({"op": "stop"})

    def _collect(self, timeout_s: float | None, on_event: OnEvent | None) -> Any:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            message = self._wait(deadline)
            if message is None:
                raise self._crash_error()
            if message is _TOO_LATE:
                raise self._timeout_error(cast("float", timeout_s))
            if "event" in message:
                if on_event is not None:
                    on_event(message)
            elif message["id"] == self._next_id:
                self.is_fresh = self.is_fresh and bool(message.get("apart"))
                break
        if "ok" in message:
            return message["ok"]
        if "error" in message:
            raise errors.from_json(message["error"], {**message.get("details", {}), "log": self.log_tail()})
        raise WorkerBug(message["bug"])

    def _wait(self, deadline: float | None) -> Message | None:
        """The next message; watches memory meanwhile, also when messages come all the time."""
        while True:
            now = time.monotonic()
            if now - self._looked >= _POLL_S:
                self._looked = now
                self._watch_memory()
            left = _POLL_S if deadline is None else min(_POLL_S, deadline - now)
            try:
                return self._messages.get(timeout=max(left, 0.0))
            except queue.Empty:
                if deadline is not None and time.monotonic() >= deadline:
                    return _TOO_LATE

    def _watch_memory(self) -> None:
        self._memory = memory_of(self._pid) or self._memory
        allowed = self._limits.memory_bytes
        if self._memory is None or allowed is None or self._memory["own_bytes"] <= allowed:
            return
        self._ended = True
        self._tree.end()
        raise errors.WorkerMemory(
            f"{self._what} used {self._memory['own_bytes'] / 2**20:.0f} MiB of memory, more than the "
            f"limit of {allowed / 2**20:.0f} MiB; the process was terminated",
            hint=f"raise the limit with `{limits.MEMORY_LIMIT}=16GiB` (`none`: no limit) if you trust the model",
            details=self._diagnostics(),
        )

    def _timeout_error(self, timeout_s: float) -> errors.WorkerTimeout:
        self._ended = True
        self._tree.end()
        return errors.WorkerTimeout(
            f"{self._what} timed out after {timeout_s:g} s; the process was terminated",
            hint="raise `--timeout`, or check the model for an endless loop",
            details=self._diagnostics(),
        )

    def _crash_error(self) -> errors.WorkerCrashed:
        returncode = self._end()
        how = exit_reason.describe(returncode)
        if exit_reason.KILLED in how and self._memory is not None:
            how += f"; it used up to {self._memory['peak_bytes'] / 2**20:.0f} MiB"
        return errors.WorkerCrashed(
            f"{self._what}: the process {how}",
            hint="the model or the execution provider crashed the process; nothing else was affected",
            details={**self._diagnostics(), "returncode": returncode},
        )

    def _diagnostics(self) -> Message:
        return {"log": self.log_tail(), "memory": self._memory}

    def log(self) -> str:
        """Everything the process and its native libraries logged so far."""
        return self._log_path.read_text("utf-8", "replace")

    def log_tail(self, lines: int = 20) -> list[str]:
        """The last lines the process and its native libraries logged, without colours."""
        try:
            with self._log_path.open("rb") as log:
                log.seek(max(self._log_start, os.fstat(log.fileno()).st_size - _LOG_TAIL_BYTES))
                text = log.read().decode("utf-8", "replace")
        except OSError:
            return []  # the folder went with a closed worker
        plain = (_ANSI.sub("", line).strip() for line in text.splitlines())
        return [line for line in plain if line][-lines:]

    def _end(self) -> int:
        """The status of a process that closed its end by itself, after ending what it left behind."""
        self._ended = True
        try:
            returncode = self._tree.process.wait(timeout=_GRACE_S)
        except subprocess.TimeoutExpired:
            return self._tree.end()
        self._tree.end()
        return returncode

    def close(self) -> None:
        """End the process and remove its folder."""
        self._ended = True
        self._tree.end()
        for pipe in (self._tree.process.stdin, self._tree.process.stdout):
            if pipe is not None:
                pipe.close()
        self._scratch.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

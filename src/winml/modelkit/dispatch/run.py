"""Runs one job on this machine."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from winml.modelkit.core.errors import DiskFull
from winml.modelkit.dispatch.base import PYTHON, Job, Result
from winml.modelkit.store import atomic
from winml.modelkit.worker.command import Finished, run_command
from winml.modelkit.worker.scratch import ScratchFolder

_WORK = "work"
_FULL_BYTES = 64 << 10
"""A disk with less than this is full."""
_TEMPORARY_VARIABLES = ("TMPDIR", "TEMP", "TMP")


class _Cancelled(Exception):
    """The job was cancelled."""


def run_job(
    job: Job,
    *,
    cancelled: Callable[[], bool] = lambda: False,
    on_start: Callable[[int], None] = lambda _: None,
    within: Path | None = None,
) -> Result:
    """Run a job, with retries when it is lost; a timeout or cancellation ends its whole process tree.

    `within` is the parent of its folder; None is the folder for temporary files.
    """
    started = time.monotonic()
    pids: list[int] = []

    def note(pid: int) -> None:
        pids.append(pid)
        on_start(pid)

    attempts = 1
    result = _attempt(job, within, cancelled, note)
    while result.status == "lost" and attempts <= job.retries and not cancelled():
        attempts += 1
        result = _attempt(job, within, cancelled, note)
    return replace(result, seconds=time.monotonic() - started, attempts=attempts, pids=tuple(pids))


def _attempt(job: Job, within: Path | None, cancelled: Callable[[], bool], on_start: Callable[[int], None]) -> Result:
    try:
        # Temporary files are removed with the folder, including those of a killed program.
        folder = ScratchFolder("winml-job-", within=within)
        (folder.path / _WORK).mkdir()
    except OSError as error:
        raise atomic.write_error(error, within or Path(tempfile.gettempdir())) from error
    with folder as path:
        result = _run_program(job, path, cancelled, on_start)
        if result.status == "failed" and shutil.disk_usage(path).free < _FULL_BYTES:
            # Its error message could not be written either.
            raise DiskFull(f"disk full while writing `{path.parent}`", hint="free some space, then run it again")
        return result


def _run_program(job: Job, folder: Path, cancelled: Callable[[], bool], on_start: Callable[[int], None]) -> Result:
    def look(_: float) -> None:
        if cancelled():
            raise _Cancelled

    out, log, work = folder / "out", folder / "log", folder / _WORK
    env = {**(os.environ if job.env is None else job.env), **dict.fromkeys(_TEMPORARY_VARIABLES, str(work))}
    try:
        done = run_command(
            _argv(job),
            cwd=work,
            log=log,
            out=out,
            timeout_s=job.timeout_s,
            env=env,
            on_wait=look,
            on_start=on_start,
        )
    except _Cancelled:
        return Result(job.id, "lost", None, _text(out), _text(log), 0.0)
    except OSError as error:
        return Result(job.id, "failed", None, "", f"`{job.argv[0]}` cannot be started: {error}", 0.0)
    return _result(job, done, _text(out))


def _argv(job: Job) -> list[str]:
    return [sys.executable, *job.argv[1:]] if job.argv[0] == PYTHON else list(job.argv)


def _text(path: Path) -> str:
    return path.read_text("utf-8", "replace") if path.exists() else ""


def _result(job: Job, done: Finished, output: str) -> Result:
    if done.returncode is None:
        return Result(job.id, "timeout", None, output, done.output, 0.0)
    if done.ok:
        return Result(job.id, "ok", 0, output, done.output, 0.0)
    lost = was_killed(done.returncode, f"{output}{done.output}")
    return Result(job.id, "lost" if lost else "failed", done.returncode, output, done.output, 0.0)


_ENDED_BY_OTHERS = {1, 15, 0xFFFFFFFF, 0x40010004, 0xC000013A}
"""Exit codes on Windows: `taskkill` and a job that is closed (1), psutil (15), other tools, logging off, Ctrl-C."""


_KILLED = {-9, -15}
"""Exit codes on Linux and macOS of a process that SIGKILL or SIGTERM ended."""


def was_killed(returncode: int, said: str, *, windows: bool = sys.platform == "win32") -> bool:
    """Whether the program was killed from outside: a crash is its own failure, SIGKILL and SIGTERM are not.

    On Windows the process that ends another one chooses its exit code, often 1; a program that fails prints why.
    """
    if not windows:
        return returncode in _KILLED
    return returncode & 0xFFFFFFFF in _ENDED_BY_OTHERS and not _REASON.search(said)


_REASON = re.compile(r"^(error: |Traceback \(|\S*Error\b)|\"error\": ", re.MULTILINE)

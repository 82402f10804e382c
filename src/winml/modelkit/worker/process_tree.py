"""A child process together with everything it starts, ended as one.

Linux and macOS: a process group of its own. Windows: a job object that dies with our handle. The Windows half
is not run by our tests; nothing here was tried on Windows.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    _JOB_OBJECT_EXTENDED_LIMIT_INFORMATION = 9
    _JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE = 0x2000
    _PROCESS_TERMINATE = 0x1
    _PROCESS_SET_QUOTA = 0x100

    class _BasicLimits(ctypes.Structure):
        _fields_ = [
            ("PerProcessUserTimeLimit", ctypes.c_int64),
            ("PerJobUserTimeLimit", ctypes.c_int64),
            ("LimitFlags", wintypes.DWORD),
            ("MinimumWorkingSetSize", ctypes.c_size_t),
            ("MaximumWorkingSetSize", ctypes.c_size_t),
            ("ActiveProcessLimit", wintypes.DWORD),
            ("Affinity", ctypes.c_size_t),
            ("PriorityClass", wintypes.DWORD),
            ("SchedulingClass", wintypes.DWORD),
        ]

    class _ExtendedLimits(ctypes.Structure):
        _fields_ = [
            ("BasicLimitInformation", _BasicLimits),
            ("IoInfo", ctypes.c_uint64 * 6),
            ("ProcessMemoryLimit", ctypes.c_size_t),
            ("JobMemoryLimit", ctypes.c_size_t),
            ("PeakProcessMemoryUsed", ctypes.c_size_t),
            ("PeakJobMemoryUsed", ctypes.c_size_t),
        ]

    class _Job:
        """A job object; closing its handle ends every process in it."""

        def __init__(self, pid: int) -> None:
            self._kernel = ctypes.WinDLL("kernel32", use_last_error=True)
            self._kernel.CreateJobObjectW.restype = wintypes.HANDLE
            self._kernel.OpenProcess.restype = wintypes.HANDLE
            self._handle: int | None = self._kernel.CreateJobObjectW(None, None)
            process_handle = self._kernel.OpenProcess(_PROCESS_SET_QUOTA | _PROCESS_TERMINATE, False, pid)
            limits = _ExtendedLimits()
            limits.BasicLimitInformation.LimitFlags = _JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
            done = self._kernel.SetInformationJobObject(
                wintypes.HANDLE(self._handle),
                _JOB_OBJECT_EXTENDED_LIMIT_INFORMATION,
                ctypes.byref(limits),
                ctypes.sizeof(limits),
            ) and self._kernel.AssignProcessToJobObject(wintypes.HANDLE(self._handle), wintypes.HANDLE(process_handle))
            code = ctypes.get_last_error()
            self._kernel.CloseHandle(wintypes.HANDLE(process_handle))
            if not done:
                raise ctypes.WinError(code)

        def end(self) -> None:
            if self._handle is not None:
                self._kernel.TerminateJobObject(wintypes.HANDLE(self._handle), 1)
                self._kernel.CloseHandle(wintypes.HANDLE(self._handle))
                self._handle = None


@contextmanager
def _interrupts_held() -> Iterator[list[object]]:
    """Ctrl-C is noted instead of raised: raised while a process is being started, nobody would know of that process."""
    came: list[object] = []
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield came
        return
    signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield came
    finally:
        signal.signal(signal.SIGINT, before)


class ProcessTree:
    """A started program; its stderr goes to a file, its stdin and stdout are pipes unless stdout is a file too."""

    def __init__(
        self,
        argv: list[str],
        *,
        cwd: Path,
        stderr: IO[bytes],
        stdout: IO[bytes] | None = None,
        env: dict[str, str] | None = None,
    ) -> None:
        extra: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            # A group of its own keeps our console's Ctrl-C away from it.
            extra = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
        with _interrupts_held() as interrupts:
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE if stdout is None else subprocess.DEVNULL,
                stdout=subprocess.PIPE if stdout is None else stdout,
                stderr=stderr,
                cwd=cwd,
                env=env,
                bufsize=0,
                **extra,
            )
            if sys.platform == "win32":
                # A worker waits for its first request before it starts anything, so nothing escapes the job.
                self._job = _Job(self.process.pid)
        if interrupts:
            with self.process:
                self.end()
            raise KeyboardInterrupt

    @property
    def pid(self) -> int:
        return self.process.pid

    def end(self) -> int:
        """Kill the process and everything it started; the exit status it ended with."""
        if sys.platform == "win32":
            self._job.end()
        else:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it is gone already, with all its children
            except PermissionError:
                # macOS answers so for a group of processes that have ended
                self.process.kill()
        return self.process.wait()

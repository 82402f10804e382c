"""A child process together with everything it starts, ended as one.

Linux and macOS: a process group of its own with a lifeline to us. Windows: a job object that dies with our handle.
"""

from __future__ import annotations

import atexit
import functools
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeAlias

from winml.modelkit.core.patience import starting

LAUNCH = Path(__file__).with_name("launch.py")

_Process: TypeAlias = "subprocess.Popen[bytes]"

if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    _JOB_OBJECT_BASIC_ACCOUNTING_INFORMATION = 1
    _JOB_OBJECT_EXTENDED_LIMIT_INFORMATION = 9
    _JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE = 0x2000
    _CREATE_SUSPENDED = 0x4
    _ENDING_S = 10.0
    """How long processes that were killed may take to release what they hold, such as a driver."""

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

    class _Accounting(ctypes.Structure):
        _fields_ = [
            ("TotalUserTime", ctypes.c_int64),
            ("TotalKernelTime", ctypes.c_int64),
            ("ThisPeriodTotalUserTime", ctypes.c_int64),
            ("ThisPeriodTotalKernelTime", ctypes.c_int64),
            ("TotalPageFaultCount", wintypes.DWORD),
            ("TotalProcesses", wintypes.DWORD),
            ("ActiveProcesses", wintypes.DWORD),
            ("TotalTerminatedProcesses", wintypes.DWORD),
        ]

    def _limit(kernel: ctypes.WinDLL, job: int | None, flags: int) -> bool:
        limits = _ExtendedLimits()
        limits.BasicLimitInformation.LimitFlags = flags
        kind, size = _JOB_OBJECT_EXTENDED_LIMIT_INFORMATION, ctypes.sizeof(limits)
        return bool(kernel.SetInformationJobObject(wintypes.HANDLE(job), kind, ctypes.byref(limits), size))

    @functools.cache
    def _join_job_of_our_own() -> None:
        """Take this process into a job, so that what it starts is in there from its first moment and ends with it.

        A process joins the job of its tree after it was created, suspended: killed in between, we would leave it there.
        When this process ends by itself, programs that it started for the user, such as a viewer, stay.
        """
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel.CreateJobObjectW.restype = kernel.GetCurrentProcess.restype = wintypes.HANDLE
        job: int | None = kernel.CreateJobObjectW(None, None)
        process = wintypes.HANDLE(kernel.GetCurrentProcess())
        if _limit(kernel, job, _JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE) and kernel.AssignProcessToJobObject(
            wintypes.HANDLE(job), process
        ):
            atexit.register(_limit, kernel, job, 0)
        else:  # Windows 7, where a process is in one job at most
            kernel.CloseHandle(wintypes.HANDLE(job))

    class _Job:
        """A job object; closing its handle ends every process in it, and so does the end of ours."""

        def __init__(self, process: _Process) -> None:
            """Take a process that was started suspended into a job, then let it run."""
            self._kernel = ctypes.WinDLL("kernel32", use_last_error=True)
            self._kernel.CreateJobObjectW.restype = wintypes.HANDLE
            self._handle: int | None = self._kernel.CreateJobObjectW(None, None)
            handle = wintypes.HANDLE(int(process._handle))  # type: ignore[attr-defined]
            done = _limit(
                self._kernel, self._handle, _JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
            ) and self._kernel.AssignProcessToJobObject(wintypes.HANDLE(self._handle), handle)
            code = ctypes.get_last_error()
            if done:
                # subprocess keeps no handle of the first thread, which `ResumeThread` would need.
                code = ctypes.WinDLL("ntdll").NtResumeProcess(handle)
                done = code == 0
            if not done:
                self.end()
                if process.poll() is None:
                    raise ctypes.WinError(code)
                # It was ended before it ran, and an ended process cannot join a job: it has an exit code.

        def end(self) -> None:
            """Kill what is in the job and wait until it is gone: until then its files are open and stay."""
            if self._handle is None:
                return
            job = wintypes.HANDLE(self._handle)
            self._handle = None
            self._kernel.TerminateJobObject(job, 1)
            deadline = time.monotonic() + _ENDING_S
            while self._active(job) and time.monotonic() < deadline:
                time.sleep(0.005)
            self._kernel.CloseHandle(job)

        def _active(self, job: wintypes.HANDLE) -> int:
            """How many processes of the job run; 0 when it cannot be asked."""
            found = _Accounting()
            kind = _JOB_OBJECT_BASIC_ACCOUNTING_INFORMATION
            self._kernel.QueryInformationJobObject(job, kind, ctypes.byref(found), ctypes.sizeof(found), None)
            return int(found.ActiveProcesses)

    def _without_launcher(
        argv: list[str] | str, env: dict[str, str] | None
    ) -> tuple[list[str] | str, dict[str, str] | None]:
        """The words and variables that start our own interpreter as one process.

        The python.exe of a virtual environment is a launcher, and the interpreter its child: its number, memory and
        end are not those of the program. multiprocessing goes past it in the same way.
        """
        interpreter: str = sys._base_executable  # type: ignore[attr-defined]
        if isinstance(argv, str) or argv[0] != sys.executable or interpreter == sys.executable:
            return argv, env
        variables = {**(os.environ if env is None else env), "__PYVENV_LAUNCHER__": sys.executable}
        return [interpreter, *argv[1:]], variables


@contextmanager
def _interrupts_held() -> Iterator[list[object]]:
    """Ctrl-C is noted instead of raised: raised while a process is being started, that process would be lost."""
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


class _Starter:
    """A thread that starts processes and stays until ours ends: Linux kills a child when the thread that started it
    ends, not only when the process does.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted: queue.SimpleQueue[tuple[Callable[[], _Process], queue.SimpleQueue[_Process | BaseException]]]
        self._wanted = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def start(self, begin: Callable[[], _Process]) -> _Process:
        """Start a process in a thread that stays: this one if it is the main thread."""
        if sys.platform != "linux" or threading.current_thread() is threading.main_thread():
            return begin()
        with self._lock:
            if self._thread is None or not self._thread.is_alive():  # none yet, or we are a fork without threads
                self._thread = threading.Thread(target=self._serve, name="starts processes", daemon=True)
                self._thread.start()
        answer: queue.SimpleQueue[_Process | BaseException] = queue.SimpleQueue()
        self._wanted.put((begin, answer))
        found = answer.get()
        if isinstance(found, BaseException):
            raise found
        return found

    def _serve(self) -> None:
        while True:
            begin, answer = self._wanted.get()
            try:
                answer.put(begin())
            except BaseException as error:  # noqa: BLE001 - raised in the thread that asked
                answer.put(error)


_STARTER = _Starter()


class ProcessTree:
    """A started program; its stderr goes to a file, its stdin and stdout are pipes unless stdout is a file too.

    It ends with us, and so does everything it started. A program that takes hold of the lifeline itself gets its words
    from `words(lifeline)`, any other one is launched with it. On Windows there is none, and the word is empty; there
    alone the words may be one text, for programs that do not take them apart as everybody does.
    """

    def __init__(
        self,
        argv: list[str] | str | Callable[[str], list[str]],
        *,
        cwd: Path,
        stderr: IO[bytes],
        stdout: IO[bytes] | None = None,
        env: dict[str, str] | None = None,
    ) -> None:
        options: dict[str, Any] = {
            "stdin": subprocess.PIPE if stdout is None else subprocess.DEVNULL,
            "stdout": subprocess.PIPE if stdout is None else stdout,
            "stderr": stderr,
            "cwd": cwd,
            "env": env,
            "bufsize": 0,
        }
        with _interrupts_held() as interrupts:
            if sys.platform == "win32":
                self._start_in_job(argv("") if callable(argv) else argv, options)
            else:
                self._start_on_lifeline(argv, options)
        if interrupts:
            with self.process:
                self.end()
            raise KeyboardInterrupt

    if sys.platform == "win32":

        def _start_in_job(self, argv: list[str] | str, options: dict[str, Any]) -> None:
            # A group of its own keeps our console's Ctrl-C away from it. It begins to run when it is in the job: what
            # it starts is in there too.
            _join_job_of_our_own()
            argv, options["env"] = _without_launcher(argv, options["env"])
            flags = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW | _CREATE_SUSPENDED
            self.process = starting(lambda: subprocess.Popen(argv, creationflags=flags, **options))
            try:
                self._job = _Job(self.process)
            except BaseException:
                with self.process:
                    self.process.kill()
                raise

    else:

        def _start_on_lifeline(
            self, argv: list[str] | str | Callable[[str], list[str]], options: dict[str, Any]
        ) -> None:
            if isinstance(argv, str):
                raise TypeError("a command in one text is for Windows alone")
            held, self._lifeline = os.pipe()
            try:
                if isinstance(argv, list):
                    self.process = _launch(argv, held, options)
                else:
                    words = argv(str(held))
                    self.process = _STARTER.start(
                        lambda: subprocess.Popen(words, start_new_session=True, pass_fds=(held,), **options)
                    )
            except BaseException:
                os.close(self._lifeline)
                raise
            finally:
                os.close(held)

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
            if self._lifeline >= 0:
                os.close(self._lifeline)
                self._lifeline = -1
        return self.process.wait()


if sys.platform != "win32":

    def _launch(argv: list[str], held: int, options: dict[str, Any]) -> _Process:
        """Start a program of others on the lifeline; raises as `subprocess.Popen` does when it cannot be started."""
        answer, status = os.pipe()
        launcher = [sys.executable, "-I", "-S", str(LAUNCH), str(held), str(status), str(os.getpid())]
        try:
            try:
                process = _STARTER.start(
                    lambda: subprocess.Popen(
                        [*launcher, *argv], start_new_session=True, pass_fds=(held, status), **options
                    )
                )
            finally:
                os.close(status)
            refusal = os.read(answer, 16)
        finally:
            os.close(answer)
        if refusal:
            with process:
                os.killpg(process.pid, signal.SIGKILL)
            raise OSError(int(refusal), os.strerror(int(refusal)), argv[0])
        return process

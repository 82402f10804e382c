"""What the exit status of a process says about how it ended."""

from __future__ import annotations

import signal
import sys

# The NTSTATUS values a native library ends a Windows process with.
NTSTATUS: dict[int, str] = {
    0x80000003: "STATUS_BREAKPOINT",
    0xC0000005: "STATUS_ACCESS_VIOLATION",
    0xC0000006: "STATUS_IN_PAGE_ERROR",
    0xC0000017: "STATUS_NO_MEMORY",
    0xC000001D: "STATUS_ILLEGAL_INSTRUCTION",
    0xC0000025: "STATUS_NONCONTINUABLE_EXCEPTION",
    0xC000008C: "STATUS_ARRAY_BOUNDS_EXCEEDED",
    0xC000008E: "STATUS_FLOAT_DIVIDE_BY_ZERO",
    0xC0000090: "STATUS_FLOAT_INVALID_OPERATION",
    0xC0000094: "STATUS_INTEGER_DIVIDE_BY_ZERO",
    0xC0000095: "STATUS_INTEGER_OVERFLOW",
    0xC00000FD: "STATUS_STACK_OVERFLOW",
    0xC0000135: "STATUS_DLL_NOT_FOUND",
    0xC0000139: "STATUS_ENTRYPOINT_NOT_FOUND",
    0xC000013A: "STATUS_CONTROL_C_EXIT",
    0xC0000142: "STATUS_DLL_INIT_FAILED",
    0xC0000374: "STATUS_HEAP_CORRUPTION",
    0xC0000409: "STATUS_STACK_BUFFER_OVERRUN",
    0xC0000420: "STATUS_ASSERTION_FAILURE",
    0xE06D7363: "uncaught C++ exception",
}

KILLED = "was killed by the system"
_CRASHES = {"SIGFPE", "SIGSEGV", "SIGILL", "SIGBUS", "SIGABRT", "SIGTRAP", "SIGSYS"}


_LINUX = {
    1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
    9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 24: "SIGXCPU", 25: "SIGXFSZ",
    31: "SIGSYS",
}  # fmt: skip
"""What numbers mean where they come from: Windows may report on a job of a Linux node, and names differ there."""


def _signal_name(number: int) -> str:
    if sys.platform == "win32":
        return _LINUX.get(number, f"signal {number}")
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def describe(returncode: int) -> str:
    """How a process that we did not end ended, for use after its name: `crashed with SIGFPE`."""
    if -256 < returncode < 0:  # POSIX; a large negative number is a Windows status read as signed
        name = _signal_name(-returncode)
        if name in _CRASHES:
            return f"crashed with {name}"
        # The status does not say who killed it: an out-of-memory killer and a person look alike.
        return f"{KILLED} ({name})"
    status = returncode & 0xFFFFFFFF
    if status in NTSTATUS:
        return f"crashed with {NTSTATUS[status]} (0x{status:08X})"
    if status >= 0x80000000:
        return f"crashed with status 0x{status:08X}"
    return f"ended unexpectedly with exit code {returncode}"

"""Raised priority while measuring, so that wall time is the model's and not the machine's.

On Linux nothing below a real-time policy helps on a loaded machine: niceness only counts within one session's group of
processes. The watching process outranks the measured one, so that it can still end it.
"""

from __future__ import annotations

import contextlib
import os
import sys

MEASURED = 10
WATCHING = 20


def raise_priority(level: int) -> str | None:
    """Raise this process's priority; its name, or None when that is not permitted."""
    if sys.platform == "linux":
        # Threads of the measured process inherit its priority; what the watching process starts does not.
        policy = os.SCHED_FIFO | (os.SCHED_RESET_ON_FORK if level == WATCHING else 0)
        try:
            os.sched_setscheduler(0, policy, os.sched_param(level))
        except OSError:
            return None  # needs CAP_SYS_NICE; the result says that it was not raised
        return f"fifo-{level}"
    if sys.platform == "win32":
        return _windows(_HIGH if level == WATCHING else _ABOVE_NORMAL)
    return None


def lower_priority() -> None:
    """Back to the ordinary priority."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            # Without CAP_SYS_NICE the flag that keeps children from inheriting may be set, not cleared.
            os.sched_setscheduler(0, os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, os.sched_param(0))
    elif sys.platform == "win32":
        _windows(_NORMAL)


_NORMAL, _ABOVE_NORMAL, _HIGH = 0x20, 0x8000, 0x80

if sys.platform == "win32":

    def _windows(priority_class: int) -> str | None:
        """Set the priority class by ctypes: a worker in another environment may not have psutil."""
        import ctypes

        kernel = ctypes.WinDLL("kernel32")
        kernel.GetCurrentProcess.restype = ctypes.c_void_p
        done = kernel.SetPriorityClass(ctypes.c_void_p(kernel.GetCurrentProcess()), priority_class)
        return {_ABOVE_NORMAL: "above-normal", _HIGH: "high"}.get(priority_class) if done else None

"""Raised priority while measuring, so that wall time is the model's and not the machine's.

On Linux nothing below a real-time policy helps on a loaded machine: niceness only counts within one session's group of
processes. The watching process outranks the measured one, so that it can still end it.
"""

from __future__ import annotations

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
        import psutil

        try:
            psutil.Process().nice(psutil.HIGH_PRIORITY_CLASS)
        except psutil.Error:
            return None
        return "high"
    return None


def lower_priority() -> None:
    """Back to the ordinary priority."""
    if sys.platform == "linux":
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    elif sys.platform == "win32":
        import psutil

        psutil.Process().nice(psutil.NORMAL_PRIORITY_CLASS)

"""Resident memory of a process, now and at its peak, without third-party packages."""

from __future__ import annotations

import os
import sys


def _linux(pid: int) -> dict[str, int] | None:
    try:
        with open(f"/proc/{pid}/status", "rb") as status:  # noqa: PTH123 - read in a polling loop
            fields = dict(line.split(b":", 1) for line in status if line.startswith((b"VmRSS", b"VmHWM")))
    except OSError:
        return None  # the process is gone
    if b"VmRSS" not in fields:
        return None  # a process that has ended and was not collected yet has no memory
    return {
        "rss_bytes": int(fields[b"VmRSS"].split()[0]) * 1024,
        "peak_bytes": int(fields[b"VmHWM"].split()[0]) * 1024,
    }


def _psutil(pid: int) -> dict[str, int] | None:
    try:
        import psutil
    except ImportError:
        return None  # another environment may not have it
    try:
        info = psutil.Process(pid).memory_info()
    except psutil.Error:
        return None
    # Windows keeps the peak itself; elsewhere the present value is all there is.
    return {"rss_bytes": int(info.rss), "peak_bytes": int(getattr(info, "peak_wset", info.rss))}


def memory_of(pid: int | None = None) -> dict[str, int] | None:
    """`rss_bytes` and `peak_bytes` of a process (this one by default), or None when it cannot be asked."""
    number = os.getpid() if pid is None else pid
    return _linux(number) if sys.platform == "linux" else _psutil(number)

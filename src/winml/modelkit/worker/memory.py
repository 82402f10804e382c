"""Resident memory of a process, now and at its peak, without third-party packages."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from winml.modelkit.worker.limits import machine_bytes


def _linux(pid: int) -> dict[str, int] | None:
    try:
        with open(f"/proc/{pid}/status", "rb") as status:  # noqa: PTH123 - read in a polling loop
            fields = dict(line.split(b":", 1) for line in status if line.startswith((b"VmRSS", b"VmHWM", b"Rss")))
    except OSError:
        return None  # the process is gone
    if b"VmRSS" not in fields:
        return None  # a process that has ended and was not collected yet has no memory
    resident = int(fields[b"VmRSS"].split()[0])
    return {
        "rss_bytes": resident * 1024,
        "peak_bytes": int(fields[b"VmHWM"].split()[0]) * 1024,
        # Pages of files go when memory is needed: a model that is mapped may be larger than the machine.
        "own_bytes": (resident - int(fields.get(b"RssFile", b"0").split()[0])) * 1024,
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
    return {
        "rss_bytes": int(info.rss),
        "peak_bytes": int(getattr(info, "peak_wset", info.rss)),
        "own_bytes": int(info.rss),
    }


def memory_of(pid: int | None = None) -> dict[str, int] | None:
    """Resident bytes of a process (this one by default), or None when it cannot be asked.

    `rss_bytes` is all of them, `peak_bytes` the most there were, `own_bytes` those without pages of files, where the
    system tells them apart.
    """
    number = os.getpid() if pid is None else pid
    return _linux(number) if sys.platform == "linux" else _psutil(number)


def available_bytes() -> int | None:
    """Memory that is free or can be freed without writing anything to disk; None when it cannot be asked.

    Never more than the container may have that we are in.
    """
    if sys.platform == "linux":
        found = _linux_available()
    else:
        try:
            import psutil

            found = int(psutil.virtual_memory().available)
        except ImportError:
            found = None
    limit = machine_bytes()
    return found if found is None or limit is None else min(found, limit)


def _linux_available() -> int | None:
    for line in Path("/proc/meminfo").read_text("ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None

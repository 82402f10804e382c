"""Processes of a killed parent: noted in a folder while they run, so that the next parent can remove their files.

They end with their parent (`worker/lifeline.py`, on Windows a job object); one that did not is ended here.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path

from winml.modelkit.store import atomic


class Leftovers:
    """Notes of running processes in a folder that one parent uses at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def note(self, pid: int) -> None:
        import psutil

        with contextlib.suppress(psutil.NoSuchProcess):  # it has already ended, so nothing is left of it
            atomic.write_bytes(self._folder / str(pid), repr(psutil.Process(pid).create_time()).encode())

    def forget(self, pids: Iterable[int]) -> None:
        for pid in pids:
            (self._folder / str(pid)).unlink(missing_ok=True)

    def end(self) -> tuple[int, ...]:
        """End processes left by an earlier parent; returns all noted ones, including those that had already ended."""
        noted = sorted(self._folder.glob("[0-9]*")) if self._folder.is_dir() else []
        for path in noted:
            _end(int(path.name), path.read_text("ascii"))
            path.unlink(missing_ok=True)
        return tuple(int(path.name) for path in noted)


def _end(pid: int, born: str) -> None:
    """Kill the group of a process, unless its id was reused by another one."""
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError, PermissionError):
        if sys.platform != "win32" and repr(psutil.Process(pid).create_time()) == born:
            os.killpg(pid, signal.SIGKILL)

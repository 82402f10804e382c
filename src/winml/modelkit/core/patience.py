"""Retries what Windows refuses for a moment: a file that another process has open, a process that it cannot start."""

from __future__ import annotations

import contextlib
import errno
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

_BUSY = (5, 32, 33)
"""What Windows answers while another process has a file open: access denied, sharing violation, lock violation."""
_SHORT_OF_RESOURCES = (1359, 1450, 1455)
"""What Windows answers when it cannot start a process at the moment: internal error, too few resources, too little
memory to commit."""
_PATIENCE_S = 3.0
_READING_S = 1.0
_LONGEST_WAIT_S = 0.2
_Value = TypeVar("_Value")


def is_busy(error: OSError) -> bool:
    """Whether Windows refused because another process has the file open, or because it is read-only.

    `open` comes from the C library there, which keeps only the number that both have in common; a folder has it too.
    """
    if sys.platform != "win32":
        return False
    if error.winerror is not None:
        return error.winerror in _BUSY
    is_folder = isinstance(error.filename, str) and Path(error.filename).is_dir()
    return error.errno == errno.EACCES and not is_folder


def patiently(
    act: Callable[[], _Value],
    *,
    patience_s: float | None = None,
    is_temporary: Callable[[OSError], bool] = is_busy,
) -> _Value:
    """Do what Windows refuses while another process reads the file, such as a virus scanner; raise when it lasts."""
    deadline = time.monotonic() + (_PATIENCE_S if patience_s is None else patience_s)
    wait_s = 0.002
    while True:
        try:
            return act()
        except OSError as error:
            if not is_temporary(error) or time.monotonic() >= deadline:
                raise
        time.sleep(wait_s)
        wait_s = min(wait_s * 2, _LONGEST_WAIT_S)


def starting(act: Callable[[], _Value]) -> _Value:
    """Start a process; a system that is short of resources is asked again."""
    return patiently(act, is_temporary=lambda error: getattr(error, "winerror", None) in _SHORT_OF_RESOURCES)


def reading(act: Callable[[], _Value]) -> _Value:
    """Open or read a file that another process may just be replacing, which takes it a moment."""
    return patiently(act, patience_s=_READING_S)


def replace(source: Path, destination: Path) -> None:
    """Rename a file over another one, which others may be reading."""
    patiently(lambda: source.replace(destination))


def discard(temporary: Path) -> None:
    """Delete a temporary file if it can be; one that another process holds is left to a later collection."""
    with contextlib.suppress(OSError):  # an error here would hide the one that led here
        patiently(lambda: temporary.unlink(missing_ok=True), patience_s=0.5)

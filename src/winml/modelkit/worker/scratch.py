"""Folders for temporary files that a killed process leaves behind, and that the next one removes.

The owner holds a lock on a file in its folder, which the system lets go of when the owner ends, however it ends. The
number of a process would not do: it may have gone to another process, or be one of another container with this folder.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
from pathlib import Path
from types import TracebackType

PREFIX = "winml-"
OWNER = ".winml-owner"
"""The file that the owner holds a lock on; a folder without one is not ours, and stays."""

if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: int) -> bool:
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False  # another process has it
        return True

else:
    import fcntl

    def _try_lock(file: int) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False  # another process has it, or the file system has no locks
        return True


class ScratchFolder:
    """A folder that goes when it is closed, or after its owner was killed."""

    def __init__(self, prefix: str, *, within: Path | None = None) -> None:
        self.path, self._lock = _make(prefix, within)

    def close(self) -> None:
        import shutil

        if self._lock is None:
            shutil.rmtree(self.path, ignore_errors=True)
            return
        if sys.platform == "win32":  # an open file cannot be deleted there
            os.close(self._lock)
        shutil.rmtree(self.path, ignore_errors=True)
        if sys.platform != "win32":
            os.close(self._lock)
        self._lock = None

    def __enter__(self) -> Path:
        return self.path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _make(prefix: str, within: Path | None) -> tuple[Path, int | None]:
    """A new folder and the lock that we hold on it; no lock where the file system has none."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=within))
        owner = folder / OWNER
        try:
            lock = os.open(owner, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except FileNotFoundError:
            continue  # a cleaner of the system's own removed it
        except OSError:
            folder.rmdir()  # the disk is full
            raise
        if _try_lock(lock) and _is_still(owner, lock):
            return folder, lock
        os.close(lock)
        if folder.exists():
            # Other processes cannot see that we are alive and must not remove it, so the file has to go.
            owner.unlink(missing_ok=True)
            return folder, None


def _is_still(owner: Path, lock: int) -> bool:
    """Whether the file is still there: a process that looked before we had the lock may have removed it."""
    try:
        return os.path.samestat(owner.stat(), os.fstat(lock))
    except FileNotFoundError:
        return False


_SWEPT = threading.Event()


def sweep_once() -> None:
    """Remove what killed processes left where temporary files are, the first time that this process asks."""
    if not _SWEPT.is_set():
        _SWEPT.set()
        sweep(Path(tempfile.gettempdir()))


def sweep(root: Path) -> list[Path]:
    """Remove the folders in `root` whose owner has ended; those that are gone."""
    with contextlib.suppress(OSError), os.scandir(root) as entries:
        found = [Path(e.path) for e in entries if e.name.startswith(PREFIX) and e.is_dir(follow_symlinks=False)]
        return [folder for folder in found if _remove(folder)]
    return []


def _remove(folder: Path) -> bool:
    """Remove a folder if its owner has ended."""
    import shutil

    try:
        if sys.platform != "win32" and folder.lstat().st_uid != os.getuid():
            return False
        lock = os.open(folder / OWNER, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return False  # not ours, or gone in the meantime
    try:
        if not _try_lock(lock):
            return False
        if sys.platform == "win32":
            os.close(lock)
            lock = -1
        shutil.rmtree(folder, ignore_errors=True)
        return not folder.exists()
    finally:
        if lock >= 0:
            os.close(lock)

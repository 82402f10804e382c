"""Content-addressed objects: files named by their digest, written once, linked out, never edited in place."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from winml.modelkit.core import patience
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError, RunFailedError
from winml.modelkit.store import atomic, digest

_CANNOT_LINK = (errno.EXDEV, errno.EMLINK, errno.EPERM, errno.ENOTSUP, errno.EACCES, errno.ENOSYS)
_CANNOT_LINK_WINDOWS = (1, 17, 50, 1142)
"""Invalid function, other volume, not supported, too many links."""

_REMOVAL_S = 0.05
"""How long a collection waits for an object that is open: there may be many, and the next one tries again."""


def files_may_be_shared() -> bool:
    """Whether files for users may be links to one file, which is read-only so that nobody edits it.

    On Windows they are copies: a file with the attribute read-only there cannot be deleted by any of its names.
    """
    return sys.platform != "win32"


class ObjectMissing(RunFailedError):
    """A requested object is not in the store, or was damaged and has been moved aside."""

    code = "object-missing"


@dataclass(frozen=True)
class StoredObject:
    """An object of the store."""

    digest: str
    path: Path
    bytes: int
    used_at: float
    """Seconds since the epoch of its last use by us."""


class Objects:
    """The objects under a folder. Any number of processes may read and write it concurrently."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._marks = folder.parent / "verified"
        self._damaged = folder.parent / "damaged"

    def path(self, name: str) -> Path:
        """Where the object with this digest is, or would be."""
        hexadecimal = digest.check(name).removeprefix(digest.PREFIX)
        return self._folder / hexadecimal[:2] / hexadecimal[2:]

    def __contains__(self, name: str) -> bool:
        return self.path(name).is_file()

    def put_file(self, source: Path) -> str:
        """Store a copy of a file and return its digest; storing the same content again costs only reading it."""
        return self._put(lambda: patience.reading(lambda: source.open("rb")))

    def take_file(self, source: Path) -> str:
        """Store a file of ours by moving it, and return its digest; nobody may have it open.

        It stays and is copied where it is on another volume, has another name, or cannot be written to.
        """
        try:
            found = source.stat()
            if found.st_dev != self._device() or found.st_nlink > 1 or not os.access(source, os.W_OK):
                return self.put_file(source)
            with source.open("rb+") as file:  # Windows writes nothing to disk of a file that is open for reading
                name = digest.PREFIX + hashlib.file_digest(file, "sha256").hexdigest()
                if self._is_sound(name):
                    self._touch(name)
                    return name
                os.fsync(file.fileno())
            self._place(source, name)
        except OSError as error:
            raise atomic.write_error(error, self._folder) from error
        self._mark(name, self.path(name))
        return name

    def _device(self) -> int:
        self._make(self._folder)
        return self._folder.stat().st_dev

    def put_bytes(self, content: bytes) -> str:
        """Store bytes and return their digest."""
        return self._put(lambda: io.BytesIO(content))

    def _put(self, begin: Callable[[], BinaryIO]) -> str:
        self._make(self._folder)
        temporary = atomic.temporary_name(self._folder)
        try:
            with begin() as reader, temporary.open("xb") as writer:
                name, _ = digest.copy(reader, writer)
                if self._is_sound(name):
                    self._touch(name)
                    return name
                writer.flush()
                os.fsync(writer.fileno())
            self._place(temporary, name)
        except OSError as error:
            raise atomic.write_error(error, self._folder) from error
        finally:
            atomic.discard(temporary)
        self._mark(name, self.path(name))
        return name

    def _place(self, temporary: Path, name: str) -> None:
        final = self.path(name)
        self._make(final.parent)
        if sys.platform == "win32":
            self._place_free(temporary, name)
            return
        temporary.chmod(0o444)
        temporary.replace(final)
        atomic.sync_folder(final.parent)

    def _place_free(self, temporary: Path, name: str) -> None:
        """Rename to a free name: Windows does not replace a file that is open."""
        try:
            atomic.patiently(lambda: temporary.rename(self.path(name)))
        except FileExistsError:
            # Another process was faster. A damaged object is moved aside, which frees its name.
            if not self.verify(name):
                atomic.replace(temporary, self.path(name))

    def _make(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise atomic.write_error(error, folder) from error

    def _touch(self, name: str) -> None:
        """Protect an object in use from collection by its access time, and renew its mark."""
        path = self.path(name)
        try:
            os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))
        except OSError:
            return  # not permitted: a shared store of other users can still be read
        self._mark(name, path)

    def open_path(self, name: str) -> Path:
        """The path of a sound object, for reading only; raises ObjectMissing when there is none."""
        if not self._is_sound(name):
            raise ObjectMissing(f"object {name} is not in the store", hint="run the stage again")
        self._touch(name)
        return self.path(name)

    def link_out(self, name: str, destination: Path) -> str:
        """Place the object at `destination`; returns `link`, or `copy` where links are impossible or unsafe."""
        source = self.open_path(name)
        self._make(destination.parent)
        try:
            if not self._may_link(destination) or not self._link(source, destination):
                self._copy(source, destination)
                return "copy"
            self._mark(name, source)  # another link changes the file's state, and this change is ours
        except FileNotFoundError as error:
            raise ObjectMissing(
                f"object {name} was removed while it was being linked", hint="run the stage again"
            ) from error
        except OSError as error:
            raise atomic.write_error(error, destination) from error
        return "link"

    def remove_link(self, name: str, destination: Path) -> None:
        """Remove what `link_out` placed; the object counts as verified as before, because this change is ours."""
        try:
            was_sound = self._mark_path(name).read_text("ascii") == self._state(self.path(name))
            destination.unlink(missing_ok=True)
        except OSError:  # no mark, no object, or a file that is in use: whoever asks next hashes it
            return
        if was_sound:
            self._mark(name, self.path(name))

    def copy_out(self, name: str, destination: Path) -> None:
        """Place a copy of the object at `destination`, which may be written to."""
        try:
            self._copy(self.open_path(name), destination)
        except OSError as error:
            raise atomic.write_error(error, destination) from error

    def _may_link(self, destination: Path) -> bool:
        """Whether nobody will edit the object at this path: folders of the cache itself are not edited."""
        return files_may_be_shared() or destination.absolute().is_relative_to(self._folder.parent.absolute())

    def _link(self, source: Path, destination: Path) -> bool:
        """Link an object to `destination`, replacing a file in one step; returns whether that is possible."""
        try:
            if sys.platform == "win32":
                return self._link_free(source, destination)
            self._link_over(source, destination)
        except OSError as error:
            if self._cannot_link(error):
                return False
            raise
        return True

    @staticmethod
    def _link_free(source: Path, destination: Path) -> bool:
        """Link to a free name: Windows does not rename a link of a file that is open under any of its names."""
        try:
            atomic.patiently(lambda: os.link(source, destination))
        except FileExistsError:
            return source.samefile(destination)
        return True

    @staticmethod
    def _link_over(source: Path, destination: Path) -> None:
        try:
            _link_present(source, destination)
        except FileExistsError:
            temporary = atomic.temporary_name(destination.parent)
            try:
                _link_present(source, temporary)
                atomic.replace(temporary, destination)
            finally:
                atomic.discard(temporary)

    @staticmethod
    def _cannot_link(error: OSError) -> bool:
        return error.errno in _CANNOT_LINK or getattr(error, "winerror", None) in _CANNOT_LINK_WINDOWS

    @staticmethod
    def _copy(source: Path, destination: Path) -> None:
        with patience.reading(lambda: source.open("rb")) as reader, atomic.writing(destination) as writer:
            shutil.copyfileobj(reader, writer, 1 << 20)

    def _state(self, path: Path) -> str:
        """A text that changes whenever a file is written: its change time cannot be set back."""
        stat = path.stat()
        return f"{stat.st_ino} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}"

    def _mark_path(self, name: str) -> Path:
        path = self.path(name)
        return self._marks / path.parent.name / path.name

    def _mark(self, name: str, path: Path) -> None:
        """Record that this file had this digest; a lost mark only costs hashing it again."""
        mark = self._mark_path(name)
        with contextlib.suppress(OSError):  # a full disk, or a store of other users
            mark.parent.mkdir(parents=True, exist_ok=True)
            temporary = atomic.temporary_name(mark.parent)
            try:
                temporary.write_bytes(self._state(path).encode("ascii"))
                atomic.replace(temporary, mark)
            finally:
                atomic.discard(temporary)

    def _is_sound(self, name: str) -> bool:
        """Whether the object exists and matches its digest; hashed once per state of its file.

        On Windows the only change time is one that anyone can set: there it is hashed every time.
        """
        path = self.path(name)
        try:
            state = self._state(path)
        except FileNotFoundError:
            return False
        try:
            if sys.platform != "win32" and self._mark_path(name).read_text("ascii") == state:
                return True
        except (OSError, UnicodeDecodeError):
            pass  # never verified, or an unreadable mark: verify now
        return self.verify(name)

    def verify(self, name: str) -> bool:
        """Hash the object again; a damaged one is moved aside and counts as missing from then on."""
        path = self.path(name)
        try:
            found = atomic.patiently(lambda: digest.of_file(path))  # another process may just be renaming it
        except FileNotFoundError:
            return False
        if found == name:
            self._mark(name, path)
            return True
        self._make(self._damaged)
        aside = self._damaged / f"{path.parent.name}{path.name}-{time.time_ns()}"
        try:
            with contextlib.suppress(FileNotFoundError):  # another process moved or collected it first
                atomic.replace(path, aside)
            atomic.remove(self._mark_path(name))
        except OSError as error:
            raise atomic.write_error(error, path) from error
        return False

    def __iter__(self) -> Iterator[StoredObject]:
        """All objects; those removed by other processes meanwhile are skipped."""
        if not self._folder.is_dir():
            return
        for shelf in sorted(self._folder.iterdir()):
            if len(shelf.name) != 2 or not shelf.is_dir():
                continue
            for path in sorted(shelf.iterdir()):
                try:
                    stat = path.stat()
                    name = digest.check(f"{digest.PREFIX}{shelf.name}{path.name}")
                except (FileNotFoundError, DataError):
                    continue
                yield StoredObject(name, path, stat.st_size, max(stat.st_atime, stat.st_mtime))

    def remove(self, name: str) -> bool:
        """Delete an object; one that is already gone is fine. False when it is open, which only matters on Windows."""
        try:
            atomic.patiently(lambda: self.path(name).unlink(missing_ok=True), patience_s=_REMOVAL_S)
        except OSError as error:
            if atomic.is_busy(error):
                return False
            raise atomic.write_error(error, self.path(name)) from error
        with contextlib.suppress(OSError):  # a mark without its object has no meaning
            self._mark_path(name).unlink(missing_ok=True)
        return True

    def temporaries(self) -> Iterator[Path]:
        """Temporary files of killed processes, and of some that are still writing."""
        for folder in (self._folder, self._marks):
            if folder.is_dir():
                yield from folder.rglob(f"{atomic.TEMPORARY}*")


def _link_present(source: Path, destination: Path) -> None:
    """Link a file that another process may be replacing by an equal one.

    The system finds the old file by its name and then does not link it, because it has none any more.
    """
    for last in (*[False] * 20, True):
        try:
            os.link(source, destination)
        except FileNotFoundError:
            if last or not source.exists() or not destination.parent.is_dir():
                raise
        else:
            return

"""Files that are whole or not there: written under another name, synced, renamed."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar

from winml.modelkit.core.errors import ModelkitError, RequestError, UnavailableError, of_system

TEMPORARY = ".winml-tmp-"
"""How temporary names start; a process that was killed leaves some behind, and collection removes them."""

_BUSY = (5, 32, 33)
"""What Windows answers while somebody has a file open: access denied, sharing violation, lock violation."""
_PATIENCE_S = 3.0
_LONGEST_WAIT_S = 0.2
_Value = TypeVar("_Value")


def is_busy(error: OSError) -> bool:
    """Whether Windows refused for what somebody else has open, or for a file that is read-only.

    `open` comes from the C library there, which keeps only the number that both have in common.
    """
    if sys.platform != "win32":
        return False
    return error.errno == errno.EACCES if error.winerror is None else error.winerror in _BUSY


def patiently(act: Callable[[], _Value], *, patience_s: float | None = None) -> _Value:
    """Do what Windows refuses while another process reads the file, a virus scanner for one; raise when it lasts."""
    deadline = time.monotonic() + (_PATIENCE_S if patience_s is None else patience_s)
    wait_s = 0.002
    while True:
        try:
            return act()
        except OSError as error:
            if not is_busy(error) or time.monotonic() >= deadline:
                raise
        time.sleep(wait_s)
        wait_s = min(wait_s * 2, _LONGEST_WAIT_S)


def replace(source: Path, destination: Path) -> None:
    """Rename a file over another one, which others may be reading."""
    patiently(lambda: source.replace(destination))


def move(source: Path, destination: Path) -> None:
    """Rename a folder or a file to a free name; on Windows one open file inside keeps a folder where it is."""
    patiently(lambda: source.rename(destination))


def remove(path: Path) -> None:
    """Delete a file that others may be reading, one that is gone already is fine."""
    patiently(lambda: path.unlink(missing_ok=True))


def discard(temporary: Path) -> None:
    """Delete a temporary file if it can be; one that somebody holds is left to a collection."""
    with contextlib.suppress(OSError):  # an error here would hide the one that led here
        patiently(lambda: temporary.unlink(missing_ok=True), patience_s=0.5)


def temporary_name(folder: Path) -> Path:
    return folder / f"{TEMPORARY}{os.getpid()}-{secrets.token_hex(6)}"


def refused(error: OSError, path: Path) -> ModelkitError:
    """What keeps us from writing `path` as our error; what has nothing to do with it is raised as it is."""
    found = of_system(error, path, writing=True)
    if found is None:
        raise error
    return found


def make_folder(path: Path, *, exist_ok: bool = True) -> None:
    """Make a folder and those above it."""
    try:
        path.mkdir(parents=True, exist_ok=exist_ok)
    except OSError as error:
        raise refused(error, path) from error


def check_place(path: Path) -> None:
    """Raise when nothing can be written at `path`, or below it when it is a folder; nothing of it stays.

    Permissions do not tell: root passes them all and a file system that is read-only, full of rules or gone does not.
    """
    if "\0" in str(path):
        raise RequestError(f"`{path}` cannot be the name of a file", hint="choose another name")
    place = next((folder for folder in (path, *path.absolute().parents) if os.path.lexists(folder)), None)
    if place == path and not path.is_dir():
        place = path.absolute().parent
    if place is None:
        raise UnavailableError(f"cannot write `{path}`: there is no `{path.anchor}`", hint="choose another place")
    if not place.is_dir():
        raise RequestError(f"cannot write `{path}`: `{place}` is not a folder", hint="choose another place")
    try:
        with tempfile.TemporaryFile(dir=place, prefix=TEMPORARY):
            pass
    except OSError as error:
        error.filename = str(path)  # what the user knows of, and not what was tried
        raise refused(error, path) from error


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` survive a power loss; Windows has no such call and needs none."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """A stream whose content appears as `path` when the block ends well, and nowhere when it does not."""
    temporary = temporary_name(path.parent)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        replace(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        raise refused(error, path) from error
    finally:
        discard(temporary)


def write_bytes(path: Path, content: bytes) -> None:
    with writing(path) as stream:
        stream.write(content)

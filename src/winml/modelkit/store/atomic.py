"""Files that are whole or not there: written under another name, synced, renamed."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from winml.modelkit.core.errors import ModelkitError, RequestError, UnavailableError, of_system
from winml.modelkit.core.file_names import LONG_PATHS_HINT, too_long, unfit_path
from winml.modelkit.core.patience import discard, is_busy, patiently, replace

__all__ = [
    "TEMPORARY",
    "check_place",
    "discard",
    "is_busy",
    "make_folder",
    "move",
    "patiently",
    "remove",
    "replace",
    "sync_folder",
    "temporary_name",
    "write_bytes",
    "write_error",
    "writing",
]

TEMPORARY = ".winml-tmp-"
"""How temporary names start; a process that was killed leaves some behind, and collection removes them."""


def move(source: Path, destination: Path) -> None:
    """Rename a folder or a file to a free name; on Windows one open file inside keeps a folder where it is."""
    patiently(lambda: source.rename(destination))


def remove(path: Path) -> None:
    """Delete a file that others may be reading, one that is gone already is fine."""
    patiently(lambda: path.unlink(missing_ok=True))


def temporary_name(folder: Path) -> Path:
    return folder / f"{TEMPORARY}{os.getpid()}-{secrets.token_hex(6)}"


def write_error(error: OSError, path: Path) -> ModelkitError:
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
        raise write_error(error, path) from error


def check_place(path: Path) -> None:
    """Raise when nothing can be written at `path`, or below it when it is a folder; nothing of it stays.

    Permissions do not tell: root passes them all and a file system that is read-only, full of rules or gone does not.
    """
    if "\0" in str(path):
        raise RequestError(f"`{path}` cannot be the name of a file", hint="choose another name")
    if why := unfit_path(path):
        raise RequestError(f"cannot write `{path}`: {why}", hint="choose another name")
    if why := too_long(path):
        raise UnavailableError(f"cannot write `{path}`: {why}", hint=LONG_PATHS_HINT)
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
        raise write_error(error, path) from error


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
        raise write_error(error, path) from error
    finally:
        discard(temporary)


def write_bytes(path: Path, content: bytes) -> None:
    with writing(path) as stream:
        stream.write(content)

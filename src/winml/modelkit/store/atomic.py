"""Atomic file writes: a file is written under another name, synced and renamed, so it is complete or absent."""

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
"""The prefix of temporary names; a killed process leaves some behind, and a collection removes them."""


def move(source: Path, destination: Path) -> None:
    """Rename a folder or a file to a free name; on Windows one open file inside prevents it."""
    patiently(lambda: source.rename(destination))


def remove(path: Path) -> None:
    """Delete a file that others may be reading; one that is already gone is fine."""
    patiently(lambda: path.unlink(missing_ok=True))


def temporary_name(folder: Path) -> Path:
    return folder / f"{TEMPORARY}{os.getpid()}-{secrets.token_hex(6)}"


def write_error(error: OSError, path: Path) -> ModelkitError:
    """The error for a failed write to `path`; an `OSError` that has another cause is raised as it is."""
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
    """Raise when nothing can be written at `path`, or below it when it is a folder; nothing is left behind.

    Permissions are not enough: root passes them all, and a file system may be read-only, restricted or gone.
    """
    if "\0" in str(path):
        raise RequestError(f"`{path}` is not a valid file name", hint="choose another name")
    if why := unfit_path(path):
        raise RequestError(f"cannot write `{path}`: {why}", hint="choose another name")
    if why := too_long(path):
        raise UnavailableError(f"cannot write `{path}`: {why}", hint=LONG_PATHS_HINT)
    place = next((folder for folder in (path, *path.absolute().parents) if os.path.lexists(folder)), None)
    if place == path and not path.is_dir():
        place = path.absolute().parent
    if place is None:
        raise UnavailableError(f"cannot write `{path}`: there is no `{path.anchor}`", hint="choose another location")
    if not place.is_dir():
        raise RequestError(f"cannot write `{path}`: `{place}` is not a folder", hint="choose another location")
    try:
        with tempfile.TemporaryFile(dir=place, prefix=TEMPORARY):
            pass
    except OSError as error:
        error.filename = str(path)  # the path the user knows, not the temporary one
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
    """A stream whose content appears as `path` when the block succeeds, and nowhere when it fails."""
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

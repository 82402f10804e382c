"""Files that are whole or not there: written under another name, synced, renamed."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from winml.modelkit.core.errors import FULL, DiskFull, ModelkitError, UnavailableError

TEMPORARY = ".winml-tmp-"
"""How temporary names start; a process that was killed leaves some behind, and collection removes them."""


def temporary_name(folder: Path) -> Path:
    return folder / f"{TEMPORARY}{os.getpid()}-{secrets.token_hex(6)}"


def refused(error: OSError, path: Path) -> ModelkitError:
    """A full disk or a missing permission as our error; every other cause is raised as it is."""
    if error.errno in FULL:
        return DiskFull(
            f"disk full while writing `{path}`", hint="free some space (`winml cache gc`), then run it again"
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return UnavailableError(f"no permission to write `{path}`: {error.strerror}")
    raise error


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
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise refused(error, path) from error
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    with writing(path) as stream:
        stream.write(content)

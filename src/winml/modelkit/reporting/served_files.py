"""Files below a folder that is served: links are not followed, and nothing outside of the folder is opened."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from winml.modelkit.core import patience
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError

MOST_FILES = 500
"""Files of one run that are listed; what is below them is in the folder all the same."""
_DEEPEST = 6
_LINK_TAG = 0x20000000
"""The bit of a reparse tag on Windows that says: this is the name of something else (links, junctions, mounts)."""
_HAS_TAGS = hasattr(stat, "IO_REPARSE_TAG_SYMLINK")
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)  # a pipe that took the place of a file must not hold us
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NOINHERIT", 0)
)


@dataclass(frozen=True)
class Listing:
    """What a folder holds besides links, pipes and devices."""

    files: dict[str, os.DirEntry[str]]
    folders: list[str]


def list_folder(folder: str | Path) -> Listing:
    """The files and folders in a folder; raises OSError."""
    found = Listing({}, [])
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                if not _is_junction(entry):
                    found.files[entry.name] = entry
            elif entry.is_dir(follow_symlinks=False) and not _is_junction(entry):
                found.folders.append(entry.name)
    return found


def _is_junction(entry: os.DirEntry[str]) -> bool:
    """Whether an entry that is no symbolic link names something that lies elsewhere: a junction or mount of Windows.

    `DirEntry.is_junction` came with Python 3.12.
    """
    return _HAS_TAGS and has_link_tag(entry.stat(follow_symlinks=False))


def has_link_tag(found: os.stat_result) -> bool:
    """Files that a cloud keeps have tags of their own, and are no links."""
    return stat.S_ISLNK(found.st_mode) or bool(getattr(found, "st_reparse_tag", 0) & _LINK_TAG)


def is_link(path: Path) -> bool:
    """Whether a path names something that lies elsewhere, or nothing."""
    try:
        return has_link_tag(os.lstat(path))
    except OSError:
        return True


def check_inside(root: Path, path: Path) -> None:
    """Raise for a path that is, or goes through, a link: below `root`, which is resolved, a path stays as it is."""
    try:
        real = Path(str(path.resolve(strict=True)).removeprefix("\\\\?\\"))
    except (OSError, RuntimeError) as error:
        raise RequestError(f"`{path}` is no longer there") from error
    if real != path or not real.is_relative_to(root):
        raise RequestError(f"`{path}` is a link, which is not followed")


def open_inside(root: Path, path: Path) -> BinaryIO:
    """A regular file below `root`, open for reading; raises OSError, or RequestError for a link."""
    check_inside(root, path)
    return os.fdopen(_open(path), "rb")


def read_ends(path: str | Path, first: int, last: int = 0) -> tuple[bytes, bytes]:
    """The first and the last bytes of a file that is no link; the folders that lead to it are not looked at."""
    number = _open(path)
    try:
        head = os.read(number, first)
        if len(head) < first or not last:
            return head, head[-last:] if last else b""
        os.lseek(number, max(0, os.fstat(number).st_size - last), os.SEEK_SET)
        return head, os.read(number, last)
    finally:
        os.close(number)


def _open(path: str | Path) -> int:
    """The number of a file that is no link, pipe or device."""
    number = patience.reading(lambda: os.open(path, _FLAGS))
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise RequestError(f"`{path}` is no file")
    return number


def list_below(folder: Path) -> Iterator[tuple[str, Path, int]]:
    """Name with `/`, path and bytes of the files in a folder and below, without hidden ones."""
    left = [(folder, "", 0)]
    count = 0
    while left:
        place, start, depth = left.pop(0)
        try:
            listing = list_folder(place)
        except OSError:
            continue  # it was removed, or nobody may read it
        for name, entry in sorted(listing.files.items()):
            if name.startswith("."):
                continue
            if count == MOST_FILES:
                return
            count += 1
            try:
                yield start + name, place / name, entry.stat(follow_symlinks=False).st_size
            except FileNotFoundError:
                continue  # a run that is being written replaces its files
        if depth < _DEEPEST:
            left += [(place / name, f"{start}{name}/", depth + 1) for name in sorted(listing.folders) if name[0] != "."]

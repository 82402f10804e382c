"""Downloads into a folder: collected in `.winml-pull`, resumed, verified, and then moved in place together."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from winml.modelkit.core import patience
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError, UnavailableError
from winml.modelkit.core.events import OnEvent
from winml.modelkit.core.file_names import LONG_PATHS_HINT, too_long
from winml.modelkit.feed.base import Fetched, FileMoved
from winml.modelkit.feed.content import PULLING, Content, FeedDamaged, FileEntry
from winml.modelkit.store import atomic, digest

CHUNK = 1 << 20


@dataclass(frozen=True)
class Delivery:
    """Bytes of a file starting at `offset`; a source that cannot start there starts at 0."""

    offset: int
    chunks: Iterator[bytes]


Source = Callable[[str, FileEntry, int], AbstractContextManager[Delivery]]
"""Opens a file, by path and entry, at an offset."""


def read_chunks(path: Path, offset: int = 0) -> Iterator[bytes]:
    with patience.reading(lambda: path.open("rb")) as stream:
        stream.seek(offset)
        while chunk := stream.read(CHUNK):
            yield chunk


def is_here(path: Path, entry: FileEntry) -> bool:
    """Whether a file with exactly this content exists."""
    if path.is_symlink() or not path.is_file():
        return False
    return path.stat().st_size == entry.bytes and patience.reading(lambda: digest.of_file(path)) == entry.digest


def land(content: Content, into: Path, source: Source, *, overwrite: bool, on_event: OnEvent) -> Fetched:
    """Download files into a folder; partial files of an interrupted attempt are reused, existing ones are kept."""
    missing = {path: entry for path, entry in content.files.items() if not is_here(into / path, entry)}
    _check_free(into, missing, overwrite=overwrite)
    _check_lengths(into, missing)
    received = 0
    if missing:
        with _waiting_room(into) as room:
            for path, entry in Content(missing).blobs().values():
                received += _bring(room, path, entry, source, on_event)
            _put_in_place(room, into, missing)
    return Fetched(tuple(sorted(content.files)), received, content.bytes - received)


def _check_free(into: Path, files: dict[str, FileEntry], *, overwrite: bool) -> None:
    if into.exists() and not into.is_dir():
        raise RequestError(f"output `{into}` is a file", hint="name a folder")
    for path in files:
        place = into / path
        if place.is_dir():
            raise RequestError(f"`{place}` is a folder, but the version has a file of that name")
        if place.exists() and not overwrite:
            raise RequestError(
                f"`{place}` already exists with different content",
                hint="name a new folder, or add `--overwrite` to replace it",
            )
        for parent in place.relative_to(into).parents:
            # A link on the way would make us write outside the folder.
            if (into / parent).is_symlink() and parent != Path():
                raise RequestError(f"`{into / parent}` is a link", hint="name a new folder")


def _check_lengths(into: Path, files: dict[str, FileEntry]) -> None:
    """Raise before anything is fetched when a name is too long for Windows."""
    for path in files:
        place = into / path
        why = too_long(place) or too_long(place.parent, folder=True)
        if why:
            raise UnavailableError(f"`{path}` cannot be written to `{into}`: {why}", hint=LONG_PATHS_HINT)


@contextlib.contextmanager
def _waiting_room(into: Path) -> Iterator[Path]:
    """The folder for partial downloads, for one process at a time; its files survive a failure and are resumed."""
    from filelock import FileLock, Timeout

    room = into / PULLING
    _refuse_links(room)
    try:
        room.mkdir(parents=True, exist_ok=True)
        lock = FileLock(room / "lock")
        lock.acquire(timeout=0)
    except Timeout as error:
        raise UnavailableError(f"another process is pulling into `{into}`", hint="wait for it to end") from error
    except OSError as error:
        raise atomic.write_error(error, into) from error
    try:
        yield room
        # While the lock is held, otherwise the next process would lose its files too.
        shutil.rmtree(room, ignore_errors=True)
    except FileNotFoundError as error:
        raise UnavailableError(f"`{error.filename}` was removed by another process", hint="run it again") from error
    except OSError as error:
        raise atomic.write_error(error, into) from error
    finally:
        lock.release()
        with contextlib.suppress(OSError):
            room.rmdir()  # where a locked file cannot be removed


def _refuse_links(room: Path) -> None:
    """Raise when the folder or a file in it is a link: writing to it would write elsewhere."""
    inside = room.iterdir() if room.is_dir() and not room.is_symlink() else ()
    for path in (room, *inside):
        if path.is_symlink() or _is_junction(path):
            raise RequestError(f"`{path}` is a link", hint=f"remove `{room}`, or name a new folder")


def _is_junction(path: Path) -> bool:
    """Whether a path is a Windows junction; Python 3.11 has no function for that."""
    try:
        return bool(getattr(os.lstat(path), "st_reparse_tag", 0))
    except OSError:
        return False  # does not exist


def _hexadecimal(entry: FileEntry) -> str:
    return entry.digest.removeprefix(digest.PREFIX)


def _bring(room: Path, path: str, entry: FileEntry, source: Source, on_event: OnEvent) -> int:
    """Fetch one file into the folder for partial downloads; returns the bytes received."""
    whole = room / _hexadecimal(entry)
    if is_here(whole, entry):
        return 0
    part = whole.with_suffix(".part")
    if is_here(part, entry):
        atomic.replace(part, whole)
        return 0
    received, good = _receive(part, path, entry, source, on_event)
    if not good and received < entry.bytes:
        # The partial file of an earlier attempt may be damaged: fetch it from the start.
        atomic.remove(part)
        again, good = _receive(part, path, entry, source, on_event)
        received += again
    if not good:
        atomic.remove(part)
        raise FeedDamaged(
            f"`{path}` arrived with different content than was published ({entry.digest})",
            hint="`winml feed verify` shows which files of a version are damaged",
        )
    atomic.replace(part, whole)
    return received


def _receive(part: Path, path: str, entry: FileEntry, source: Source, on_event: OnEvent) -> tuple[int, bool]:
    """Complete a partial file; returns the bytes received, and whether its digest is right."""
    start = part.stat().st_size if part.exists() else 0
    received = 0
    with source(path, entry, start if start < entry.bytes else 0) as delivery, part.open("ab") as stream:
        stream.truncate(delivery.offset)
        hasher = hashlib.sha256()
        for chunk in read_chunks(part):
            hasher.update(chunk)
        count = delivery.offset
        for chunk in delivery.chunks:
            stream.write(chunk)
            hasher.update(chunk)
            count, received = count + len(chunk), received + len(chunk)
            on_event(FileMoved(path, count, entry.bytes))
            if count > entry.bytes:
                break
        stream.flush()
        os.fsync(stream.fileno())
    return received, count == entry.bytes and digest.PREFIX + hasher.hexdigest() == entry.digest


def _put_in_place(room: Path, into: Path, files: dict[str, FileEntry]) -> None:
    """Rename files to their paths; one that has several paths is copied for all but the last."""
    left = [entry.digest for entry in files.values()]
    for path, entry in files.items():
        left.remove(entry.digest)
        place = into / path
        atomic.make_folder(place.parent)
        waiting = room / _hexadecimal(entry)
        if entry.digest in left:
            copied = atomic.temporary_name(room)
            shutil.copyfile(waiting, copied)
            waiting = copied
        atomic.replace(waiting, place)
    for folder in {(into / path).parent for path in files}:
        atomic.sync_folder(folder)


def find_damaged(content: Content, source: Source, on_event: OnEvent) -> tuple[str, ...]:
    """Read every file without keeping it; returns the paths of those that differ or are missing."""
    bad = {name for name, (path, entry) in content.blobs().items() if not _is_sound(path, entry, source, on_event)}
    return tuple(sorted(path for path, entry in content.files.items() if entry.digest in bad))


def _is_sound(path: str, entry: FileEntry, source: Source, on_event: OnEvent) -> bool:
    hasher = hashlib.sha256()
    count = 0
    try:
        with source(path, entry, 0) as delivery:
            for chunk in delivery.chunks:
                hasher.update(chunk)
                count += len(chunk)
                on_event(FileMoved(path, count, entry.bytes))
                if count > entry.bytes:
                    return False
    except FeedDamaged:
        return False
    return count == entry.bytes and digest.PREFIX + hasher.hexdigest() == entry.digest

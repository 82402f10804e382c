"""An append-only file of JSON lines: events in order, readable after any crash.

A line is `{"schema": "winml/journal/1", "seq": 4, "sum": "...", "record": {...}}`; `sum` covers schema, seq and record.
One process writes at a time (a lock beside the file); any number read. Replaying the records gives the state.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, TypeVar

from winml.modelkit.core import patience, values
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError, UnavailableError
from winml.modelkit.core.json_text import check_value, parse_json
from winml.modelkit.store import atomic, digest

SCHEMA = "winml/journal/1"
T = TypeVar("T")


@dataclass(frozen=True)
class Replay:
    """The content of a journal: its records in order, and a truncated last line, if any."""

    records: tuple[dict[str, Any], ...]
    torn: bytes | None
    good_bytes: int
    """Length of the file up to and including the last whole line."""


def _sum(seq: int, record: dict[str, Any]) -> str:
    return f"{zlib.crc32(digest.canonical([SCHEMA, seq, record])):08x}"


def encode(seq: int, record: dict[str, Any]) -> bytes:
    """One line; raises `JSONError` for a record that could not be read again."""
    check_value(record)
    line = {"schema": SCHEMA, "seq": seq, "sum": _sum(seq, record), "record": record}
    return json.dumps(line, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode() + b"\n"


def _decode(line: bytes, seq: int) -> dict[str, Any]:
    """The record of a line; ValueError says what is wrong with it."""
    value = parse_json(line)
    if not isinstance(value, dict) or not isinstance(value.get("record"), dict):
        raise ValueError("not a journal line")
    if value.get("schema") != SCHEMA:
        raise ValueError(f"its schema is {value.get('schema')!r}, this version reads {SCHEMA!r}")
    if value.get("seq") != seq:
        raise ValueError(f"its number is {value.get('seq')!r}, expected {seq}")
    record: dict[str, Any] = value["record"]
    if value.get("sum") != _sum(seq, record):
        raise ValueError("its checksum does not match")
    return record


def parse(content: bytes, *, source: str) -> Replay:
    """The records of a journal.

    Only the last line may be truncated: a crash during a write does that. Damage before it means lost history,
    which is an error that names the line, never skipped.
    """
    records: list[dict[str, Any]] = []
    position = 0
    while position < len(content):
        end = content.find(b"\n", position)
        line = content[position:] if end < 0 else content[position:end]
        try:
            if end < 0:
                raise ValueError("it is cut off")
            records.append(_decode(line, len(records)))
        except ValueError as error:
            if end in (-1, len(content) - 1) and _is_one_line(line):
                # A crash during a write: the newline can reach the disk before the rest of its line.
                return Replay(tuple(records), content[position:], position)
            raise DataError(
                f"journal `{source}` is damaged in line {len(records) + 1}: {error}",
                hint="restore it from a copy; the lines before it are intact",
            ) from error
        position = end + 1
    return Replay(tuple(records), None, position)


def read_values(
    records: Iterable[Mapping[str, Any]], tag: str, kinds: Mapping[str, type[T]], *, source: str
) -> list[T]:
    """Records as values of the class of their kind; an unknown kind, from a later version, is skipped."""
    found = []
    for number, record in enumerate(records, 1):
        kind = record.get(tag)
        try:
            if not isinstance(kind, str):
                raise DataError(f"`{tag}` must name the kind of the record")
            if kind in kinds:
                found.append(values.read(kinds[kind], record, kind, strict=False, error=DataError))
        except DataError as error:
            message = f"journal `{source}` cannot be used: line {number}: {error.message}"
            raise DataError(message, hint="restore it from a copy") from error
    return found


def _is_one_line(line: bytes) -> bool:
    """Whether a damaged last line is one record; two joined together mean that a complete one was lost."""
    return line.count(b'{"schema":"' + SCHEMA.encode()) <= 1


def read(path: Path) -> Replay:
    """The records of a journal file; one that does not exist has none."""
    try:
        content = patience.reading(path.read_bytes)
    except FileNotFoundError:
        content = b""
    return parse(content, source=str(path))


class Journal:
    """A journal open for writing by this process only; `restart` empties it first, whatever it contains."""

    def __init__(self, path: Path, *, restart: bool = False) -> None:
        from filelock import FileLock, Timeout

        atomic.make_folder(path.parent)
        self.path = path
        self._lock = FileLock(f"{path}.lock")
        try:
            self._lock.acquire(timeout=0)
        except Timeout as error:
            raise UnavailableError(
                f"journal `{path}` is in use by another process", hint="wait for it to end, or use another folder"
            ) from error
        try:
            self.replay = Replay((), None, 0) if restart else read(path)
            if restart:
                atomic.remove(path)
            self._set_torn_aside()
            self._stream: BinaryIO = path.open("ab", buffering=0)
            atomic.sync_folder(path.parent)
        except BaseException:
            self._lock.release()
            raise
        self._next = len(self.replay.records)

    def _set_torn_aside(self) -> None:
        """Move a truncated last line to a file next to the journal, so that the next line starts clean."""
        if self.replay.torn is None:
            return
        atomic.write_bytes(self.path.with_name(f"{self.path.name}.torn-{len(self.replay.records)}"), self.replay.torn)
        with self.path.open("r+b") as stream:
            stream.truncate(self.replay.good_bytes)
            os.fsync(stream.fileno())

    def append(self, record: object) -> None:
        """Write a record, a value or JSON; it is on the disk when this returns."""
        line = encode(self._next, values.to_json(record))
        before = os.fstat(self._stream.fileno()).st_size
        try:
            written = 0
            while written < len(line):
                written += self._stream.write(line[written:])
            os.fsync(self._stream.fileno())
        except BaseException as error:
            # An unacknowledged line must not be followed by another of the same number, nor half a line by
            # any: a full disk and Ctrl-C both end here.
            self._stream.truncate(before)
            if isinstance(error, OSError):
                raise atomic.write_error(error, self.path) from error
            raise
        self._next += 1

    def __iter__(self) -> Iterator[dict[str, Any]]:
        yield from read(self.path).records

    def close(self) -> None:
        self._stream.close()
        self._lock.release()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

"""Results of stages by their key, with an answer to "why was this not in the cache?"."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.json_text import read_json
from winml.modelkit.store import atomic, digest
from winml.modelkit.store.objects import ObjectMissing, Objects

SCHEMA = "winml/stage-entry/1"
CacheAnswer = Literal["hit", "miss"]
"""Whether a result came from the cache."""


@dataclass(frozen=True)
class StageKey:
    """Everything a stage's result depends on. The target is not included: what it decides is in the section."""

    stage: str
    stage_version: int
    section: Mapping[str, Any]
    parent: str | None
    """Digest of the artifact it starts from; None for the first stage."""
    libraries: Mapping[str, str] = field(default_factory=dict)
    """Versions of the libraries the stage lists, and of no others."""
    calibration: str | None = None
    """Digest of the calibration data."""

    def parts(self) -> dict[str, Any]:
        """The parts of the key, one level deep, so that two keys can be compared part by part."""
        flat: dict[str, Any] = {
            "stage": self.stage,
            "stage_version": self.stage_version,
            "parent": self.parent,
            "calibration": self.calibration,
        }
        flat |= {f"section.{name}": value for name, value in self.section.items()}
        flat |= {f"library.{name}": version for name, version in self.libraries.items()}
        return flat

    @property
    def digest(self) -> str:
        return digest.of_json(self.parts())


@dataclass(frozen=True)
class StageEntry:
    """A stored result: its files by name, and whatever the stage stores about it."""

    key: str
    parts: dict[str, Any]
    files: dict[str, str]
    info: dict[str, Any]
    used_at: float

    @property
    def artifact(self) -> str:
        return digest.of_files(self.files)


@dataclass(frozen=True)
class Change:
    """A part of a key that differs from the nearest earlier key; None where one of them lacks it."""

    part: str
    before: Any
    now: Any


@dataclass(frozen=True)
class Explanation:
    """Why a key was or was not in the cache."""

    hit: bool
    changes: tuple[Change, ...]
    reason: str


class StageCache:
    """Entries under a folder; the files they name are objects."""

    def __init__(self, folder: Path, objects: Objects) -> None:
        self._folder = folder
        self._locks = folder.parent / "locks"
        self._objects = objects

    def _path(self, key: str) -> Path:
        return self._folder / f"{digest.check(key).removeprefix(digest.PREFIX)}.json"

    def find(self, key: StageKey) -> StageEntry | None:
        """The entry for a key with all its files intact; an entry that lost a file is dropped and counts as a miss."""
        entry = self._load(self._path(key.digest))
        if entry is None:
            return None
        try:
            for name in entry.files.values():
                self._objects.open_path(name)
        except ObjectMissing:
            atomic.remove(self._path(entry.key))
            return None
        with contextlib.suppress(
            FileNotFoundError
        ):  # a collection removed the entry after we read it; its files are still here
            atomic.patiently(lambda: os.utime(self._path(entry.key)))
        return entry

    def find_made(self, content: str) -> list[StageEntry]:
        """Entries whose only file is this object; others are not even parsed."""
        found = []
        for path in sorted(self._folder.glob("*.json")) if self._folder.is_dir() else ():
            with contextlib.suppress(OSError):  # a collection removed it
                if content.encode() in path.read_bytes():
                    entry = self._load(path)
                    found += [entry] if entry is not None and [*entry.files.values()] == [content] else []
        return found

    def store(
        self, key: StageKey, files: Mapping[str, Path], info: Mapping[str, Any], *, move: bool = False
    ) -> StageEntry:
        """Store the result of a stage: first its files, then the entry that refers to them.

        With `move` the files are gone from where they were.
        """
        if not files:
            raise DataError(f"stage `{key.stage}` produced no files")
        put = self._objects.take_file if move else self._objects.put_file
        stored = {name: put(path) for name, path in files.items()}
        entry = StageEntry(key.digest, key.parts(), stored, dict(info), time.time())
        value = {"schema": SCHEMA, "key": entry.key, "parts": entry.parts, "files": stored, "info": entry.info}
        atomic.write_bytes(self._path(entry.key), json.dumps(value, indent=1, sort_keys=True).encode())
        return entry

    @contextlib.contextmanager
    def computing(self, key: StageKey) -> Iterator[None]:
        """Only one process at a time computes the result of a key: others wait, and then find it."""
        from filelock import FileLock

        path = self._locks / key.digest.removeprefix(digest.PREFIX)
        try:
            self._locks.mkdir(parents=True, exist_ok=True)
            lock = FileLock(path)
            lock.acquire()
        except OSError as error:
            raise atomic.write_error(error, path) from error
        try:
            yield
        finally:
            lock.release()

    def locks(self) -> Iterator[Path]:
        """Lock files; they remain when a lock is released, because others may wait for the same file."""
        yield from self._locks.glob("*")

    def remove(self, entry: StageEntry) -> None:
        atomic.remove(self._path(entry.key))

    def _load(self, path: Path) -> StageEntry | None:
        """An entry, or None when it does not exist or cannot be read: a cache may forget, but must not be wrong."""
        try:
            value = read_json(path)
            if value["schema"] != SCHEMA or digest.of_json(value["parts"]) != value["key"]:
                return None
            files = {str(n): digest.check(d) for n, d in value["files"].items()}
            return StageEntry(value["key"], value["parts"], files, value["info"], path.stat().st_mtime)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, DataError):
            return None

    def __iter__(self) -> Iterator[StageEntry]:
        if self._folder.is_dir():
            for path in sorted(self._folder.glob("*.json")):
                entry = self._load(path)
                if entry is not None:
                    yield entry

    def explain(self, key: StageKey) -> Explanation:
        """Which parts of the key differ from the nearest entry of the same stage."""
        parts = key.parts()
        if self.find(key) is not None:
            return Explanation(True, (), "the same key was stored before")
        others = [e for e in self if e.parts.get("stage") == key.stage]
        if not others:
            return Explanation(False, (), f"nothing is stored for stage `{key.stage}`")
        nearest = min(others, key=lambda e: (len(_differences(e.parts, parts)), -e.used_at))
        changes = _differences(nearest.parts, parts)
        if not changes:
            return Explanation(False, (), "its files were lost or damaged")
        return Explanation(False, changes, f"changed: {', '.join(c.part for c in changes)}")


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[Change, ...]:
    names = sorted({*before, *now})
    return tuple(Change(n, before.get(n), now.get(n)) for n in names if before.get(n) != now.get(n))

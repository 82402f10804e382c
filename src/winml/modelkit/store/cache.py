"""The whole cache: objects, stage results, pins, verification and collection."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from winml.modelkit.core.build_folder import MANIFEST
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.core.json_text import read_json
from winml.modelkit.core.location import cache_root, work_owner
from winml.modelkit.store import atomic, digest
from winml.modelkit.store.objects import Objects
from winml.modelkit.store.stage_cache import StageCache, StageEntry

GRACE_S = 3600.0
WORK_GRACE_S = 24 * 3600.0
"""How long the work folder of a stage may be unmodified before it counts as left behind."""
_PIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}")


@dataclass(frozen=True)
class Collected:
    """What a collection removed, or would remove."""

    objects: int
    bytes: int
    entries: int
    builds: int
    temporaries: int
    kept_bytes: int
    in_use: int = 0
    """Objects that could not be removed because a process has them open; only on Windows."""


class _Kept(Protocol):
    """Something that refers to objects: a stage result or a build folder of the cache."""

    @property
    def files(self) -> Mapping[str, str]: ...

    @property
    def used_at(self) -> float: ...


@dataclass(frozen=True)
class CachedBuild:
    """A build folder in the cache."""

    folder: Path
    files: dict[str, str]
    used_at: float


def _mtime_of(path: Path, otherwise: float) -> float:
    """When a file was last written; `otherwise` when it was just removed."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return otherwise


class Cache:
    """Everything under one cache folder."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or cache_root()
        self.objects = Objects(self.root / "objects")
        self.stages = StageCache(self.root / "stages", self.objects)
        self.builds = self.root / "builds"
        """Build folders without an output path; their files are links to objects."""
        self._pins = self.root / "pins"

    def pin(self, name: str, digests: Iterable[str]) -> None:
        """Protect these objects from collection until `unpin(name)`."""
        if not _PIN_NAME.fullmatch(name):
            raise RequestError(f"invalid pin name: `{name}`")
        listed = sorted({digest.check(d) for d in digests})
        atomic.write_bytes(self._pins / f"{name}.json", json.dumps(listed).encode())

    def unpin(self, name: str) -> None:
        atomic.remove(self._pins / f"{name}.json")

    def pins(self) -> dict[str, frozenset[str]]:
        """Pinned digests by name; a pin that cannot be read raises, because what it protects is unknown."""
        found: dict[str, frozenset[str]] = {}
        for path in sorted(self._pins.glob("*.json")) if self._pins.is_dir() else ():
            try:
                found[path.stem] = frozenset(digest.check(d) for d in read_json(path))
            except (ValueError, TypeError) as error:
                raise RequestError(
                    f"pin `{path}` cannot be read: {error}", hint="delete it if you do not need it"
                ) from error
        return found

    def size_bytes(self) -> int:
        return sum(o.bytes for o in self.objects)

    def verify(self) -> tuple[list[str], int]:
        """Hash every object again; returns the digests of the damaged ones, and how many were checked."""
        names = [o.digest for o in self.objects]
        return [name for name in names if not self.objects.verify(name)], len(names)

    def collect(
        self,
        *,
        max_bytes: int | None = None,
        older_than_s: float | None = None,
        grace_s: float = GRACE_S,
        dry_run: bool = False,
    ) -> Collected:
        """Remove stage results (oldest use first) until the limits hold, then objects that nothing refers to.

        What was used within `grace_s` is kept: a process may be about to refer to it in an entry.
        """
        now = time.time()
        pinned = frozenset().union(*self.pins().values()) if self.pins() else frozenset()
        sizes = {o.digest: o.bytes for o in self.objects}
        kept, dropped = self._choose(now, sizes, pinned, max_bytes, older_than_s)
        named = pinned.union(*(e.files.values() for e in kept)) if kept else pinned
        # The clock of files may be ahead of this one by a tick; without grace nothing is too young.
        garbage = [o for o in self.objects if o.digest not in named and (not grace_s or now - o.used_at > grace_s)]
        stale = [p for p in self.objects.temporaries() if now - _mtime_of(p, now) > GRACE_S]
        # A process that still waits for such a lock at worst computes a result twice.
        stale += [p for p in self.stages.locks() if now - _mtime_of(p, now) > WORK_GRACE_S]
        work = [p for p in self._work_folders() if now - _mtime_of(p, now) > WORK_GRACE_S]
        entries = [e for e in dropped if isinstance(e, StageEntry)]
        builds = [e.folder for e in dropped if isinstance(e, CachedBuild)]
        if not dry_run:
            for folder in (*builds, *work):
                shutil.rmtree(folder, ignore_errors=True)
            for entry in entries:
                self.stages.remove(entry)
            gone = [item for item in garbage if self.objects.remove(item.digest)]
            for path in stale:
                atomic.discard(path)
        else:
            gone = garbage
        removed = sum(o.bytes for o in gone)
        left = sum(sizes.values()) - removed
        in_use = len(garbage) - len(gone)
        return Collected(len(gone), removed, len(entries), len(builds), len(stale) + len(work), left, in_use)

    def iter_builds(self) -> Iterator[CachedBuild]:
        """The build folders of the cache; one with an unreadable manifest refers to nothing and counts as unused."""
        for folder in sorted(self.builds.iterdir()) if self.builds.is_dir() else ():
            if folder.name.startswith(atomic.TEMPORARY):
                continue
            manifest = folder / MANIFEST
            try:
                listed = read_json(manifest)["objects"]
                files = {str(name): digest.check(value) for name, value in listed.items()}
                yield CachedBuild(folder, files, manifest.stat().st_mtime)
            except (OSError, ValueError, KeyError, TypeError, AttributeError, DataError):
                yield CachedBuild(folder, {}, 0.0)

    @staticmethod
    def work_prefix(pid: int) -> str:
        """The prefix of the work folders of a process."""
        return f"{atomic.TEMPORARY}{pid}-"

    @contextlib.contextmanager
    def work_folder(self) -> Iterator[Path]:
        """A folder on the cache's own volume, where objects can be linked; leftovers are collected later."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            prefix = self.work_prefix(work_owner())
            folder = tempfile.TemporaryDirectory(prefix=prefix, dir=self.root, ignore_cleanup_errors=True)
        except OSError as error:
            raise atomic.write_error(error, self.root) from error
        with folder as path:
            yield Path(path)

    def remove_work(self, pids: Iterable[int]) -> None:
        """Remove the work folders of processes that have ended on this machine."""
        for pid in pids:
            for folder in self.root.glob(f"{self.work_prefix(pid)}*"):
                shutil.rmtree(folder, ignore_errors=True)

    def _work_folders(self) -> Iterator[Path]:
        for folder in (self.root, self.builds):
            if folder.is_dir():
                yield from (path for path in folder.glob(f"{atomic.TEMPORARY}*") if path.is_dir())

    def _choose(
        self,
        now: float,
        sizes: dict[str, int],
        pinned: frozenset[str],
        max_bytes: int | None,
        older_than_s: float | None,
    ) -> tuple[list[_Kept], list[_Kept]]:
        """What to keep and to drop: by age first, then the least recently used until the size fits."""
        kept: list[_Kept] = []
        dropped: list[_Kept] = []
        named = set(pinned)
        total = sum(sizes.get(d, 0) for d in named)
        every: list[_Kept] = [*self.stages, *self.iter_builds()]
        for entry in sorted(every, key=lambda e: -e.used_at):
            added = {d: sizes.get(d, 0) for d in entry.files.values() if d not in named}
            old = older_than_s is not None and now - entry.used_at > older_than_s
            full = max_bytes is not None and total + sum(added.values()) > max_bytes
            if old or full:
                dropped.append(entry)
                continue
            kept.append(entry)
            named |= added.keys()
            total += sum(added.values())
        return kept, dropped

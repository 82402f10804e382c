"""The disk a matrix uses: what is in use, what is pinned, what may be collected."""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from winml.modelkit.build_matrix.plan import Cell
from winml.modelkit.build_matrix.progress import Paced
from winml.modelkit.build_matrix.state import Build, CellState
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.values import Count
from winml.modelkit.store.cache import Cache

States = Mapping[str, CellState]


@dataclass(frozen=True, kw_only=True)
class DiskUse:
    """The disk space of the store and the output folder."""

    in_use_bytes: Count
    limit_bytes: Count | None


GRACE_S = 2.0
"""What another command used this recently is kept; none of our builds runs during a collection."""


def bytes_in(*folders: Path) -> int:
    """Bytes of all files below some folders, each file once however many names it has."""
    seen: dict[tuple[int, int], int] = {}
    for folder in folders:
        for parent, _, names in os.walk(folder):
            for name in names:
                try:
                    stat = os.stat(os.path.join(parent, name), follow_symlinks=False)  # noqa: PTH116, PTH118 - thousands of files
                except FileNotFoundError:
                    continue  # a build that runs has just removed it
                seen[stat.st_dev, stat.st_ino] = stat.st_size
    return sum(seen.values())


class Disk:
    """The store and the output folder against one limit."""

    def __init__(
        self, cache: Cache, output: Path, *, limit: int | None, guess: int = 0, grace_s: float = GRACE_S
    ) -> None:
        self._cache = cache
        self._output = output
        self.limit = limit
        self._cell_bytes = guess
        """Bytes per cell: the largest so far, or an estimate before the first."""
        self._grace_s = grace_s
        self._at_most = math.inf
        """What was in use at the last measurement plus everything built since; publishing reduces it."""
        self.recent_usage = Paced(self.in_use)

    def in_use(self) -> int:
        """The bytes in use now; reads the size of every file, so it takes longer the more there are."""
        found = bytes_in(self._cache.root, self._output)
        self._at_most = found
        return found

    def has_room(self, cells: int) -> bool:
        if self.limit is None:
            return True
        if not self._fit(cells, self.limit):
            # While others run, an old answer only delays; with nothing running it must be current.
            measure = self.in_use if cells == 1 else self.recent_usage
            measure()
        return self._fit(cells, self.limit)

    def _fit(self, cells: int, limit: int) -> bool:
        return self._at_most + cells * self._cell_bytes <= limit

    def is_full(self) -> bool:
        return self.limit is not None and self.in_use() >= self.limit

    def add_build(self, build: Build) -> None:
        self._cell_bytes = max(self._cell_bytes, build.bytes)
        # Copies are in the store and in the folder; a build that failed may have left results of its first stages.
        took = build.bytes if build.status == "ok" else self._cell_bytes
        self._at_most += 2 * took if build.files_by == "copy" else took

    def free(self) -> None:
        """Collect stage results, least recently used first, until a cell fits; pinned objects are kept."""
        if self.limit is None:
            return
        last_used = max((item.used_at for item in self._cache.objects), default=0.0)
        time.sleep(min(self._grace_s, max(0.0, last_used + self._grace_s - time.time())))
        elsewhere = self.in_use() - self._cache.size_bytes()
        most = max(0, self.limit - elsewhere - self._cell_bytes)
        self._cache.collect(max_bytes=most, grace_s=self._grace_s)


class Pins:
    """Pins objects: a cell's own until it is published, those that cells of a model share while one is pending."""

    def __init__(self, cache: Cache, cells: Iterable[Cell], pending: Iterable[Cell], states: States) -> None:
        self._cache = cache
        self._pending = {cell.version for cell in pending}
        self._of_model: dict[str, list[Cell]] = {}
        self._shared: dict[str, set[str]] = {}
        for cell in cells:
            self._of_model.setdefault(cell.model.folder, []).append(cell)
            build = states.get(cell.version, CellState()).build
            self._shared.setdefault(cell.model.folder, set()).update(() if build is None else build.shared)
        for folder in self._of_model:
            self._keep_shared(folder)

    def add_build(self, cell: Cell, build: Build, *, keep: bool) -> None:
        """Count a cell as built or failed; `keep` when its own files are not published yet."""
        self._pending.discard(cell.version)
        if build.status == "ok":
            self._shared[cell.model.folder].update(build.shared)
            if keep:
                self._cache.pin(_name(cell.version), build.objects)
        self._keep_shared(cell.model.folder)

    def release(self, cell: Cell) -> None:
        self._cache.unpin(_name(cell.version))

    def _keep_shared(self, folder: str) -> None:
        cells = self._of_model[folder]
        name = _name(f"{cells[0].run_stamp} {folder}")
        if any(cell.version in self._pending for cell in cells):
            self._cache.pin(name, self._shared[folder])
        else:
            self._cache.unpin(name)


def _name(what: str) -> str:
    return f"matrix-{hashlib.sha256(what.encode()).hexdigest()[:32]}"

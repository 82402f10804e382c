"""The output folder of a matrix: the journal (the source of truth), files made from it, logs, and folders of cells."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from winml.modelkit.build_matrix.plan import Cell
from winml.modelkit.build_matrix.state import CellState, Record, make_row, read_records
from winml.modelkit.building.manifest import BuildManifest, load_manifest
from winml.modelkit.building.pipeline import folder as folders
from winml.modelkit.core.build_folder import MANIFEST
from winml.modelkit.core.errors import DataError, RequestError, RunFailedError
from winml.modelkit.core.inside import stays_inside
from winml.modelkit.core.suggest import near_path
from winml.modelkit.core.values import to_json
from winml.modelkit.ep.machine import describe_environment
from winml.modelkit.feed.content import Content, FileEntry, scan
from winml.modelkit.store import atomic, digest, journal

JOURNAL = "journal.jsonl"
RESULTS = "build_only_results.json"
ENVIRONMENT = "environment.json"
LOGS = "logs"
_OURS = ".matrix"
"""Folder inside the output folder where jobs work."""


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class MatrixFolder:
    """Where a matrix writes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes = path / _OURS / "running"
        self._building = path / _OURS / "building"

    @property
    def journal(self) -> Path:
        return self.path / JOURNAL

    def records(self) -> list[Record]:
        return read_records(journal.read(self.journal).records, str(self.journal))

    def check(self, *, resume: bool) -> None:
        """Raise when a run may not write here; a folder that does not exist yet is fine, also with `resume`."""
        if self.path.is_file():
            raise RequestError(f"output `{self.path}` is a file", hint="name a folder")
        if not self.path.parent.is_dir():
            raise RequestError(
                f"output folder's parent not found: `{self.path.parent}`", hint=near_path(self.path.parent)
            )
        started = self.journal.is_file()
        if started and not resume:
            raise RequestError(
                f"`{self.path}` holds a run", hint="continue it with `--resume`, or name a new folder with `-o`"
            )
        # A run that was killed at its start may have left the lock of its journal.
        if not started and self.path.is_dir() and any(path.name != f"{JOURNAL}.lock" for path in self.path.iterdir()):
            raise RequestError(f"output folder `{self.path}` holds other files", hint="name a new folder")

    def prepare(self) -> None:
        """Remove what a killed run left unfinished."""
        shutil.rmtree(self._building, ignore_errors=True)
        for left in [*self.path.glob(f"{atomic.TEMPORARY}*"), *self.path.glob(f"*/{atomic.TEMPORARY}*")]:
            shutil.rmtree(left, ignore_errors=True)

    def write_environment(self, nodes: Mapping[str, Mapping[str, Any]]) -> None:
        """Record this machine, and the nodes that have built something."""
        folders.write_json(self.path / ENVIRONMENT, {**describe_environment(), "nodes": dict(nodes)})

    def of(self, cell: Cell) -> Path:
        return self.path / cell.folder

    def check_place(self, cell: Cell) -> None:
        """Raise when a cell's folder holds files that no build put there: a new build would replace them."""
        if self.of(cell).exists():
            folders.look(self.of(cell))

    def staging_path(self, cell: Cell) -> Path:
        """Where a job builds a cell: a new name, which no process of an earlier run can use."""
        atomic.make_folder(self._building)
        return atomic.temporary_name(self._building) / cell.label

    def place(self, staged: Path, cell: Cell) -> Path:
        """Move a finished build to its place."""
        final = self.of(cell)
        try:
            self.remove(cell)
            final.parent.mkdir(parents=True, exist_ok=True)
            atomic.move(staged, final)
        except OSError as error:
            raise atomic.write_error(error, final) from error
        finally:
            self.discard(staged)
        return final

    def discard(self, staged: Path) -> None:
        shutil.rmtree(staged.parent, ignore_errors=True)

    def remove(self, cell: Cell) -> None:
        """Remove a cell's folder as a whole, and the folder of its model with the last one."""
        final = self.of(cell)
        if not final.is_dir():
            return
        aside = atomic.temporary_name(self.path)
        atomic.move(final, aside)
        shutil.rmtree(aside, ignore_errors=True)
        model = self.path / cell.model.folder
        if model.is_dir() and not any(model.iterdir()):
            model.rmdir()

    def holds(self, cell: Cell, state: CellState) -> bool:
        """Whether a cell's folder has exactly the content that the journal says was built."""
        if state.build is None or state.build.digest is None or not (self.of(cell) / MANIFEST).is_file():
            return False
        return scan(self.of(cell)).content.digest == state.build.digest

    def log(self, cell: Cell, text: str) -> None:
        path = self.path / LOGS / f"{cell.folder.replace('/', '.')}.log"
        atomic.write_bytes(path, text.encode("utf-8", "replace"))

    def write_results(self, cells: Iterable[Cell], states: Mapping[str, CellState], feed: str | None) -> None:
        """Write the results of every cell that has any."""
        rows = {c.version: make_row(c.plan, states[c.version], feed) for c in cells if c.version in states}
        folders.write_json(self.path / RESULTS, to_json(rows))


def content_of(folder: Path, manifest: BuildManifest) -> Content:
    """The content of a folder, by the digests of its manifest; only files without one are read."""
    known = manifest.objects
    names = (*manifest.folder, MANIFEST)
    return Content(
        {n: FileEntry(known.get(n) or digest.of_file(folder / n), (folder / n).stat().st_size) for n in names}
    )


def manifest_of(folder: Path) -> BuildManifest:
    """The manifest of a build; it names no file outside its folder, wherever it was built."""
    try:
        manifest = load_manifest(folder / MANIFEST)
    except DataError as error:
        raise RunFailedError(f"`{folder / MANIFEST}`: {error.message}") from error
    if manifest is None:
        raise RunFailedError(f"`{folder}` has no {MANIFEST} of this version of winml")
    outside = [name for name in (*manifest.folder, *manifest.objects) if not stays_inside(name)]
    if outside:
        raise RunFailedError(f"`{folder / MANIFEST}` names `{outside[0]}`, which is outside its folder")
    return manifest

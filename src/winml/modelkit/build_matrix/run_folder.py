"""The output folder of a matrix: the journal that decides, what is made from it, logs, and the folders of cells."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from winml.modelkit.build_matrix.plan import Cell
from winml.modelkit.build_matrix.state import FORMS, CellState, upload_word
from winml.modelkit.building.pipeline import folder as folders
from winml.modelkit.core.build_folder import MANIFEST
from winml.modelkit.core.errors import RequestError, RunFailedError
from winml.modelkit.core.inside import stays_inside
from winml.modelkit.core.json_text import read_object
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


@dataclass(frozen=True)
class RunRecord:
    """The first record of every run: what it is about."""

    run_stamp: str
    feed: str | None
    cells: tuple[dict[str, Any], ...]
    jobs: int
    max_disk: int | None
    keep_local: bool
    cluster: str | None
    at: str

    def to_json(self) -> dict[str, Any]:
        return {"record": "run", **vars(self), "cells": list(self.cells)}


class MatrixFolder:
    """Where a matrix writes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes = path / _OURS / "running"
        self._building = path / _OURS / "building"

    @property
    def journal(self) -> Path:
        return self.path / JOURNAL

    def records(self) -> tuple[dict[str, Any], ...]:
        return journal.read(self.journal, FORMS).records

    def check(self, *, resume: bool) -> None:
        """Raise when a run may not write here; a folder that is not there yet is fine, also to go on in."""
        if self.path.is_file():
            raise RequestError(f"output `{self.path}` is a file", hint="name a folder")
        if not self.path.parent.is_dir():
            raise RequestError(f"output folder's parent not found: `{self.path.parent}`")
        started = self.journal.is_file()
        if started and not resume:
            raise RequestError(
                f"`{self.path}` holds a run", hint="go on with `--continue`, or name a new folder with `-o`"
            )
        # A run that was killed as it began may have left the lock of its journal.
        if not started and self.path.is_dir() and any(path.name != f"{JOURNAL}.lock" for path in self.path.iterdir()):
            raise RequestError(f"output folder `{self.path}` holds other files", hint="name a new folder")

    def prepare(self) -> None:
        """Clear away what a killed run left half done."""
        shutil.rmtree(self._building, ignore_errors=True)
        for left in [*self.path.glob(f"{atomic.TEMPORARY}*"), *self.path.glob(f"*/{atomic.TEMPORARY}*")]:
            shutil.rmtree(left, ignore_errors=True)

    def write_environment(self, nodes: Mapping[str, Mapping[str, Any]]) -> None:
        """Write down this machine, and the nodes that have built something."""
        folders.write_json(self.path / ENVIRONMENT, {**describe_environment(), "nodes": dict(nodes)})

    def of(self, cell: Cell) -> Path:
        return self.path / cell.folder

    def check_place(self, cell: Cell) -> None:
        """Raise when a cell's folder holds files that no build has put there: a new build would take their place."""
        if self.of(cell).exists():
            folders.look(self.of(cell))

    def staged(self, cell: Cell) -> Path:
        """Where a job builds a cell: a name that no process of an earlier run can know."""
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
            raise atomic.refused(error, final) from error
        finally:
            self.discard(staged)
        return final

    def discard(self, staged: Path) -> None:
        shutil.rmtree(staged.parent, ignore_errors=True)

    def remove(self, cell: Cell) -> None:
        """Take a cell's folder away as a whole, and the folder of its model with the last one."""
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
        """Whether a cell's folder has the very content that the journal says was built."""
        if state.build is None or state.build.digest is None or not (self.of(cell) / MANIFEST).is_file():
            return False
        return scan(self.of(cell)).content.digest == state.build.digest

    def log(self, cell: Cell, text: str) -> None:
        path = self.path / LOGS / f"{cell.folder.replace('/', '.')}.log"
        atomic.write_bytes(path, text.encode("utf-8", "replace"))

    def write_results(self, cells: Iterable[Cell], states: Mapping[str, CellState], feed: str | None) -> None:
        """Write what became of every cell that something has become of."""
        rows = {c.version: row(c.to_json(), states[c.version], feed) for c in cells if c.version in states}
        folders.write_json(self.path / RESULTS, rows)


def content_of(folder: Path, manifest: Mapping[str, Any]) -> Content:
    """What a folder holds, by the digests that its build knows; only files of its own are read."""
    known: Mapping[str, str] = manifest["objects"]
    names = (*manifest["folder"], MANIFEST)
    return Content(
        {n: FileEntry(known.get(n) or digest.of_file(folder / n), (folder / n).stat().st_size) for n in names}
    )


def manifest_of(folder: Path) -> dict[str, Any]:
    """What a build says of itself; its files are its own, wherever it was built."""
    value = read_object(folder / MANIFEST)
    outside = [name for name in (*value["folder"], *value["objects"]) if not stays_inside(name)]
    if outside:
        raise RunFailedError(f"`{folder / MANIFEST}` names `{outside[0]}`, which is not below its folder")
    return value


def row(cell: Mapping[str, Any], state: CellState, feed: str | None) -> dict[str, Any]:
    """A cell in the results, from what the plan says of it."""
    build, upload = state.build, state.upload
    last = upload or build
    return {
        **cell,
        "build_status": None if build is None else build.status,
        "build_stage": None if build is None else build.stage,
        "upload_status": upload_word(state, feed),
        "recorded_at": None if last is None else last.at,
        "error": (upload and upload.error) or (build and build.error),
        "seconds": None if build is None else build.seconds,
        "bytes": None if build is None else build.bytes,
        "digest": upload.digest if upload is not None and upload.digest else build and build.digest,
        "reference": None if upload is None else upload.reference,
        "sent_bytes": None if upload is None else upload.sent_bytes,
        "files_by": None if build is None or build.status != "ok" else build.files_by,
        "computed": [] if build is None else list(build.computed),
        "node": None if build is None else build.node,
    }

"""Builds the cells of a matrix: the command of a job, and the build that its result gives."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from pathlib import Path

from winml.modelkit.build_matrix.plan import Cell
from winml.modelkit.build_matrix.run_folder import MatrixFolder, content_of, manifest_of, now
from winml.modelkit.build_matrix.state import COMPLETE, Build, BuildStatus
from winml.modelkit.building.pipeline.table import COMPILE, QUANTIZE
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.error_object import ErrorObject
from winml.modelkit.core.errors import DiskFull, RequestError
from winml.modelkit.core.json_text import parse_json
from winml.modelkit.core.values import read
from winml.modelkit.dispatch.base import Job, Result
from winml.modelkit.ep.trust import OPTION
from winml.modelkit.store import atomic, digest
from winml.modelkit.store.cache import Cache
from winml.modelkit.store.objects import files_may_be_shared
from winml.modelkit.worker import exit_reason

LOAD = "load"
_OF_ONE_TARGET = (QUANTIZE.name, COMPILE.name)
_LOG_LINES = 3


@dataclass(frozen=True)
class BuildOptions:
    """How cells are built, in addition to the plan."""

    data: str | None = None
    """Calibration data for models that have none of their own; `random` generates synthetic data."""
    words: tuple[str, ...] = ()
    """More options of `winml build`."""
    timeout_s: float = 3600.0
    retries: int = 1


def make_build_options(
    data: DataSection | None,
    *,
    samples: int | None,
    seed: int,
    analyze: bool,
    trusted: Iterable[str],
    timeout_s: float,
) -> BuildOptions:
    """How cells are built with this calibration data; `samples` and `seed` are also for the data of single models."""
    words: list[str] = []
    if data is not None:
        data = data.absolute()
        words += [w for name, value in data.columns.items() for w in ("--column", f"{name}={value}")]
        words += [] if data.processor is None else ["--processor", data.processor]
    words += [] if samples is None else ["--samples", str(samples)]
    words += ["--seed", str(seed)] if seed else []
    words += [] if analyze else ["--no-analyze"]
    words += [w for name in sorted(trusted) for w in (OPTION, name)]
    return BuildOptions(None if data is None else data.source, tuple(words), timeout_s)


@dataclass
class Builder:
    """Creates jobs and takes over their results."""

    folder: MatrixFolder
    cache: Cache
    options: BuildOptions
    _staged: dict[str, Path] = field(default_factory=dict)
    _copies: dict[str, Path] = field(default_factory=dict)
    """Files that had to be copied, by digest."""

    def job(self, cell: Cell) -> Job:
        staged = self.folder.staging_path(cell)
        staged.parent.mkdir()
        self._staged[cell.version] = staged
        argv = (sys.executable, "-m", "winml.modelkit", *self.words(cell), "-o", str(staged), "--json")
        return replace(self.describe_job(cell), argv=argv)

    def describe_job(self, cell: Cell) -> Job:
        """The job of a cell without its command; nothing is prepared for it."""
        return Job(
            cell.version,
            (),
            # A device that compiles is used by one process at a time.
            needs={str(cell.target): 1} if cell.compile else {},
            timeout_s=self.options.timeout_s,
            retries=self.options.retries,
        )

    def words(self, cell: Cell) -> list[str]:
        return build_words(cell, self.options)

    def staging_path(self, cell: Cell) -> Path:
        """Where the job of a cell builds it."""
        return self._staged[cell.version]

    def accept(self, cell: Cell, result: Result) -> Build:
        """Move what a job built to its place; of a job that failed only the log stays."""
        staged = self._staged.pop(cell.version)
        self.cache.remove_work(result.pids)
        answer = _answer(result)
        if result.status == "ok" and answer.ok:
            return self._describe_build(self.folder.place(staged, cell), result)
        self.folder.discard(staged)
        self.folder.log(cell, result.log + result.output)
        if answer.error is not None and answer.error.code == DiskFull.code:
            raise answer.error.exception()
        status: BuildStatus = "timeout" if result.status == "timeout" else "failed"
        error = _last_words(result, self.options) if answer.error is None else answer.error.message
        return Build(status, answer.stage or LOAD, result.seconds, now(), error=error)

    def _describe_build(self, folder: Path, result: Result) -> Build:
        manifest = manifest_of(folder)
        content = content_of(folder, manifest)
        if manifest.files_by == "copy" and files_may_be_shared():
            self._link_copies(folder, manifest.objects)
        shared = [run.artifact.files.values() for run in manifest.stages if run.stage not in _OF_ONE_TARGET]
        return Build(
            status="ok",
            stage=COMPLETE,
            seconds=result.seconds,
            at=now(),
            digest=content.digest,
            bytes=sum(entry.bytes for _, entry in content.blobs().values()),
            objects=tuple(sorted(set(manifest.objects.values()))),
            shared=tuple(sorted({name for files in shared for name in files})),
            files_by=manifest.files_by,
            computed=tuple(run.stage for run in manifest.stages if run.cache == "miss"),
        )

    def _link_copies(self, folder: Path, objects: Mapping[str, str]) -> None:
        """On another volume than the store's, files that cells share are stored only once as well."""
        for file, name in objects.items():
            first = self._copies.get(name)
            # Users can write to it, so only its content shows whether it is unchanged.
            if first is not None and first.is_file() and digest.of_file(first) == name:
                temporary = atomic.temporary_name((folder / file).parent)
                try:
                    os.link(first, temporary)
                    atomic.replace(temporary, folder / file)
                except OSError:
                    continue  # a volume without links keeps its copies
                finally:
                    atomic.discard(temporary)
            else:
                self._copies[name] = folder / file


def build_words(cell: Cell, options: BuildOptions) -> list[str]:
    """The `winml build` command of a cell, without its output folder."""
    words = ["build", "-m", cell.model.source, "--target", str(cell.target), "-p", cell.precision]
    if cell.model.task is not None and cell.model.is_exported:
        words += ["--task", cell.model.task]
    data = cell.model.data or options.data
    if cell.calibrated and data is not None:
        words += ["--calibration", data]
    if cell.compile:
        words.append("--compile")
    return [*words, *options.words]


@dataclass(frozen=True, kw_only=True)
class BuildAnswer:
    """The fields of the JSON of `winml build` that a cell needs."""

    ok: bool = False
    error: ErrorObject | None = None
    stage: str | None = None
    """The stage that failed."""


def _answer(result: Result) -> BuildAnswer:
    """The JSON that a job wrote; empty when it wrote none."""
    try:
        return read(BuildAnswer, parse_json(result.output), strict=False)
    except (ValueError, RequestError):
        return BuildAnswer()


def _last_words(result: Result, options: BuildOptions) -> str:
    if result.status == "timeout":
        return f"the build took longer than {options.timeout_s:g} s and was stopped"
    lines = [line for line in result.log.splitlines() if line.strip()][-_LOG_LINES:]
    how = "was stopped" if result.returncode is None else exit_reason.describe(result.returncode)
    return "; ".join([f"the build {how}", *lines])

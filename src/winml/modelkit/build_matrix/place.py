"""Where the cells of a matrix are built: on this machine, or on the nodes of a cluster."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from winml.modelkit.build_matrix.cells import LOAD, Builder
from winml.modelkit.build_matrix.models import MatrixModel
from winml.modelkit.build_matrix.plan import Cell
from winml.modelkit.build_matrix.run_folder import now
from winml.modelkit.build_matrix.state import Build
from winml.modelkit.building.export.resolve import ExportOptions
from winml.modelkit.building.export.warm import CAN_FORK, ExportWorkers
from winml.modelkit.building.exported import Exporting, export_parts
from winml.modelkit.core import model_ref
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DiskFull, ModelkitError, RequestError, RunFailedError, UnavailableError
from winml.modelkit.core.target import Target
from winml.modelkit.dispatch import cluster as clusters
from winml.modelkit.dispatch.base import Executor, Job, Result
from winml.modelkit.dispatch.cluster import Cluster
from winml.modelkit.dispatch.dask_cluster import DaskCluster
from winml.modelkit.dispatch.local import LocalPool
from winml.modelkit.dispatch.staging import Inputs, Staging, answer_of, job_argv, stamp_of
from winml.modelkit.ep import probing as machine
from winml.modelkit.feed.base import Feed
from winml.modelkit.store.cache import Cache
from winml.modelkit.worker.client import WorkerBug


class BuildPlace(Protocol):
    """A place where cells are built."""

    @property
    def executor(self) -> Executor:
        """What runs the jobs."""

    @property
    def notes(self) -> list[str]:
        """What a user should know about the place."""

    def job(self, cell: Cell) -> Job | Build:
        """The job that builds a cell, or the failure when no job could be created."""

    def accept(self, cell: Cell, result: Result) -> Build:
        """Take over what a job built, or clean up after it."""

    def missing(self, cells: Iterable[Cell]) -> dict[Target, str]:
        """The targets that cannot be compiled for here, with the reason."""

    def finish(self) -> None:
        """Clean up when the run has nothing left to do."""


# This machine


class SharedExports:
    """Exports of the models of a run by workers that stay warm, before the first cell of each is built.

    Every cell is a process of its own, which would import torch and transformers again; what is exported here it finds
    in the store. An export that fails is left to the cell, whose error and log are the result.
    """

    def __init__(self, models: Mapping[str, MatrixModel], workers: ExportWorkers, slots: int, cache: Cache) -> None:
        """`models` are those of the jobs."""
        self._models = models
        self._left = {model.folder for model in models.values() if model.is_exported}
        if len(self._left) < 2 or not CAN_FORK:
            self._left.clear()  # nothing to share
        self._workers = workers
        self._slots = slots
        self._cache = cache
        self._lock = threading.Lock()

    def __call__(self, job: Job) -> None:
        model = self._models[job.id]
        with self._lock:
            if model.folder not in self._left:
                return
            self._left.remove(model.folder)
            self._workers.most = min(self._slots, len(self._left))  # each needs its memory while it waits
        exporting = Exporting(cache=self._cache, timeout_s=job.timeout_s, start=self._workers.start)
        with suppress(ModelkitError, WorkerBug, OSError):
            export_parts(model_ref.parse(model.source), ExportOptions(task=model.task), exporting)


@dataclass(frozen=True)
class LocalPlace:
    """Builds on this machine."""

    builder: Builder
    executor: LocalPool

    @property
    def notes(self) -> list[str]:
        return []

    def job(self, cell: Cell) -> Job:
        return self.builder.job(cell)

    def accept(self, cell: Cell, result: Result) -> Build:
        return self.builder.accept(cell, result)

    def missing(self, cells: Iterable[Cell]) -> dict[Target, str]:
        found = {}
        for target in dict.fromkeys(cell.target for cell in cells if cell.compile):
            absent = machine.plan(str(target), None, None).absent
            if absent is not None:
                found[target] = absent.message
        return found

    def finish(self) -> None:
        """Nothing to clean up: what jobs left behind is already removed."""


@contextmanager
def local_place(builder: Builder, jobs: int, cells: Iterable[Cell]) -> Iterator[LocalPlace]:
    """This machine; processes left behind by a killed run are ended first."""
    models = {cell.version: cell.model for cell in cells}
    devices = {str(cell.target): 1 for cell in cells}
    workers = ExportWorkers()
    prepare = SharedExports(models, workers, jobs, builder.cache)
    # The workers end first: a thread that waits for an export would not see that the run is stopped.
    with LocalPool(jobs, has=devices, notes=builder.folder.notes, prepare=prepare) as pool, closing(workers):
        builder.cache.remove_work(pool.ended)
        yield LocalPlace(builder, pool)


# A cluster


@dataclass(frozen=True)
class Remote:
    """An open cluster, and how files get there and back."""

    executor: DaskCluster
    staging: Staging


@contextmanager
def open_cluster(cluster: Cluster, feed: Feed, folder: Path) -> Iterator[Remote]:
    """Connect to a cluster to submit jobs; raises when it has no usable nodes, or files cannot be staged."""
    staging = Staging(feed, stamp_of(folder))
    staging.check()
    with DaskCluster(cluster) as executor:
        yield Remote(executor, staging)


class ClusterPlace:
    """Builds on nodes: inputs and build folders travel by digest, and only this machine publishes."""

    def __init__(self, builder: Builder, remote: Remote) -> None:
        self.executor = remote.executor
        self._builder = builder
        self._staging = remote.staging
        self._inputs = Inputs(remote.staging)
        self._left: list[str] = []

    @property
    def notes(self) -> list[str]:
        gone = [f"node {name} left the cluster; its jobs were started again" for name in self.executor.gone]
        return [*clusters.find_shared_machines(self.executor.nodes), *gone, *self._left]

    def job(self, cell: Cell) -> Job | Build:
        try:
            words = self._inputs.words(self._builder.words(cell))
        except (RunFailedError, RequestError) as error:
            return Build("failed", LOAD, 0.0, now(), error=error.message)  # the files of one model cannot be staged
        return replace(self._builder.job(cell), argv=job_argv(self._staging, words))

    def accept(self, cell: Cell, result: Result) -> Build:
        answer = answer_of(result)
        # The processes and the store it names are those of the node.
        there = replace(result, output=answer.get("output", ""), pids=())
        if result.status == "ok":
            try:
                self._staging.get(answer["digest"], self._builder.staging_path(cell))
            except (RunFailedError, RequestError) as error:
                there = replace(there, status="failed", log=f"{result.log}\n{error.message}", output="")
        try:
            build = self._builder.accept(cell, there)
        except DiskFull as error:
            raise DiskFull(f"node {result.node}: {error.message}", hint=error.hint) from error
        files_by = "feed" if build.status == "ok" else build.files_by
        return replace(build, objects=(), shared=(), files_by=files_by, node=result.node)

    def missing(self, cells: Iterable[Cell]) -> dict[Target, str]:
        found = {}
        for target, cell in {cell.target: cell for cell in cells if cell.compile}.items():
            try:
                self.executor.check(self._builder.describe_job(cell))
            except UnavailableError as error:
                found[target] = error.message
        return found

    def finish(self) -> None:
        self._left = self._staging.clear()

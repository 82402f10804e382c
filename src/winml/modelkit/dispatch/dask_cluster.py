"""Runs jobs on the nodes of a Dask cluster.

Dask queues and places jobs, and restarts those whose node disappeared. A job that fails, takes too long or is not
needed anymore is never an exception there: the node ends its program (`dask_node.run_here`), so that what it held is
free again.
"""

from __future__ import annotations

import itertools
import math
import queue
import secrets
import time
from types import TracebackType
from typing import TYPE_CHECKING

from winml.modelkit import __version__
from winml.modelkit.core.errors import ModelkitError, RunFailedError, UnavailableError
from winml.modelkit.dispatch import cluster as clusters
from winml.modelkit.dispatch import dask_link
from winml.modelkit.dispatch.base import Job, Result
from winml.modelkit.dispatch.cluster import Cluster, Node

if TYPE_CHECKING:
    from distributed import Future

LOOK_S = 2.0
"""How often the list of nodes is refreshed."""
PATIENCE_S = 60.0
"""How long a job waits for a node with what it needs to come back."""


class DaskCluster:
    """Jobs as Dask tasks; one thread submits and waits."""

    def __init__(self, cluster: Cluster, *, patience_s: float = PATIENCE_S) -> None:
        dask_link.require()
        self._cluster = cluster
        self._patience_s = patience_s
        self._done: queue.SimpleQueue[tuple[str, Future]] = queue.SimpleQueue()
        self._running: dict[str, tuple[Job, Future, float]] = {}
        self._names = (f"winml-{secrets.token_hex(6)}-{number}" for number in itertools.count())
        self._client = dask_link.open_client(cluster)
        self._looked = -math.inf
        self._here: dict[str, Node] = {}
        self._seen: dict[str, Node] = {}
        self._missing: dict[tuple[tuple[str, int], ...], float] = {}
        """Needs that no node can meet now, and since when."""
        self.gone: list[str] = []
        """Nodes that left the cluster."""
        try:
            self._look()
            clusters.check_versions(self.nodes, __version__, cluster)
            if not self._here:
                raise UnavailableError(
                    f"{cluster} has no nodes", hint=f"`winml node --cluster {cluster}` adds a machine"
                )
        except BaseException:
            self._client.close()
            raise

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The current nodes, by name."""
        return tuple(sorted(self._here.values(), key=lambda node: node.name))

    @property
    def slots(self) -> int:
        """The slots of all nodes; 1 when there are none, so that a job is submitted and notices."""
        return max(1, sum(node.slots for node in self._here.values() if node.winml == __version__))

    def check(self, job: Job) -> None:
        clusters.check(job, self.nodes)

    def submit(self, job: Job) -> None:
        # A node that has just left may come back, so every node ever seen counts.
        clusters.check(job, self._seen.values())
        if self._client.status in ("closing", "closed"):
            raise self._make_gone_error()
        from winml.modelkit.dispatch.dask_node import run_here

        future = self._client.submit(
            run_here,
            job,
            key=next(self._names),
            pure=False,
            resources={clusters.slot(__version__): 1, **job.needs},
        )
        self._running[job.id] = (job, future, time.monotonic())
        self._watch(job.id, future)

    def _watch(self, name: str, future: Future) -> None:
        future.add_done_callback(lambda done: self._done.put((name, done)))

    def wait(self, timeout_s: float) -> Result | None:
        deadline = time.monotonic() + timeout_s
        while True:
            if time.monotonic() - self._looked > LOOK_S:
                self._look()
                lost = self._find_stranded()
                if lost is not None:
                    return lost
            left = deadline - time.monotonic()
            try:
                name, future = self._done.get(timeout=max(0.0, min(left, LOOK_S)))
            except queue.Empty:
                if left <= LOOK_S:
                    return None
                continue
            if name in self._running and self._running[name][1] is future:
                return self._collect(name, future)

    def _collect(self, name: str, future: Future) -> Result | None:
        from distributed import KilledWorker

        if future.status in ("cancelled", "lost"):
            raise self._make_gone_error()
        job, _, started = self._running[name]
        try:
            result: Result = future.result(timeout=dask_link.CONNECT_S)
        except TimeoutError:
            # Its node disappeared before the result was fetched: Dask runs the job again.
            self._watch(name, future)
            return None
        except KilledWorker as error:
            result = Result(
                job.id, "lost", None, "", f"its nodes left the cluster: {error}", time.monotonic() - started
            )
        except ModelkitError:
            del self._running[name]
            raise
        except Exception as error:
            del self._running[name]
            raise RunFailedError(f"job `{name}` could not be run: {error!r}") from error
        del self._running[name]
        return result

    def _make_gone_error(self) -> UnavailableError:
        return UnavailableError(
            f"the connection to the scheduler at {self._cluster} was lost",
            hint="start it again; nodes rejoin by themselves",
        )

    def _look(self) -> None:
        """Refresh the list of nodes."""
        try:
            here = dask_link.nodes(self._client)
        except (OSError, ValueError, RuntimeError, UnavailableError) as error:
            raise self._make_gone_error() from error
        left = {node.name for node in self._here.values()} - {node.name for node in here.values()}
        self.gone += sorted(left)
        self._here = here
        self._looked = time.monotonic()
        self._seen |= {node.name: node for node in here.values()}

    def _find_stranded(self) -> Result | None:
        """A job that no node can run, as lost; raises when there are no nodes at all after the wait."""
        now = time.monotonic()
        waiting = {tuple(sorted(job.needs.items())): job for job, _, _ in self._running.values()}
        hopeless = {needs for needs, job in waiting.items() if not any(node.can_run(job) for node in self.nodes)}
        self._missing = {needs: self._missing.get(needs, now) for needs in hopeless}
        for name, (job, future, started) in list(self._running.items()):
            needs = tuple(sorted(job.needs.items()))
            if now - self._missing.get(needs, now) <= self._patience_s:
                continue
            if not self._here:
                raise UnavailableError(f"{self._cluster} has no nodes left", hint="start them again")
            del self._running[name]
            self._client.cancel([future], force=True)
            listed = ", ".join(f"`{need}`" for need in job.needs)
            reason = (
                f"no node with {listed} was available for {self._patience_s:g} s; {clusters.describe_nodes(self.nodes)}"
            )
            return Result(job.id, "lost", None, "", reason, now - started)
        return None

    def close(self) -> None:
        futures = [future for _, future, _ in self._running.values()]
        self._running.clear()
        if futures and self._client.status == "running":
            self._client.cancel(futures, force=True)
        self._client.close()

    def __enter__(self) -> DaskCluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

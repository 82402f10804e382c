"""The processes of a Dask cluster: the scheduler, and a node that runs jobs."""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import tempfile
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import ModelkitError, RunFailedError, UnavailableError
from winml.modelkit.core.events import OnEvent
from winml.modelkit.core.values import to_json
from winml.modelkit.dispatch import cluster as clusters
from winml.modelkit.dispatch import dask_link
from winml.modelkit.dispatch.base import Job, Result
from winml.modelkit.dispatch.cluster import Cluster, Node
from winml.modelkit.dispatch.events import (
    JobEnded,
    JobStarted,
    LeftoversEnded,
    NodeJoined,
    SchedulerAway,
    SchedulerListens,
)
from winml.modelkit.dispatch.leftovers import Leftovers
from winml.modelkit.dispatch.run import run_job
from winml.modelkit.store import atomic

if TYPE_CHECKING:
    from distributed import Worker

_AGAIN_S = 2.0
"""How long a node waits before it tries to join again."""
_WORK = "work"
_PAGES = "127.0.0.1:0"
"""The address of Dask's status pages: never reachable from other machines."""


@dataclass
class _Here:
    """What jobs use on this node."""

    node: Node
    leftovers: Leftovers
    work: Path
    """Folders of jobs, and of Dask; emptied when a node starts."""
    on_event: OnEvent
    jobs: int = 0


_here: _Here | None = None
"""The node of this process; a Dask task gets nothing but its arguments."""


def run_here(job: Job) -> Result:
    """Run a job on this node until it ends or is no longer needed; the only function that Dask runs here."""
    from distributed import get_worker

    if _here is None:
        raise RunFailedError("this process is not a winml node")
    worker: Worker = get_worker()
    key = worker.get_current_task()
    here = _here

    def is_unwanted() -> bool:
        # Dask cannot stop a thread: when the job is cancelled, or its client or the scheduler is gone, only the state
        # of the task changes. The job is ended here, so that what it holds becomes free.
        task = worker.state.tasks.get(key)
        return task is None or task.state != "executing" or worker.status.name != "running"

    here.on_event(JobStarted(job.id))
    try:
        result = run_job(job, cancelled=is_unwanted, on_start=here.leftovers.note, within=here.work)
    except ModelkitError as error:
        raise type(error)(f"node {here.node.name}: {error.message}", hint=error.hint) from error
    here.leftovers.forget(result.pids)
    here.jobs += 1
    here.on_event(JobEnded(job.id, result.status, result.seconds, result.pids))
    return replace(result, node=here.node.name, environment=here.node.environment)


def join(cluster: Cluster, node: Node, notes: Path, on_event: OnEvent, *, listen: str | None = None) -> int:
    """Run a node until interrupted; returns how many jobs it ran. It rejoins a scheduler that was restarted."""
    global _here
    dask_link.require()
    _look_around(cluster, node)
    leftovers = Leftovers(notes)
    on_event(LeftoversEnded(leftovers.end()))
    work = notes.with_name(_WORK)
    try:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise atomic.write_error(error, work) from error
    here = _Here(node, leftovers, work, on_event)
    _here = here
    _run_until_stopped(_run_node(cluster, here, listen))
    return here.jobs


def _look_around(cluster: Cluster, node: Node) -> None:
    """Raise when the cluster cannot be joined: no scheduler, another version, a name that is taken."""
    with dask_link.open_client(cluster) as client:
        there = tuple(dask_link.nodes(client).values())
    clusters.check_versions(there, node.winml, cluster)
    if any(other.name == node.name for other in there):
        raise UnavailableError(f"{cluster} already has a node `{node.name}`", hint="give this one another `--name`")


async def _run_node(cluster: Cluster, here: _Here, listen: str | None) -> None:
    from distributed import Worker

    node = here.node
    joined = False
    while True:
        with tempfile.TemporaryDirectory(prefix="dask-", dir=here.work, ignore_cleanup_errors=True) as scratch:
            worker = Worker(
                cluster.url,
                nthreads=node.slots,
                name=node.name,
                host=listen or _own_address(cluster),
                security=dask_link.security(cluster),
                resources={clusters.slot(node.winml): node.slots, **node.offers},
                startup_information={dask_link.ANNOUNCED: lambda _: to_json(node)},
                memory_limit=0,
                dashboard_address=_PAGES,
                local_directory=scratch,
                death_timeout=dask_link.CONNECT_S,
            )
            try:
                await worker
                joined = True
                here.on_event(NodeJoined(node, str(cluster)))
                await worker.finished()
            except OSError:
                pass  # no scheduler there yet: try again
            except RuntimeError as error:
                # A node that had joined is refused only until the scheduler notices that it had left.
                if not joined:
                    raise UnavailableError(
                        f"{cluster} refused node `{node.name}`: {error.__cause__ or error}"
                    ) from error
            finally:
                await worker.close(timeout=_AGAIN_S)
        here.on_event(SchedulerAway(str(cluster)))
        await asyncio.sleep(_AGAIN_S)


def _own_address(cluster: Cluster) -> str:
    """The address of this machine towards the scheduler: without one Dask listens on all of them."""
    if cluster.is_loopback:
        return "127.0.0.1"
    try:
        found = socket.getaddrinfo(cluster.host, cluster.port, type=socket.SOCK_DGRAM)[0]
        # Connecting a datagram socket sends nothing; it only asks the system for the route.
        with socket.socket(found[0], found[1]) as way:
            way.connect(found[4])
            return str(way.getsockname()[0])
    except OSError as error:
        raise UnavailableError(
            f"{cluster} cannot be reached: {error.strerror or error}",
            hint="name this machine's address with `--listen`",
        ) from error


def serve(cluster: Cluster, on_event: OnEvent) -> None:
    """Run the scheduler of a cluster until interrupted."""
    dask_link.require()
    _run_until_stopped(_run_scheduler(cluster, on_event))


async def _run_scheduler(cluster: Cluster, on_event: OnEvent) -> None:
    from distributed import Scheduler

    try:
        scheduler = await Scheduler(
            host=cluster.host,
            port=cluster.port,
            protocol="tcp" if cluster.tls is None else "tls",
            security=dask_link.security(cluster),
            dashboard=False,
            dashboard_address=_PAGES,
        )
    except (OSError, RuntimeError) as error:
        raise UnavailableError(f"cannot listen on {cluster}: {error.__cause__ or error}") from error
    on_event(SchedulerListens(str(cluster)))
    try:
        await scheduler.finished()
    finally:
        await scheduler.close()


def _run_until_stopped(main: Coroutine[Any, Any, None]) -> None:
    """Run until completion, Ctrl-C or SIGTERM; everything is shut down in order either way."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    # SIGINT alone is not enough: a shell starts background processes with SIGINT ignored.
    before = signal.signal(signal.SIGTERM, stop)
    try:
        # As Dask's own programs do: its connections need a selector loop, which is not the default on Windows.
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            runner.run(main)
    except KeyboardInterrupt:
        return
    finally:
        signal.signal(signal.SIGTERM, before)

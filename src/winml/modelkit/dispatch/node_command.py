"""`winml node`: runs a scheduler, joins this machine to a cluster, or lists the nodes of one."""

from __future__ import annotations

import platform
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Literal

from winml.modelkit import __version__
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError, UnavailableError
from winml.modelkit.core.events import Event, OnEvent
from winml.modelkit.core.location import cache_root
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import AtLeast
from winml.modelkit.dispatch import dask_link, dask_node
from winml.modelkit.dispatch.cluster import Cluster, Node, find_shared_machines
from winml.modelkit.dispatch.events import JobEnded, LeftoversEnded
from winml.modelkit.ep import probing
from winml.modelkit.ep.machine import describe_environment
from winml.modelkit.ep.sys_command import describe_system
from winml.modelkit.store import atomic
from winml.modelkit.store.cache import Cache

_FOLDER = "node"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


@dataclass(frozen=True)
class NodeRequest:
    """A machine to add to a cluster."""

    cluster: Cluster
    name: str | None = None
    devices: tuple[str, ...] = ()
    """Targets it offers; none means all real devices of this machine."""
    jobs: int = 1
    listen: str | None = None
    """The address it listens on; None means the one towards the scheduler."""


@dataclass(frozen=True, kw_only=True)
class NodeResult:
    """The fields of every result."""

    schema: Literal["winml/node/1"] = "winml/node/1"
    ok: Literal[True] = True
    cluster: str


@dataclass(frozen=True, kw_only=True)
class NodeRun(NodeResult):
    """A node, and how many jobs it ran."""

    action: Literal["join"] = "join"
    node: Node
    jobs_run: Annotated[int, AtLeast(0)]


@dataclass(frozen=True, kw_only=True)
class SchedulerRun(NodeResult):
    action: Literal["scheduler"] = "scheduler"


@dataclass(frozen=True, kw_only=True)
class NodeList(NodeResult):
    action: Literal["list"] = "list"
    nodes: tuple[Node, ...]
    notes: tuple[str, ...]


# Join


def join(request: NodeRequest, on_event: OnEvent) -> NodeRun:
    """Run a node until interrupted."""
    dask_link.require()
    node = _node(request)
    with ExitStack() as held:
        notes = _own_folder(held)
        jobs = dask_node.join(request.cluster, node, notes, clean_after_jobs(on_event), listen=request.listen)
    return NodeRun(cluster=str(request.cluster), node=node, jobs_run=jobs)


def clean_after_jobs(on_event: OnEvent) -> OnEvent:
    """Remove what ended jobs left in the cache, then pass events on."""
    cache = Cache()

    def clean(event: Event) -> None:
        if isinstance(event, LeftoversEnded | JobEnded):
            cache.remove_work(event.pids)
        if not isinstance(event, LeftoversEnded):
            on_event(event)

    return clean


def _node(request: NodeRequest) -> Node:
    name = request.name or re.sub(r"[^A-Za-z0-9._-]+", "-", platform.node()).strip("-._") or "node"
    if not _NAME.fullmatch(name):
        raise RequestError(f"invalid node name: `{name}`", hint="letters, digits, `.`, `_` and `-`, at most 63")
    found = _list_targets(request.devices)
    return Node(
        name=name,
        machine=platform.node(),
        winml=__version__,
        slots=request.jobs,
        has={str(target): 1 for target in found},
        simulated=tuple(str(target) for target in found if target.simulated),
        environment=describe_environment(),
    )


def _list_targets(devices: tuple[str, ...]) -> list[Target]:
    """The targets that jobs may use here; simulated ones only when named."""
    if devices:
        return [probing.resolve(word, None, None).target for word in dict.fromkeys(devices)]
    states = describe_system().list_targets()
    return [_target(word) for word in dict.fromkeys(state.target for state in states if state.status == "ready")]


def _target(word: str) -> Target:
    ep, _, device = word.partition("/")
    return Target(ep, device or ep)  # type: ignore[arg-type]  # the table wrote it


def _own_folder(held: ExitStack) -> Path:
    """Where this node notes running processes; a killed node left its notes there, so only one node may use it."""
    from filelock import FileLock, Timeout

    folder = cache_root() / _FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held.enter_context(FileLock(folder / "lock", timeout=0))
    except Timeout as error:
        raise UnavailableError(
            f"another node uses the cache `{folder.parent}`", hint="set `WINML_CACHE` to a folder of its own"
        ) from error
    except OSError as error:
        raise atomic.write_error(error, folder) from error
    return folder / "running"


# Scheduler


def serve(cluster: Cluster, on_event: OnEvent) -> SchedulerRun:
    """Run the scheduler until interrupted."""
    dask_link.require()
    dask_node.serve(cluster, on_event)
    return SchedulerRun(cluster=str(cluster))


# List


def list_nodes(cluster: Cluster) -> NodeList:
    """The nodes that are there."""
    dask_link.require()
    with dask_link.open_client(cluster) as client:
        found = tuple(sorted(dask_link.nodes(client).values(), key=lambda node: node.name))
    return NodeList(cluster=str(cluster), nodes=found, notes=tuple(find_shared_machines(found)))

"""`winml node`: the machines of a cluster: where they meet, what one of them announces, who is there."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from winml.modelkit import __version__
from winml.modelkit.core.errors import RequestError, UnavailableError
from winml.modelkit.core.location import cache_root
from winml.modelkit.core.target import Target
from winml.modelkit.dispatch import dask_link, dask_node
from winml.modelkit.dispatch.cluster import Cluster, Node, shared_machines
from winml.modelkit.ep import machine
from winml.modelkit.ep import probing as targets
from winml.modelkit.ep.sys_command import describe_system
from winml.modelkit.store import atomic
from winml.modelkit.store.cache import Cache

SCHEMA = "winml/node/1"
_FOLDER = "node"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")

OnEvent = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class NodeRequest:
    """A machine that is to join a cluster."""

    cluster: Cluster
    name: str | None = None
    devices: tuple[str, ...] = ()
    """Targets it announces; none means all real ones that are here."""
    jobs: int = 1
    listen: str | None = None
    """The address it listens at; None means the one that leads to the scheduler."""


def _result(action: str, cluster: Cluster, **values: Any) -> dict[str, Any]:
    return {"schema": SCHEMA, "ok": True, "action": action, "cluster": str(cluster), **values}


# Join


def join(request: NodeRequest, on_event: OnEvent) -> dict[str, Any]:
    """Be a node until interrupted; what it was, and how many jobs it ran."""
    dask_link.require()
    node = _node(request)
    with ExitStack() as held:
        notes = _own_folder(held)
        jobs = dask_node.join(request.cluster, node, notes, tidying(on_event), listen=request.listen)
    return _result("join", request.cluster, node=node.to_json(), jobs_run=jobs)


def tidying(on_event: OnEvent) -> OnEvent:
    """Remove what jobs that were ended left in the cache, besides telling."""
    cache = Cache()

    def told(event: dict[str, Any]) -> None:
        cache.remove_work(event.get("pids", ()))
        if event["event"] != "cleared":
            on_event(event)

    return told


def _node(request: NodeRequest) -> Node:
    name = request.name or re.sub(r"[^A-Za-z0-9._-]+", "-", platform.node()).strip("-._") or "node"
    if not _NAME.fullmatch(name):
        raise RequestError(f"not a name for a node: `{name}`", hint="letters, digits, `.`, `_` and `-`, at most 63")
    found = _announced(request.devices)
    return Node(
        name=name,
        machine=platform.node(),
        winml=__version__,
        slots=request.jobs,
        has={str(target): 1 for target in found},
        simulated=tuple(str(target) for target in found if target.simulated),
        environment=machine.environment(),
    )


def _announced(devices: tuple[str, ...]) -> list[Target]:
    """The targets that jobs may use here; a simulated one only when it was named."""
    if devices:
        return [targets.resolve(word, None, None).target for word in dict.fromkeys(devices)]
    states = describe_system().installed_targets()
    return [_target(word) for word in dict.fromkeys(state.target for state in states if state.status == "ready")]


def _target(word: str) -> Target:
    ep, _, device = word.partition("/")
    return Target(ep, device or ep)  # type: ignore[arg-type]  # the table wrote it


def _own_folder(held: ExitStack) -> Path:
    """Where this node notes what runs; a node that was killed left its notes there, so one node has it at a time."""
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
        raise atomic.refused(error, folder) from error
    return folder / "running"


# Scheduler


def serve(cluster: Cluster, on_event: OnEvent) -> dict[str, Any]:
    """Be the scheduler until interrupted."""
    dask_link.require()
    dask_node.serve(cluster, on_event)
    return _result("scheduler", cluster)


# List


def listing(cluster: Cluster) -> dict[str, Any]:
    """The nodes that are there."""
    dask_link.require()
    with dask_link.connected(cluster) as client:
        found = sorted(dask_link.nodes(client).values(), key=lambda node: node.name)
    return _result("list", cluster, nodes=[node.to_json() for node in found], notes=shared_machines(found))

"""Events of a node or a scheduler of a cluster."""

from __future__ import annotations

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.events import Event
from winml.modelkit.dispatch.base import Status
from winml.modelkit.dispatch.cluster import Node


@dataclass(frozen=True)
class SchedulerListens(Event):
    cluster: str


@dataclass(frozen=True)
class LeftoversEnded(Event):
    """Processes that a killed node left running were ended."""

    pids: tuple[int, ...]


@dataclass(frozen=True)
class NodeJoined(Event):
    node: Node
    cluster: str


@dataclass(frozen=True)
class SchedulerAway(Event):
    """The node waits for its scheduler and joins it again."""

    cluster: str


@dataclass(frozen=True)
class JobStarted(Event):
    job: str


@dataclass(frozen=True)
class JobEnded(Event):
    job: str
    status: Status
    seconds: float
    pids: tuple[int, ...]
    """The processes it ran as."""

"""Where the nodes of an opened session went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

CPU = "CPUExecutionProvider"


@dataclass(frozen=True)
class Placement:
    """Nodes and partitions per EP after ONNX Runtime assigned them, and the op types left on the CPU."""

    requested: str
    nodes: dict[str, int]
    partitions: dict[str, int]
    cpu_ops: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.nodes.values())

    @property
    def took_nothing(self) -> bool:
        """Whether there are nodes and none of them went to the requested EP."""
        return self.total > 0 and not self.nodes.get(self.requested)

    @property
    def fell_back(self) -> dict[str, int]:
        """Op types that run on the CPU although another EP was requested."""
        return {} if self.requested == CPU else self.cpu_ops

    def to_json(self) -> dict[str, Any]:
        return {
            "requested": self.requested,
            "nodes": dict(self.nodes),
            "partitions": dict(self.partitions),
            "cpu_ops": dict(self.cpu_ops),
            "fallback": bool(self.fell_back),
        }


@dataclass(frozen=True)
class AssignedNode:
    """A node as the EPs were asked about it: after the runtime's basic rewrites, with nodes for an EP's layout."""

    name: str
    op: str
    ep: str
    partition: int | None
    """Number of the group an EP compiled as one; None on the CPU."""

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "op": self.op, "ep": self.ep, "partition": self.partition}


def _op_name(node: Any) -> str:
    return f"{node.domain}:{node.op_type}" if node.domain not in ("", "ai.onnx") else str(node.op_type)


def read_placement(subgraphs: Iterable[Any], requested: str) -> Placement:
    """The placement behind `get_provider_graph_assignment_info()`.

    A partition is a group of nodes an EP compiled as one; the CPU EP runs node by node and has none.
    """
    nodes: Counter[str] = Counter()
    partitions: Counter[str] = Counter()
    cpu_ops: Counter[str] = Counter()
    for subgraph in subgraphs:
        members = subgraph.get_nodes()
        nodes[subgraph.ep_name] += len(members)
        if subgraph.ep_name == CPU:
            cpu_ops.update(_op_name(node) for node in members)
        else:
            partitions[subgraph.ep_name] += 1
    return Placement(requested, dict(nodes), dict(partitions), dict(cpu_ops.most_common()))


def read_nodes(subgraphs: Iterable[Any]) -> tuple[AssignedNode, ...]:
    """Every node behind `get_provider_graph_assignment_info()`."""
    return tuple(
        AssignedNode(node.name, _op_name(node), group.ep_name, None if group.ep_name == CPU else number)
        for number, group in enumerate(subgraphs)
        for node in group.get_nodes()
    )

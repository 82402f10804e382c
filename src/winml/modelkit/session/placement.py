"""Where the nodes of an opened session went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.placement import CPU, Placement
from winml.modelkit.graph.outline import Outline

BORDER = ("QuantizeLinear", "DequantizeLinear")


@dataclass(frozen=True)
class AssignedNode:
    """A node as the EPs were asked about it: after the runtime's basic rewrites, with nodes for an EP's layout."""

    name: str
    op: str
    ep: str
    partition: int | None
    """Number of the group an EP compiled as one; None on the CPU."""


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


def border_nodes(outline: Outline) -> frozenset[str]:
    """Labels of the nodes that quantize an input of the model or give one of its outputs back as floats."""
    made = {name for node in outline.nodes for name in node.outputs}
    read = {name for node in outline.nodes for name in node.inputs}
    return frozenset(
        node.label
        for node in outline.nodes
        if (node.op_type == "QuantizeLinear" and node.inputs[0] not in made | outline.weights)
        or (node.op_type == "DequantizeLinear" and not read.intersection(node.outputs))
    )


def count_border_nodes(subgraphs: Iterable[Any], border: frozenset[str]) -> dict[str, int]:
    """How many nodes of each kind are on the CPU at the border of the model."""
    return dict(
        Counter(
            _op_name(node)
            for group in subgraphs
            if group.ep_name == CPU
            for node in group.get_nodes()
            if node.name in border and node.op_type in BORDER
        )
    )


def read_nodes(subgraphs: Iterable[Any]) -> tuple[AssignedNode, ...]:
    """Every node behind `get_provider_graph_assignment_info()`."""
    return tuple(
        AssignedNode(node.name, _op_name(node), group.ep_name, None if group.ep_name == CPU else number)
        for number, group in enumerate(subgraphs)
        for node in group.get_nodes()
    )


def add_placements(found: Sequence[Placement]) -> Placement:
    """Where the nodes of all parts of a model ran; of none it is the CPU without nodes."""

    def total(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
        names = dict.fromkeys(name for one in counts for name in one)
        return {name: sum(one.get(name, 0) for one in counts) for name in names}

    return Placement(
        requested=found[0].requested if found else "CPUExecutionProvider",
        nodes=total([one.nodes for one in found]),
        partitions=total([one.partitions for one in found]),
        cpu_ops=total([one.cpu_ops for one in found]),
        by_setting=total([one.by_setting for one in found]),
    )

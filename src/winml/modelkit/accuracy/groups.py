"""Groups of nodes that are quantized together: layers, operators of one kind, blocks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from onnx import ModelProto, NodeProto

from winml.modelkit.accuracy.messages import Grouping
from winml.modelkit.accuracy.slices import Graph
from winml.modelkit.building.quantize.fewer import FOLLOWERS
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.graph import walk


@dataclass(frozen=True)
class NodeGroup:
    """Nodes that are quantized together."""

    label: str
    nodes: tuple[str, ...]
    """In the order of the graph."""


def find_groups(model: ModelProto, chosen: Collection[str], by: Grouping) -> list[NodeGroup]:
    """The chosen nodes in groups, in the order of the graph.

    A layer is a node with what follows it and loses nothing of its own in the same bits, as a Relu or a Reshape: such a
    node reads and gives what the layer gives, so that alone it would be measured twice.
    """
    graph = Graph(model)
    layers = _layers(graph, frozenset(chosen))
    if by == "layer":
        return [NodeGroup(nodes[0].name, _names(nodes)) for nodes in layers]
    if by == "op-type":
        kinds: dict[str, list[NodeProto]] = {}
        for nodes in layers:
            kinds.setdefault(walk.op_key(nodes[0]), []).extend(nodes)
        return [NodeGroup(kind, _names(nodes)) for kind, nodes in kinds.items()]
    return [NodeGroup(_span(nodes), _names(nodes)) for nodes in _blocks(graph, layers)]


def _names(nodes: Sequence[NodeProto]) -> tuple[str, ...]:
    return tuple(node.name for node in nodes)


def _layers(graph: Graph, chosen: frozenset[str]) -> list[list[NodeProto]]:
    """Chosen nodes with their followers."""
    first: dict[int, int] = {}
    layers: dict[int, list[NodeProto]] = {}
    for index, node in enumerate(graph.nodes):
        if node.name not in chosen:
            continue
        source = graph.makers.get(node.input[0]) if node.op_type in FOLLOWERS and node.input else None
        head = first.get(source, index) if source is not None else index
        first[index] = head
        layers.setdefault(head, []).append(node)
    return list(layers.values())


def _blocks(graph: Graph, layers: Sequence[Sequence[NodeProto]]) -> list[list[NodeProto]]:
    """Layers between two places at which one value carries all that was computed: residuals end there."""
    places = {node.name: index for index, node in enumerate(graph.nodes)}
    last_read = _last_reads(graph)
    made = {name: places[node.name] for nodes in layers for node in nodes for name in node.output if name}
    blocks: list[list[NodeProto]] = []
    open_block: list[NodeProto] = []
    for nodes in layers:
        open_block.extend(nodes)
        place = places[nodes[-1].name]
        alive = [name for name, index in made.items() if index <= place < last_read.get(name, -1)]
        if len(alive) <= 1:
            blocks.append(open_block)
            open_block = []
    return [*blocks, open_block] if open_block else blocks


def _last_reads(graph: Graph) -> Mapping[str, int]:
    """The place of the last node that reads each value; outputs of the model are read when all else is done."""
    found = {name: max(readers) for name, readers in graph.readers.items()}
    return {**found, **{name: found.get(name, -1) for name in graph.outputs}}


def _span(nodes: Sequence[NodeProto]) -> str:
    first, last = nodes[0].name, nodes[-1].name
    return first if first == last else f"{first} … {last}"

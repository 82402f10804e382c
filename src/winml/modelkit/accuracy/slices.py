"""Parts of a graph between named values: what computes a value from others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import field

from onnx import GraphProto, ModelProto, NodeProto

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.graph import walk

QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"


@dataclass(frozen=True)
class Slice:
    """Nodes of a graph, in its order, and the values that they read from outside."""

    nodes: tuple[int, ...]
    inputs: tuple[str, ...]


@dataclass
class Graph:
    """The main graph of a model, with who makes and who reads every value."""

    model: ModelProto
    nodes: list[NodeProto] = field(init=False)
    makers: dict[str, int] = field(init=False)
    readers: dict[str, list[int]] = field(init=False)
    constants: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        graph = self.model.graph
        self.nodes = list(graph.node)
        self.makers = {name: index for index, node in enumerate(self.nodes) for name in node.output if name}
        self.readers = {}
        for index, node in enumerate(self.nodes):
            for name in dict.fromkeys(reads(node)):
                self.readers.setdefault(name, []).append(index)
        self.constants = frozenset(
            [tensor.name for tensor in graph.initializer] + [tensor.values.name for tensor in graph.sparse_initializer]
        )

    @property
    def outputs(self) -> list[str]:
        return [value.name for value in self.model.graph.output]

    @property
    def inputs(self) -> list[str]:
        """Inputs that are no constants."""
        return [value.name for value in self.model.graph.input if value.name not in self.constants]

    def cut(self, value: str, stops: Collection[str]) -> Slice:
        """What computes `value` from values of `stops`, from inputs of the graph and from constants."""
        found: set[int] = set()
        inputs: dict[str, None] = {}
        waiting = [self.makers[value]]
        while waiting:
            index = waiting.pop()
            if index in found:
                continue
            found.add(index)
            for name in reads(self.nodes[index]):
                if name in self.constants:
                    continue
                if name in stops or name not in self.makers:
                    inputs[name] = None
                else:
                    waiting.append(self.makers[name])
        return Slice(tuple(sorted(found)), tuple(inputs))

    def seen(self, value: str) -> str:
        """A value as its readers see it: dequantized again where the graph quantizes it."""
        for index in self.readers.get(value, ()):
            node = self.nodes[index]
            if node.op_type == QUANTIZE and node.input[0] == value:
                for reader in self.readers.get(node.output[0], ()):
                    if self.nodes[reader].op_type == DEQUANTIZE:
                        return str(self.nodes[reader].output[0])
        return value

    def reads_pairs(self, index: int) -> bool:
        """Whether a node reads an activation that was quantized and dequantized."""
        for name in self.nodes[index].input:
            maker = self.makers.get(name)
            if maker is None or self.nodes[maker].op_type != DEQUANTIZE:
                continue
            source = self.makers.get(self.nodes[maker].input[0])
            if source is not None and self.nodes[source].op_type == QUANTIZE:
                return True
        return False


def reads(node: NodeProto) -> Iterator[str]:
    """The values that a node reads, also those that graphs inside it take from outside."""
    yield from (name for name in node.input if name)
    for inner in walk.subgraphs(node):
        yield from _list_captured(inner)


def _list_captured(graph: GraphProto) -> Iterable[str]:
    own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    for node in graph.node:
        own.update(node.output)
    for node in graph.node:
        yield from (name for name in reads(node) if name not in own)
    yield from (value.name for value in graph.output if value.name not in own)

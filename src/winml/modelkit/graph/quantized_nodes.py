"""The integer types of quantized convolutions and products, node by node; needs no weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.graph import walk
from winml.modelkit.graph.tensors import dtype_name, element_count

Granularity = Literal["tensor", "channel", "block"]

_WEIGHTED = ("Conv", "ConvTranspose", "Gemm", "MatMul")
_OPERATORS = {"QLinearConv": (0, 3, 4), "QLinearMatMul": (0, 3, 4)}
"""Operators on quantized values: which inputs are the activation, the weight and the weight's scale."""
_BIAS = 8
"""The bias of QLinearConv; a product has none."""


@dataclass(frozen=True)
class QuantizedNode:
    """A convolution or product with quantized weights; None where a type is not written in the graph."""

    name: str
    op: str
    activation: str | None
    weight: str | None
    granularity: Granularity
    bias: bool


def find_quantized_nodes(model: ModelProto) -> list[QuantizedNode]:
    """Every convolution and product whose weights are stored as integers."""
    return [found for graph in walk.graphs(model) for found in _Scope(graph).find()]


class _Scope:
    """What one graph says of its values."""

    def __init__(self, graph: object) -> None:
        self._nodes: list[NodeProto] = list(graph.node)  # type: ignore[attr-defined]  # graphs and functions have nodes
        self._constants: dict[str, TensorProto] = {}
        if isinstance(graph, GraphProto):
            self._constants = {tensor.name: tensor for tensor in graph.initializer}
        self._makers = {name: node for node in self._nodes for name in node.output}
        for node in self._nodes:
            tensors = [a.t for a in node.attribute if a.name == "value"] if node.op_type == "Constant" else []
            self._constants |= dict.fromkeys(node.output[: len(tensors)], *tensors)

    def find(self) -> Iterator[QuantizedNode]:
        for node in self._nodes:
            if node.op_type in _WEIGHTED and len(node.input) > 1:
                found = self._between_pairs(node)
            elif node.op_type in _OPERATORS:
                found = self._on_integers(node)
            else:
                found = None
            if found is not None:
                yield found

    def _between_pairs(self, node: NodeProto) -> QuantizedNode | None:
        weight = self._makers.get(node.input[1])
        if weight is None or weight.op_type != "DequantizeLinear":
            return None
        stored = self._constants.get(weight.input[0])
        if stored is None:
            return None
        source = self._makers.get(node.input[0])
        pair = source is not None and source.op_type == "DequantizeLinear"
        return QuantizedNode(
            node.name,
            walk.op_key(node),
            self._type_of(source.input[0], source) if pair and source is not None else None,
            dtype_name(stored.data_type),
            self._granularity(weight.input[1], block=walk.attribute_value(weight, "block_size", 0)),
            bias=len(node.input) > 2 and bool(node.input[2]),
        )

    def _on_integers(self, node: NodeProto) -> QuantizedNode:
        activation, weight, scale = _OPERATORS[node.op_type]
        stored = self._constants.get(node.input[weight])
        return QuantizedNode(
            node.name,
            walk.op_key(node),
            self._type_of_constant(node.input[activation + 2]),
            None if stored is None else dtype_name(stored.data_type),
            self._granularity(node.input[scale], block=0),
            bias=len(node.input) > _BIAS and bool(node.input[_BIAS]),
        )

    def _type_of(self, value: str, reader: NodeProto) -> str | None:
        """The integer type of an activation: from the zero point of its reader or producer, or an attribute."""
        maker = self._makers.get(value)
        for node in (reader, maker):
            if node is not None and node.op_type in ("QuantizeLinear", "DequantizeLinear") and len(node.input) > 2:
                found = self._type_of_constant(node.input[2])
                if found is not None:
                    return found
        if maker is None or maker.op_type != "QuantizeLinear":
            return None
        written = walk.attribute_value(maker, "output_dtype", 0)
        return dtype_name(written) if written else "uint8"

    def _type_of_constant(self, name: str) -> str | None:
        tensor = self._constants.get(name)
        return None if tensor is None else dtype_name(tensor.data_type)

    def _granularity(self, scale: str, *, block: int) -> Granularity:
        if block:
            return "block"
        tensor = self._constants.get(scale)
        return "channel" if tensor is not None and element_count(tensor) > 1 else "tensor"

"""An ONNX file around a QNN context binary that was made outside of ONNX Runtime.

The binary is described by the JSON of the SDK's `qnn-context-binary-utility`.
"""

from __future__ import annotations

from typing import Any

from onnx import ModelProto, TensorProto, helper

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RunFailedError

OPSET = 21
IR_VERSION = 10

_TYPES: dict[str, int] = {
    "QNN_DATATYPE_FLOAT_32": TensorProto.FLOAT,
    "QNN_DATATYPE_FLOAT_16": TensorProto.FLOAT16,
    "QNN_DATATYPE_INT_8": TensorProto.INT8,
    "QNN_DATATYPE_INT_16": TensorProto.INT16,
    "QNN_DATATYPE_INT_32": TensorProto.INT32,
    "QNN_DATATYPE_INT_64": TensorProto.INT64,
    "QNN_DATATYPE_UINT_8": TensorProto.UINT8,
    "QNN_DATATYPE_UINT_16": TensorProto.UINT16,
    "QNN_DATATYPE_UINT_32": TensorProto.UINT32,
    "QNN_DATATYPE_UINT_64": TensorProto.UINT64,
    "QNN_DATATYPE_BOOL_8": TensorProto.BOOL,
}
_QUANTIZED: dict[str, int] = {
    "QNN_DATATYPE_SFIXED_POINT_8": TensorProto.INT8,
    "QNN_DATATYPE_SFIXED_POINT_16": TensorProto.INT16,
    "QNN_DATATYPE_UFIXED_POINT_8": TensorProto.UINT8,
    "QNN_DATATYPE_UFIXED_POINT_16": TensorProto.UINT16,
}


@dataclass(frozen=True)
class _Tensor:
    """An input or output of the graph in the binary; `scale` is set when it is quantized."""

    name: str
    type: int
    shape: tuple[int, ...]
    scale: float | None = None
    zero_point: int = 0

    @property
    def outside(self) -> str:
        """Its name in the ONNX graph; the node itself must use the name that is in the binary."""
        return self.name if self.scale is None else f"{self.name}_float"

    def value_info(self) -> Any:
        kind = self.type if self.scale is None else TensorProto.FLOAT
        return helper.make_tensor_value_info(self.outside, kind, self.shape)

    def parameters(self) -> list[TensorProto]:
        if self.scale is None:
            return []
        return [
            helper.make_tensor(f"{self.name}_scale", TensorProto.FLOAT, [], [self.scale]),
            helper.make_tensor(f"{self.name}_zero_point", self.type, [], [self.zero_point]),
        ]


def _tensor(value: dict[str, Any]) -> _Tensor:
    info = value.get("info", value)
    name, kind, shape = str(info["name"]), str(info["dataType"]), tuple(int(d) for d in info["dimensions"])
    if kind in _TYPES:
        return _Tensor(name, _TYPES[kind], shape)
    if kind not in _QUANTIZED:
        raise RunFailedError(f"the context binary has `{name}` of type {kind}, which ONNX does not know")
    encoding = info["quantizeParams"]["scaleOffset"]
    # QNN adds its offset, ONNX subtracts its zero point.
    return _Tensor(name, _QUANTIZED[kind], shape, float(encoding["scale"]), -int(encoding["offset"]))


def graph_of(described: dict[str, Any]) -> dict[str, Any]:
    """The one graph of a described binary."""
    try:
        graphs = [graph.get("info", graph) for graph in described["info"]["graphs"]]
    except (KeyError, TypeError, AttributeError) as error:
        raise RunFailedError(f"the description of the context binary cannot be read: {error!r}") from error
    if len(graphs) != 1:
        raise RunFailedError(f"the context binary must hold one graph but has {len(graphs)}")
    graph: dict[str, Any] = graphs[0]
    return graph


def wrapper(described: dict[str, Any], *, binary: str | bytes) -> ModelProto:
    """The ONNX model around a binary: its file name, or its bytes to hold them inside.

    Quantized inputs and outputs get a QuantizeLinear or DequantizeLinear, so that they are floats outside.
    """
    graph = graph_of(described)
    try:
        name = str(graph["graphName"])
        inputs = [_tensor(value) for value in graph["graphInputs"]]
        outputs = [_tensor(value) for value in graph["graphOutputs"]]
    except (KeyError, TypeError, ValueError) as error:
        raise RunFailedError(f"the description of the context binary cannot be read: {error!r}") from error
    context = helper.make_node(
        "EPContext",
        [tensor.name for tensor in inputs],
        [tensor.name for tensor in outputs],
        name=name,
        domain="com.microsoft",
        main_context=1,
        embed_mode=int(isinstance(binary, bytes)),
        ep_cache_context=binary,
        source="QNNExecutionProvider",
        partition_name=name,
    )
    nodes = [*_edges("QuantizeLinear", inputs), context, *_edges("DequantizeLinear", outputs)]
    made = helper.make_graph(
        nodes,
        name,
        [tensor.value_info() for tensor in inputs],
        [tensor.value_info() for tensor in outputs],
        [parameter for tensor in (*inputs, *outputs) for parameter in tensor.parameters()],
    )
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(made, producer_name="winml-modelkit", opset_imports=opsets, ir_version=IR_VERSION)


def _edges(op: str, tensors: list[_Tensor]) -> list[Any]:
    nodes = []
    for tensor in tensors:
        if tensor.scale is None:
            continue
        ends = [tensor.outside, tensor.name]
        start, end = ends if op == "QuantizeLinear" else reversed(ends)
        inputs = [start, f"{tensor.name}_scale", f"{tensor.name}_zero_point"]
        nodes.append(helper.make_node(op, inputs, [end], name=f"{tensor.name}_{op}"))
    return nodes

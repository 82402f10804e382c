"""How a model is quantized, with the nodes that show it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, get_args

from onnx import GraphProto

from winml.modelkit.graph import walk
from winml.modelkit.graph.description import Evidence, Quantization, QuantizationKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onnx import ModelProto, NodeProto

_DYNAMIC = (
    "ConvInteger",
    "DynamicQuantizeLSTM",
    "DynamicQuantizeLinear",
    "DynamicQuantizeMatMul",
    "MatMulInteger",
    "MatMulIntegerToFloat",
)
_WEIGHT = ("GatherBlockQuantized", "MatMulBnb4", "MatMulFpQ4", "MatMulNBits", "QMoE")
_QUANTIZED = ("QAttention", "QEmbedLayerNormalization", "QGemm")
_MOVES_DATA = (
    "Cast",
    "Flatten",
    "Gather",
    "Identity",
    "QuantizeLinear",
    "Reshape",
    "Slice",
    "Squeeze",
    "Transpose",
    "Unsqueeze",
)
"""What leaves a weight a weight: `quantize_dynamic` of ONNX Runtime looks up an embedding and dequantizes it then."""


def quantization_of(model: ModelProto) -> Quantization:
    """How the model is quantized; needs no weights."""
    weights: set[str] = set()
    produced_by: dict[str, str] = {}
    counts: Counter[Evidence] = Counter()
    for graph in walk.graphs(model):
        if isinstance(graph, GraphProto):
            weights.update(tensor.name for tensor in graph.initializer)
        for node in graph.node:
            if _is_weight(node, weights):
                weights.update(node.output)
            produced_by.update(dict.fromkeys(node.output, node.op_type))
            shown = _shows(node, weights, produced_by)
            if shown is not None:
                counts[shown] += 1
    return Quantization(_kind(counts), {kind: counts[kind] for kind in get_args(Evidence)})


def _is_weight(node: NodeProto, weights: set[str]) -> bool:
    if node.op_type == "Constant":
        return True
    return node.op_type in _MOVES_DATA and bool(node.input) and node.input[0] in weights


def _shows(node: NodeProto, weights: set[str], produced_by: Mapping[str, str]) -> Evidence | None:
    source = node.input[0] if node.input else ""
    if node.op_type == "QuantizeLinear":
        return None if source in weights else "activation_quantize"
    if node.op_type == "DequantizeLinear":
        if source in weights:
            return "weight_dequantize"
        # an operator on quantized values needs this to get back to floats, so it does not indicate pairs
        return None if _is_quantized(produced_by.get(source, "")) else "activation_dequantize"
    if node.op_type in _DYNAMIC:
        return "dynamic_operators"
    if node.op_type in _WEIGHT:
        return "weight_operators"
    return "quantized_operators" if _is_quantized(node.op_type) else None


def _is_quantized(op_type: str) -> bool:
    return op_type.startswith("QLinear") or op_type in _QUANTIZED


def _kind(counts: Counter[Evidence]) -> QuantizationKind:
    kinds: list[QuantizationKind] = []
    if counts["quantized_operators"]:
        kinds.append("qoperator")
    if counts["dynamic_operators"]:
        kinds.append("dynamic")
    if counts["weight_operators"]:
        kinds.append("weight-only")
    # quantized operators are fed by QuantizeLinear, so alone it shows pairs only where there are no such operators
    if counts["activation_dequantize"] or (counts["activation_quantize"] and not kinds):
        kinds.append("qdq")
    if not kinds:
        return "weight-only" if counts["weight_dequantize"] else "none"
    return kinds[0] if len(kinds) == 1 else "mixed"

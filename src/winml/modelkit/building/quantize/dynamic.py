"""Dynamic quantization: 8-bit weights, activations quantized while the model runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from onnx import ModelProto, TensorProto
from onnxruntime.quantization.onnx_quantizer import ONNXQuantizer
from onnxruntime.quantization.quant_utils import QuantizationMode, QuantType
from onnxruntime.quantization.registry import IntegerOpsRegistry

from winml.modelkit.building.quantize.library import wrap_errors
from winml.modelkit.building.quantize.select import (
    NodeSelection,
    find_untouched,
    flat_products,
    inputs_by_node,
    select,
    standard_attentions,
)
from winml.modelkit.core.config import QuantizeSection
from winml.modelkit.core.errors import RequestError
from winml.modelkit.graph import walk

STREAMS = False
OPSET = 11
"""The first with DynamicQuantizeLinear."""

_TYPES = {"int8": QuantType.QInt8, "uint8": QuantType.QUInt8}
_SLOW = {"Conv": "with dynamic ranges a convolution is slower than in float; name the operator to quantize it anyway"}


def check(section: QuantizeSection) -> None:
    """Raise for options that do not apply here."""
    if section.weight_type not in _TYPES:
        raise RequestError(f"dynamic quantization has int8 or uint8 weights, not {section.weight_type}")
    if section.activation_type not in (None, "uint8"):
        raise RequestError(f"dynamic quantization has uint8 activations, not {section.activation_type}")


def choose(model: ModelProto, section: QuantizeSection, types: Mapping[str, int]) -> NodeSelection:
    """The nodes to quantize; convolutions only when they are named."""
    named = section.op_types is not None or section.nodes is not None
    # The library makes a MatMul of every Gemm first.
    able = {*IntegerOpsRegistry, "Gemm"} - (set() if named else _SLOW.keys())
    chosen = select(model, section, able, bodies=True, unable=_SLOW)
    return chosen.without(standard_attentions(model)).without(flat_products(model)).without(_other_floats(model, types))


def _other_floats(model: ModelProto, types: Mapping[str, int]) -> dict[str, str]:
    """Nodes that read another float type than float32, with the reason to leave them."""
    found = {}
    for node in walk.nodes(model):
        kind = types.get(node.input[0], TensorProto.FLOAT) if node.input else TensorProto.FLOAT
        if kind != TensorProto.FLOAT:
            kind_name = TensorProto.DataType.Name(kind).lower()
            found[node.name] = f"it reads {kind_name}; only float32 is quantized while a model runs"
    return found


def quantize(
    model: ModelProto, section: QuantizeSection, selection: NodeSelection, source: Path
) -> tuple[ModelProto, NodeSelection]:
    """The model with integer operators, and which nodes became some."""
    before = inputs_by_node(model)
    # The library calls the MatMul that it makes of a Gemm by another name.
    excluded = sorted(n for name in before.keys() - selection.chosen for n in (name, f"{name}_MatMul"))
    with wrap_errors():
        quantizer = ONNXQuantizer(
            model,
            section.per_channel,
            bool(section.reduce_range),
            QuantizationMode.IntegerOps,
            False,  # not static
            _TYPES[section.weight_type or ""],
            QuantType.QUInt8,
            None,
            [],
            excluded,
            sorted(IntegerOpsRegistry),
            {
                "EnableSubgraph": any(True for node in model.graph.node for _ in walk.subgraphs(node)),
                "MatMulConstBOnly": True,
                "WeightSymmetric": section.symmetric_weights,
            },
        )
        quantizer.quantize_model()
    result: ModelProto = quantizer.model.model
    return result, selection.without(find_untouched(before, result, "it has no constant weight"))

"""The precision a model computes in, as people write it: `fp32`, `w8a16`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from winml.modelkit.graph import walk
from winml.modelkit.graph.quantization import quantization_of
from winml.modelkit.graph.tensors import byte_count, dtype_name, element_bits, element_count

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto

FLOATS = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64"}


def precision_of(model: ModelProto) -> str:
    """`fp32` and the like by the weights, `w8a16` by the bits of quantized weights and activations.

    Quantization of other kinds than pairs of QuantizeLinear and DequantizeLinear is called by its kind.
    """
    kind = quantization_of(model).kind
    if kind == "none":
        return _float_type(model)
    if kind != "qdq":
        return kind
    tensors = {tensor.name: tensor for tensor in walk.initializers(model)}
    weights, activations = _bits(model, tensors)
    if not activations:
        return kind
    most = activations.most_common(1)[0][0]
    # A graph that only quantizes activations multiplies by weights of another kind.
    return f"w{weights.most_common(1)[0][0]}a{most}" if weights else f"a{most}"


def _float_type(model: ModelProto) -> str:
    """The floating type with the most bytes of weights; of the inputs when there are no weights."""
    sizes: Counter[str] = Counter()
    for tensor in walk.initializers(model):
        if dtype_name(tensor.data_type) in FLOATS:
            sizes[dtype_name(tensor.data_type)] += byte_count(tensor)
    if not sizes:
        sizes.update(dtype_name(value.type.tensor_type.elem_type) for value in model.graph.input)
    name = sizes.most_common(1)[0][0] if sizes else "undefined"
    return FLOATS.get(name, name)


def _bits(model: ModelProto, tensors: dict[str, TensorProto]) -> tuple[Counter[int], Counter[int]]:
    """Bits of quantized weights by elements, and of activations by nodes."""
    weights: Counter[int] = Counter()
    activations: Counter[int] = Counter()
    for node in walk.nodes(model):
        weight = tensors.get(node.input[0]) if node.input else None
        if node.op_type == "DequantizeLinear" and weight is not None:
            bits = element_bits(weight.data_type)
            if bits is not None and bits < 32:  # biases have 32
                weights[bits] += element_count(weight)
        elif node.op_type == "QuantizeLinear" and weight is None:
            activations[_activation_bits(node, tensors)] += 1
    return weights, activations


def _activation_bits(node: NodeProto, tensors: dict[str, TensorProto]) -> int:
    """Bits of what a QuantizeLinear node makes: by its zero point, its `output_dtype`, else 8."""
    zero_point = tensors.get(node.input[2]) if len(node.input) > 2 else None
    data_type = walk.attribute_value(node, "output_dtype", 0) if zero_point is None else zero_point.data_type
    return element_bits(data_type) or 8

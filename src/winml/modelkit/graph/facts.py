"""What is known about a model without running it. Weights need not be loaded."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from winml.modelkit.graph import files, walk
from winml.modelkit.graph.description import GraphFacts, ValueFacts
from winml.modelkit.graph.macs import dynamic_axes, estimate_macs, runtime_inputs
from winml.modelkit.graph.precision import FLOATS
from winml.modelkit.graph.quantization import quantization_of
from winml.modelkit.graph.tensors import byte_count, dtype_name, element_count, is_external

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from onnx import ModelProto, TensorProto, TypeProto, ValueInfoProto

CONVOLUTIONS = ("Conv", "ConvInteger", "ConvTranspose", "FusedConv", "NhwcConv", "NhwcFusedConv", "QLinearConv")

_QUANTIZED_TYPES = ("int8", "uint8", "int4", "uint4", "int2", "uint2", "int16", "uint16")
_INT32_WEIGHTS = {"DequantizeLinear": (0,), "QLinearConv": (8,), "QGemm": (6,)}
"""Inputs where 32-bit integers are weights: the biases of quantized convolutions and products."""

_TWO_OPERANDS = (1, 2, 4, 5, 6, 7)
_ONE_OPERAND = (1, 2, 3, 4)
_SCALES = {
    "ConvInteger": (2, 3),
    "DequantizeLinear": (1, 2),
    "DynamicQuantizeMatMul": (2, 3),
    "GatherBlockQuantized": (2, 3),
    "MatMulInteger": (2, 3),
    "MatMulIntegerToFloat": (2, 3, 4, 5),
    "MatMulNBits": (2, 3, 4),
    "QAttention": (3, 4, 6, 7),
    "QGemm": (1, 2, 4, 5, 7, 8),
    "QLinearAdd": _TWO_OPERANDS,
    "QLinearAveragePool": _ONE_OPERAND,
    "QLinearConv": _TWO_OPERANDS,
    "QLinearGlobalAveragePool": _ONE_OPERAND,
    "QLinearLeakyRelu": _ONE_OPERAND,
    "QLinearMatMul": _TWO_OPERANDS,
    "QLinearMul": _TWO_OPERANDS,
    "QLinearSigmoid": _ONE_OPERAND,
    "QuantizeLinear": (1, 2),
}
"""Inputs that are scales and zero points: not weights, so that quantizing a model leaves its number of parameters."""


def facts(
    model: ModelProto, path: str | os.PathLike[str] | None = None, *, dims: Mapping[str, int] | None = None
) -> GraphFacts:
    """The facts of a model, which may be loaded without weights; `dims` sets dynamic axes for the MACs.

    `path` is the file it came from, and gives the sizes on disk.
    """
    nodes = list(walk.nodes(model))
    ops = Counter(map(walk.op_key, nodes))
    contexts = [node for node in nodes if node.op_type == "EPContext"]
    compiled_for = tuple(sorted({str(walk.attribute_value(node, "source", "") or "unknown") for node in contexts}))
    convolutions = sum(node.op_type in CONVOLUTIONS for node in nodes)
    on_disk = _on_disk(model, path)
    inputs = runtime_inputs(model.graph)
    return GraphFacts(
        nodes=ops.total(),
        ops=dict(sorted(ops.items(), key=lambda item: (-item[1], item[0]))),
        opsets={entry.domain or "ai.onnx": entry.version for entry in model.opset_import},
        ir_version=model.ir_version,
        producer_name=model.producer_name,
        producer_version=model.producer_version,
        inputs=tuple(_value(value) for value in inputs),
        outputs=tuple(_value(value) for value in model.graph.output),
        dynamic_axes=_axes([*inputs, *model.graph.output]),
        conv_share=None if compiled_for or not ops else convolutions / ops.total(),
        parameters=_parameters(model),
        initializer_bytes=sum(byte_count(tensor) for _, tensor in _constants(model)),
        file_bytes=None
        if path is None
        else sum(file.stat().st_size for file in (Path(path), *files.external_files(path, on_disk))),
        macs=estimate_macs(model, dims=dims, read=None if path is None else partial(files.read_external, path=path)),
        quantized=quantization_of(model),
        float_types=_float_types(model),
        compiled_for=compiled_for,
        contrib_ops=_contrib_ops(model),
        external_data=_has_external_data(on_disk),
    )


def runtime_values(model: ModelProto) -> tuple[ValueFacts, ...]:
    """The inputs that a caller must give."""
    return tuple(_value(value) for value in runtime_inputs(model.graph))


def _has_external_data(model: ModelProto) -> bool:
    return any(is_external(tensor) for tensor in walk.tensors(model))


def _on_disk(model: ModelProto, path: str | os.PathLike[str] | None) -> ModelProto:
    """The model as its file has it; loading the weights takes the names of the data files away."""
    return model if path is None or _has_external_data(model) else files.load(path, weights=False)


def _value(value: ValueInfoProto) -> ValueFacts:
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return ValueFacts(value.name, _type_name(value.type), None)
    dynamic = dict(dynamic_axes(value))
    shape = tuple(dynamic.get(index, dim.dim_value) for index, dim in enumerate(tensor.shape.dim))
    return ValueFacts(value.name, _type_name(value.type), shape)


def _type_name(kind: TypeProto) -> str:
    """`float32` for a tensor, `sequence(float32)` and the like for what is none."""
    which = kind.WhichOneof("value")
    if which in ("sequence_type", "optional_type"):
        return f"{which.removesuffix('_type')}({_type_name(getattr(kind, which).elem_type)})"
    if which == "map_type":
        return f"map({dtype_name(kind.map_type.key_type)}, {_type_name(kind.map_type.value_type)})"
    if which == "sparse_tensor_type":
        return f"sparse({dtype_name(kind.sparse_tensor_type.elem_type)})"
    return dtype_name(kind.tensor_type.elem_type)


def _axes(values: list[ValueInfoProto]) -> dict[str, tuple[str, ...]]:
    axes: dict[str, tuple[str, ...]] = {}
    for value in values:
        for index, name in dynamic_axes(value):
            axes[name] = (*axes.get(name, ()), f"{value.name}[{index}]")
    return axes


def _constants(model: ModelProto) -> Iterator[tuple[str, TensorProto]]:
    """Initializers and the tensors of Constant nodes, which ONNX Runtime makes initializers, by their name."""
    for tensor in walk.initializers(model):
        yield tensor.name, tensor
    for node in walk.nodes(model):
        if node.op_type == "Constant" and node.output:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    yield node.output[0], attribute.t
                elif attribute.HasField("sparse_tensor"):
                    yield node.output[0], attribute.sparse_tensor.values


def _parameters(model: ModelProto) -> int:
    weights: set[str] = set()
    int32_weights: set[str] = set()
    packed: dict[str, int] = {}
    for node in walk.nodes(model):
        for index, name in enumerate(node.input):
            if index not in _SCALES.get(node.op_type, ()):
                weights.add(name)
            if index in _INT32_WEIGHTS.get(node.op_type, ()):
                int32_weights.add(name)
        if node.op_type == "MatMulNBits" and len(node.input) > 1:
            packed[node.input[1]] = walk.attribute_value(node, "K", 0) * walk.attribute_value(node, "N", 0)
    return sum(
        packed.get(name, element_count(tensor))
        for name, tensor in _constants(model)
        if name in weights and _is_weight_type(tensor, int32=name in int32_weights)
    )


def _is_weight_type(tensor: TensorProto, *, int32: bool) -> bool:
    name = dtype_name(tensor.data_type)
    return "float" in name or name in _QUANTIZED_TYPES or (int32 and name == "int32")


def _float_types(model: ModelProto) -> dict[str, int]:
    sizes: Counter[str] = Counter()
    for _, tensor in _constants(model):
        name = dtype_name(tensor.data_type)
        if "float" in name:
            sizes[FLOATS.get(name, name)] += byte_count(tensor)
    return dict(sizes.most_common())


def _contrib_ops(model: ModelProto) -> tuple[str, ...]:
    local = {(function.domain, function.name) for function in model.functions}
    found = {
        walk.op_key(node)
        for node in walk.nodes(model)
        if node.domain not in walk.ONNX_DOMAINS and (node.domain, node.op_type) not in local
    }
    return tuple(sorted(found))

"""Weights alone, in blocks that share a scale: MatMul becomes MatMulNBits of ONNX Runtime."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.util import find_spec
from pathlib import Path

from onnx import ModelProto, NodeProto, TensorProto, helper
from onnxruntime.quantization.matmul_nbits_quantizer import (
    HQQWeightOnlyQuantConfig,
    KQuantWeightOnlyQuantConfig,
    MatMulNBitsQuantizer,
    WeightOnlyQuantConfig,
)

from winml.modelkit.building.quantize.library import wrap_errors
from winml.modelkit.building.quantize.select import NodeSelection, find_untouched, inputs_by_node, select
from winml.modelkit.core.config import QuantizeSection
from winml.modelkit.core.errors import RequestError, UnavailableError
from winml.modelkit.graph import files, walk
from winml.modelkit.graph.tensors import is_external

STREAMS = True
OPSET = 1
"""MatMulNBits is in ONNX Runtime's own domain, so that any opset will do."""

BLOCK_SIZE = 32
_BITS = {"int4": 4, "uint4": 4, "int8": 8, "uint8": 8}
_ABLE = ("MatMul",)
_DOMAIN = "com.microsoft"
_ACCURACY_LEVELS = {"int8": 4}
"""What `MatMulNBits` multiplies in, by its attribute; without it, float32."""


def check(section: QuantizeSection) -> None:
    """Raise for options that do not apply here."""
    if section.weight_type not in _BITS:
        raise RequestError(f"weights in blocks have 4 or 8 bits, not {section.weight_type}")
    if section.block_method in ("hqq", "k_quant"):
        if section.weight_type not in ("int4", "uint4"):
            raise RequestError(f"method `{section.block_method}` has 4-bit weights, not {section.weight_type}")
        if section.symmetric_weights:
            raise RequestError(
                f"method `{section.block_method}` gives asymmetric weights", hint="add `--asymmetric-weights`"
            )
    if section.activation_type is not None:
        raise RequestError("with weights in blocks the activations stay in float")
    size = section.block_size or BLOCK_SIZE
    if size & (size - 1):
        raise RequestError(f"`block_size` must be a power of 2 but got {size}", hint="for example 32")


def _algorithm(section: QuantizeSection) -> WeightOnlyQuantConfig | None:
    """The settings of another method than rounding to the nearest."""
    if section.block_method == "hqq":
        if find_spec("torch") is None:
            raise UnavailableError("method `hqq` of onnxruntime needs torch", hint="`pip install torch==2.13.0`")
        return HQQWeightOnlyQuantConfig(
            block_size=section.block_size or BLOCK_SIZE, bits=_BITS[section.weight_type or ""]
        )
    return KQuantWeightOnlyQuantConfig() if section.block_method == "k_quant" else None


def _set_compute(model: ModelProto, section: QuantizeSection, names: Collection[str]) -> None:
    """Say on every new node what it multiplies in: not every method of the library passes it on."""
    level = _ACCURACY_LEVELS.get(section.block_compute or "")
    for node in walk.nodes(model):
        is_new = node.op_type == "MatMulNBits" and node.name not in names
        if is_new and level is not None and not any(a.name == "accuracy_level" for a in node.attribute):
            node.attribute.append(helper.make_attribute("accuracy_level", level))


def choose(model: ModelProto, section: QuantizeSection, types: Mapping[str, int]) -> NodeSelection:
    """The nodes to quantize."""
    chosen = select(model, section, _ABLE, bodies=True)
    if section.block_method != "k_quant":
        return chosen
    size = section.block_size or BLOCK_SIZE
    heights = {t.name: t.dims[0] for t in model.graph.initializer if len(t.dims) == 2}
    reason = f"k_quant of onnxruntime cannot pack an odd number of blocks of {size}"
    odd = {
        node.name: reason
        for node in model.graph.node
        if node.op_type in _ABLE and -(-heights.get(node.input[1], 0) // size) % 2
    }
    return chosen.without(odd)


def quantize(
    model: ModelProto, section: QuantizeSection, selection: NodeSelection, source: Path
) -> tuple[ModelProto, NodeSelection]:
    """The model with weights in blocks, and which nodes have them; `source` is the file that it was loaded from."""
    before = inputs_by_node(model)
    done = _quantize_streamed(model, section, selection.chosen, source)
    loaded = {tensor.name for tensor in walk.initializers(model) if not is_external(tensor)}
    left = {n.name for n in walk.nodes(model) if n.name in selection.chosen - done and n.input[1] in loaded}
    if left or not done:
        if section.block_method == "k_quant":
            files.read_weights(model, source)  # the library looks at every weight, also of nodes that stay
        model = _rewrite(model, section, keep=before.keys() - left)
    if all(entry.domain != _DOMAIN for entry in model.opset_import):
        model.opset_import.add(domain=_DOMAIN, version=1)  # not every method of the library does
    _set_compute(model, section, before.keys())
    return model, selection.without(find_untouched(before, model, "it has no constant weight of two dimensions"))


def _rewrite(model: ModelProto, section: QuantizeSection, keep: Collection[str]) -> ModelProto:
    """The model as the library gives it back; nodes in `keep` stay as they are."""
    with wrap_errors():
        quantizer = MatMulNBitsQuantizer(
            model,
            bits=_BITS[section.weight_type or ""],
            block_size=section.block_size or BLOCK_SIZE,
            is_symmetric=section.symmetric_weights,
            nodes_to_exclude=sorted(keep),
            accuracy_level=_ACCURACY_LEVELS.get(section.block_compute or ""),
            algo_config=_algorithm(section),
        )
        quantizer.process()
    result: ModelProto = quantizer.model.model
    return result


def _quantize_streamed(
    model: ModelProto, section: QuantizeSection, chosen: Collection[str], source: Path
) -> frozenset[str]:
    """Quantize the nodes whose weight is in another file, each in a model of its own; returns their names.

    One such weight is in memory at a time, beside the results, which have a sixth of the size.
    """
    graph = model.graph
    weights = {tensor.name: tensor for tensor in graph.initializer if is_external(tensor) and len(tensor.dims) == 2}
    names = {tensor.name for tensor in graph.initializer}
    done = []
    for node in graph.node:
        if node.name not in chosen or node.input[1] not in weights:
            continue
        done.append(node.name)
        result = _rewrite(_isolate(node, weights[node.input[1]], model, source), section, keep=())
        graph.initializer.extend(tensor for tensor in result.graph.initializer if tensor.name not in names)
        names.update(tensor.name for tensor in result.graph.initializer)
        node.CopyFrom(result.graph.node[0])
    return frozenset(done)


def _isolate(node: NodeProto, weight: TensorProto, model: ModelProto, source: Path) -> ModelProto:
    """A model of one product, with its weight; written field by field, because a message in another is a copy."""
    isolated = ModelProto(ir_version=model.ir_version, opset_import=model.opset_import)
    graph = isolated.graph
    graph.name = "product"
    graph.node.append(node)
    for values, name in ((graph.input, node.input[0]), (graph.output, node.output[0])):
        values.append(helper.make_tensor_value_info(name, weight.data_type, None))
    graph.initializer.add(
        name=weight.name,
        data_type=weight.data_type,
        dims=weight.dims,
        raw_data=files.read_external(weight, source),
    )
    return isolated

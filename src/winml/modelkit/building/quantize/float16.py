"""float16: half the size, and the arithmetic that GPUs and NPUs are made for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from onnx import ModelProto, NodeProto, TensorProto
from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST, convert_float_to_float16

from winml.modelkit.building.quantize.library import wrap_errors
from winml.modelkit.building.quantize.select import NodeSelection, select
from winml.modelkit.core.config import QuantizeSection
from winml.modelkit.core.errors import RequestError
from winml.modelkit.graph import walk

STREAMS = False
OPSET = 1
"""float16 is as old as ONNX."""

_BLOCKED = dict.fromkeys(DEFAULT_OP_BLOCK_LIST, "the operator has no float16 kernel, or loses too much in it")


def check(section: QuantizeSection) -> None:
    """Raise for options that do not apply here."""
    if section.activation_type is not None or section.weight_type is not None:
        raise RequestError("with `fp16` neither activations nor weights have a type of their own")


def choose(model: ModelProto, section: QuantizeSection, types: Mapping[str, int]) -> NodeSelection:
    """The nodes to convert; none in a model without float32."""
    weights = {tensor.data_type for tensor in walk.initializers(model)}
    if TensorProto.FLOAT not in weights.union(types.values()):
        return NodeSelection(frozenset(), {node.name: "the model has no float32 values" for node in walk.nodes(model)})
    able = {node.op_type for node in walk.nodes(model)} - _BLOCKED.keys()
    return select(model, section, able, bodies=True, unable=_BLOCKED).without(_with_sequences(model, types))


def _with_sequences(model: ModelProto, types: Mapping[str, int]) -> dict[str, str]:
    """Nodes that read or make what is no tensor, and those in their bodies, with the reason to skip them.

    The library converts tensors only; a sequence of a model's input or output keeps its type.
    """
    tensors = {*types, *(tensor.name for tensor in model.graph.initializer), ""}
    found = [node for node in model.graph.node if not tensors.issuperset([*node.input, *node.output])]
    names = [node.name for outer in found for node in _inside(outer)]
    return dict.fromkeys(names, "it reads or makes a sequence or an optional, which is not converted")


def _inside(node: NodeProto) -> Iterator[NodeProto]:
    """A node and the nodes in its bodies."""
    yield node
    for graph in walk.subgraphs(node):
        for inner in graph.node:
            yield from _inside(inner)


def quantize(
    model: ModelProto, section: QuantizeSection, selection: NodeSelection, source: Path
) -> tuple[ModelProto, NodeSelection]:
    """The model in float16, but for the nodes that are left."""
    with wrap_errors():
        result: ModelProto = convert_float_to_float16(
            model,
            keep_io_types=section.keep_io_types,
            disable_shape_infer=True,
            op_block_list=[],
            node_block_list=sorted(selection.left),
        )
    _drop_repeated(result)
    return result, selection


def _drop_repeated(model: ModelProto) -> None:
    """Drop duplicate nodes: the library casts a value again for every node that is left and reads it."""
    kept = list({node.SerializeToString(deterministic=True): None for node in model.graph.node})
    if len(kept) < len(model.graph.node):
        del model.graph.node[:]
        model.graph.node.extend(NodeProto.FromString(data) for data in kept)

"""float16: half the size, and the arithmetic that GPUs and NPUs are made for."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import ModelProto, TensorProto
from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST, convert_float_to_float16

from winml.modelkit.core.config import QuantizeSection
from winml.modelkit.core.errors import RequestError
from winml.modelkit.graph import walk
from winml.modelkit.stages.quantize.library import guarded
from winml.modelkit.stages.quantize.select import Selection, select

OPSET = 1
"""float16 is as old as ONNX."""

_BLOCKED = dict.fromkeys(DEFAULT_OP_BLOCK_LIST, "the operator has no float16 kernel, or loses too much in it")


def check(section: QuantizeSection) -> None:
    """Raise for what has no meaning here."""
    if section.activation_type is not None or section.weight_type is not None:
        raise RequestError("with `fp16` neither activations nor weights have a type of their own")


def choose(model: ModelProto, section: QuantizeSection, types: Mapping[str, int]) -> Selection:
    """The nodes to convert; none in a model without float32."""
    weights = {tensor.data_type for tensor in walk.initializers(model)}
    if TensorProto.FLOAT not in weights.union(types.values()):
        return Selection(frozenset(), {node.name: "the model has no float32 values" for node in walk.nodes(model)})
    able = {node.op_type for node in walk.nodes(model)} - _BLOCKED.keys()
    return select(model, section, able, bodies=True, unable=_BLOCKED)


def quantize(model: ModelProto, section: QuantizeSection, selection: Selection) -> tuple[ModelProto, Selection]:
    """The model in float16, but for the nodes that are left."""
    with guarded():
        result: ModelProto = convert_float_to_float16(
            model,
            keep_io_types=section.keep_io_types,
            disable_shape_infer=True,
            op_block_list=[],
            node_block_list=sorted(selection.left),
        )
    return result, selection

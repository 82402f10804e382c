"""Other forms of nodes that a device computes wrongly once they are quantized; they compute the same numbers."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

ONE = "winml_one"


def rewrite(model: ModelProto, rules: str) -> tuple[str, ...]:
    """Rewrite nodes of the main graph for the EP behind `rules`; returns what was done, for the report."""
    if rules != "qnn":
        return ()
    divided, narrowed = _divide(model), _narrow_means(model)
    notes = []
    if divided:
        notes.append(f"{divided} Reciprocal became Div: QNN computes it wrongly for inputs below 1 (npu-108)")
    if narrowed:
        notes.append(f"{narrowed} ReduceMean no longer name the axis that Unsqueeze made (npu-109)")
    return tuple(notes)


def _divide(model: ModelProto) -> int:
    """1/x for every Reciprocal of float32.

    The QNN EP divides a 1 that it quantizes by the range of the input, which cuts it off where that stays below 1.
    """
    if not _only_float32(model):
        return 0
    found = [node for node in model.graph.node if node.op_type == "Reciprocal" and not node.domain]
    for node in found:
        node.op_type = "Div"
        node.input.insert(0, ONE)
    if found:
        model.graph.initializer.append(numpy_helper.from_array(np.array(1.0, np.float32), ONE))
    return len(found)


def _only_float32(model: ModelProto) -> bool:
    """Whether no other float type can be divided: without types of values, those of weights and inputs decide."""
    others = {TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16}
    kinds = {tensor.data_type for tensor in model.graph.initializer}
    kinds |= {value.type.tensor_type.elem_type for value in model.graph.input}
    casts = {a.i for node in model.graph.node if node.op_type == "Cast" for a in node.attribute if a.name == "to"}
    return not others & (kinds | casts)


def _narrow_means(model: ModelProto) -> int:
    """Take axes of size 1 that an Unsqueeze made out of the ReduceMean after it.

    Behind Transpose and Unsqueeze the HTP takes the mean over both for a pool, and reads 16-bit values in the wrong
    order; pooled outputs of Swin have this form.
    """
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    producers = {name: node for node in model.graph.node for name in node.output}
    count = 0
    for node in model.graph.node:
        source = producers.get(node.input[0]) if node.op_type == "ReduceMean" and len(node.input) == 2 else None
        if source is None or source.op_type != "Unsqueeze" or not _keeps_axes(node):
            continue
        made, reduced = (_axes(constants, n) for n in (source, node))
        left = [axis for axis in reduced if axis not in made]
        if left and len(left) < len(reduced):
            name = f"{node.name}_axes_longer_than_1"
            model.graph.initializer.append(numpy_helper.from_array(np.array(left, np.int64), name))
            node.input[1] = name
            count += 1
    return count


def _keeps_axes(node: NodeProto) -> bool:
    return all(helper.get_attribute_value(a) == 1 for a in node.attribute if a.name == "keepdims")


def _axes(constants: dict[str, TensorProto], node: NodeProto) -> list[int]:
    """The axes of a node where they are constant; empty where they are not."""
    tensor = constants.get(node.input[1]) if len(node.input) > 1 else None
    return [] if tensor is None else [int(axis) for axis in numpy_helper.to_array(tensor).ravel()]

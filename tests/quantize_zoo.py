"""Small graphs that are valid ONNX and hard for quantizers."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from winml.modelkit.core.config import DataSection, QuantizeSection


def weight(name: str, *shape: int, seed: int = 0) -> onnx.TensorProto:
    values = np.random.default_rng(seed + sum(shape)).standard_normal(shape) * 0.3
    return numpy_helper.from_array(values.astype(np.float32), name)


def _value(name: str, shape: list[int | str] | None, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def model(
    nodes: list[onnx.NodeProto],
    weights: list[onnx.TensorProto],
    shape: list[int | str],
    *,
    opset: int = 17,
    output: list[int | str] | None = None,
) -> onnx.ModelProto:
    """A model from `x` to `y`."""
    graph = helper.make_graph(nodes, "g", [_value("x", shape)], [_value("y", output or shape)], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8, producer_name="zoo")


def node(op: str, inputs: list[str], output: str, **attributes: object) -> onnx.NodeProto:
    """A node without a name, as many exporters write them."""
    return helper.make_node(op, inputs, [output], **attributes)


IMAGE = [1, 4, 8, 8]


def shared_bias() -> onnx.ModelProto:
    """Three convolutions without names that share one bias."""
    nodes = [node("Conv", ["x", "w0", "b"], "c0"), node("Conv", ["c0", "w1", "b"], "c1")]
    nodes.append(node("Conv", ["c1", "w2", "b"], "y"))
    return model(nodes, [*(weight(f"w{i}", 4, 4, 1, 1, seed=i) for i in range(3)), weight("b", 4)], IMAGE)


def gemm(*, bias: tuple[int, ...] = (4,), dtype: type = np.float32, opset: int = 21) -> onnx.ModelProto:
    """One Gemm with a bias of this shape."""
    weights = [numpy_helper.from_array(numpy_helper.to_array(w).astype(dtype), w.name)
               for w in (weight("w", 8, 4), weight("b", *bias))]  # fmt: skip
    made = model([node("Gemm", ["x", "w", "b"], "y")], weights, [2, 8], opset=opset, output=[2, 4])
    for value in (*made.graph.input, *made.graph.output):
        value.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return made


def bias_as_value() -> onnx.ModelProto:
    """A bias that is also reshaped and added: the library's own tool never comes back from it."""
    nodes = [
        node("Conv", ["x", "w", "b"], "c"),
        node("Reshape", ["b", "shape"], "r"),
        node("Add", ["c", "r"], "y"),
    ]
    shape = numpy_helper.from_array(np.array([1, 4, 1, 1]), "shape")
    return model(nodes, [weight("w", 4, 4, 1, 1), weight("b", 4), shape], IMAGE)


def shared_weight() -> onnx.ModelProto:
    """One matrix, read by two Gemm that transpose it and by a MatMul that does not."""
    nodes = [
        node("Gemm", ["x", "w", "b"], "g", transB=1),
        node("MatMul", ["g", "w"], "m"),
        node("Gemm", ["m", "w", "b"], "y", transB=1),
    ]
    return model(nodes, [weight("w", 4, 4), weight("b", 4)], [2, 4])


def if_bodies() -> onnx.ModelProto:
    """Bodies that read a value behind which a Relu would be removed, and a weight of the outer graph."""
    kept = helper.make_graph([node("Identity", ["c"], "t")], "kept", [], [_value("t", None)])
    again = helper.make_graph(
        [node("Conv", ["x", "w", "b"], "e0"), node("Neg", ["e0"], "e")], "again", [], [_value("e", None)]
    )
    nodes = [
        node("Conv", ["x", "w", "b"], "c"),
        node("Relu", ["c"], "r"),
        node("ReduceSum", ["x"], "s", keepdims=0),
        node("Greater", ["s", "zero"], "more"),
        node("If", ["more"], "i", then_branch=kept, else_branch=again),
        node("Add", ["r", "i"], "y"),
    ]
    zero = numpy_helper.from_array(np.float32(0), "zero")
    return model(nodes, [weight("w", 4, 4, 1, 1), weight("b", 4), zero], IMAGE)


def loop() -> onnx.ModelProto:
    """A MatMul before, inside and after a loop."""
    body = helper.make_graph(
        [node("MatMul", ["v", "inner"], "m"), node("Identity", ["keep"], "go_on")],
        "body",
        [_value("i", [], TensorProto.INT64), _value("keep", [], TensorProto.BOOL), _value("v", [2, 4])],
        [_value("go_on", [], TensorProto.BOOL), _value("m", [2, 4])],
        [weight("inner", 4, 4, seed=5)],
    )
    nodes = [
        node("MatMul", ["x", "w"], "a"),
        node("Loop", ["n", "yes", "a"], "l", body=body),
        node("MatMul", ["l", "w"], "y"),
    ]
    trips, yes = numpy_helper.from_array(np.int64(3), "n"), numpy_helper.from_array(np.array(True), "yes")
    return model(nodes, [weight("w", 4, 4), trips, yes], [2, 4])


def masked() -> onnx.ModelProto:
    """Attention scores with a mask of minus infinity."""
    mask = numpy_helper.from_array(np.array([[0, 0, 0, -np.inf]], np.float32), "mask")
    nodes = [
        node("MatMul", ["x", "w0"], "scores"),
        node("Add", ["scores", "mask"], "hidden"),
        node("Softmax", ["hidden"], "p"),
        node("MatMul", ["p", "w1"], "y"),
    ]
    return model(nodes, [weight("w0", 4, 4), weight("w1", 4, 4, seed=1), mask], [2, 4])


def constant_weight() -> onnx.ModelProto:
    """A weight in a Constant node."""
    constant = helper.make_node("Constant", [], ["w"], value=weight("", 4, 4, 1, 1))
    return model([constant, node("Conv", ["x", "w"], "y")], [], IMAGE)


def default_input() -> onnx.ModelProto:
    """A weight that is an input with a default value."""
    made = model([node("Conv", ["x", "w"], "y")], [weight("w", 4, 4, 1, 1)], IMAGE)
    made.graph.input.append(_value("w", [4, 4, 1, 1]))
    return made


def old_opset() -> onnx.ModelProto:
    nodes = [node("Conv", ["x", "w", "b"], "c"), node("Relu", ["c"], "y")]
    return model(nodes, [weight("w", 4, 4, 1, 1), weight("b", 4)], IMAGE, opset=9)


def stale_types() -> onnx.ModelProto:
    """What a fusion left behind: a value that is gone, and a shape that is wrong."""
    made = shared_weight()
    made.graph.value_info.extend([_value("gone", [1]), _value("g", [2, 9])])
    return made


GRAPHS = {
    "shared_bias": shared_bias,
    "bias_as_value": bias_as_value,
    "shared_weight": shared_weight,
    "if_bodies": if_bodies,
    "loop": loop,
    "masked": masked,
    "constant_weight": constant_weight,
    "default_input": default_input,
    "old_opset": old_opset,
    "stale_types": stale_types,
}

RANDOM = DataSection("random", limit=4)
SECTIONS = {
    "u8s8": QuantizeSection(
        "static", activation_type="uint8", weight_type="int8", per_channel=True, calibration=RANDOM
    ),
    "u8u8": QuantizeSection("static", activation_type="uint8", weight_type="uint8", calibration=RANDOM),
    "s8s8": QuantizeSection("static", activation_type="int8", weight_type="int8", calibration=RANDOM),
    "w8a16 for qnn": QuantizeSection(
        "static", activation_type="uint16", weight_type="uint8", rules="qnn", calibration=RANDOM
    ),
    "w4a16 for qnn": QuantizeSection(
        "static",
        activation_type="uint16",
        weight_type="int4",
        per_channel=True,
        rules="qnn",
        calibration=RANDOM,
    ),
    "dynamic": QuantizeSection("dynamic", weight_type="int8", per_channel=True, reduce_range=True),
    "fp16": QuantizeSection("fp16"),
    "int4": QuantizeSection("weight_only", weight_type="uint4", block_size=32),
}

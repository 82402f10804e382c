"""Small models for what `winml analyze` looks at: quantized types, fused operators, folds that take long."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import quantization

import model_zoo

TYPES = {
    "uint8": (TensorProto.UINT8, 128),
    "int8": (TensorProto.INT8, 0),
    "uint16": (TensorProto.UINT16, 32768),
    "int4": (TensorProto.INT4, 0),
}


def _zero(name: str, dtype: str, count: int | None = None) -> onnx.TensorProto:
    kind, zero = TYPES[dtype]
    return helper.make_tensor(name, kind, [] if count is None else [count], [zero] * (count or 1))


def qdq_conv(activation: str, weight: str, *, per_channel: bool = False) -> onnx.ModelProto:
    """One quantized convolution, written as pairs with the given integer types."""
    channels = 4
    scales = np.full(channels, 0.02, np.float32) if per_channel else np.float32(0.02)
    kind, zero = TYPES[weight]
    stored = np.arange(channels * 3 * 3 * 3).reshape(channels, 3, 3, 3) % 7 + (zero if weight == "uint8" else -3)
    initializers = [
        numpy_helper.from_array(np.float32(0.01), "s"),
        _zero("z", activation),
        helper.make_tensor("w", kind, stored.shape, stored.flatten().tolist()),
        numpy_helper.from_array(np.asarray(scales), "ws"),
        _zero("wz", weight, channels if per_channel else None),
        numpy_helper.from_array(np.arange(channels, dtype=np.int32), "b"),
        numpy_helper.from_array(np.asarray(scales * np.float32(0.01), np.float32), "bs"),
        numpy_helper.from_array(np.zeros_like(scales, np.int32), "bz"),
    ]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"], "q_in"),
        helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xd"], "dq_in"),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], "dq_weight", axis=0),
        helper.make_node("DequantizeLinear", ["b", "bs", "bz"], ["bd"], "dq_bias", axis=0),
        helper.make_node("Conv", ["xd", "wd", "bd"], ["c"], "conv", kernel_shape=[3, 3]),
        helper.make_node("QuantizeLinear", ["c", "s", "z"], ["cq"], "q_out"),
        helper.make_node("DequantizeLinear", ["cq", "s", "z"], ["y"], "dq_out"),
    ]
    graph = helper.make_graph(
        nodes,
        "qdq",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, channels, 6, 6])],
        initializers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def contrib(body: str) -> onnx.ModelProto:
    return model_zoo.text_model(body, extra=', "com.microsoft" : 1')


def skip_layer_norm() -> onnx.ModelProto:
    return contrib(
        """g (float[1,4,8] x, float[1,4,8] s) => (float[1,4,8] y) <float[8] g = {1,1,1,1,1,1,1,1}>
        { n = com.microsoft.SkipLayerNormalization (x, s, g)  y = Relu (n) }"""
    )


def crashes_qnn() -> onnx.ModelProto:
    """4-bit weights that are given at run time: QNN 2.7.0 ends the process when it looks at them."""
    return contrib(
        """g (float[1,4,32] x, uint8[32,1,16] w, float[32] s) => (float[1,4,32] y)
        { y = com.microsoft.MatMulNBits <K: int = 32, N: int = 32, bits: int = 4, block_size: int = 32> (x, w, s) }"""
    )


def attention(*, mask: bool) -> onnx.ModelProto:
    """The native Attention of opset 23, with a boolean mask as exporters write it."""
    names = ["q", "k", "v", *(["m"] if mask else [])]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2, 4, 8]) for name in names[:3]]
    if mask:
        inputs.append(helper.make_tensor_value_info("m", TensorProto.BOOL, [4, 4]))
    graph = helper.make_graph(
        [helper.make_node("Attention", names, ["y"], "attention")],
        "attention",
        inputs,
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, 4, 8])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


def folds_for_long(products: int = 40, size: int = 4096) -> onnx.ModelProto:
    """Constant products that the runtime works out while it opens the model, which takes minutes."""
    lines = ["a0 = ConstantOfShape <value = float[1] {0.001}> (s)"]
    lines += [f"a{i + 1} = MatMul (a{i}, a0)" for i in range(products)]
    body = "  ".join(lines)
    return model_zoo.text_model(
        f"g (float[{size},{size}] x) => (float[{size},{size}] y) <int64[2] s = {{{size}, {size}}}> "
        f"{{ {body}  y = Add (x, a{products}) }}"
    )


def int4_blocks() -> onnx.ModelProto:
    """A product whose 4-bit weights have a scale per block of 16 rows."""
    stored = np.arange(32 * 16) % 7 - 3
    initializers = [
        helper.make_tensor("w", TensorProto.INT4, [32, 16], stored.tolist()),
        numpy_helper.from_array(np.full((2, 16), 0.02, np.float32), "ws"),
    ]
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "ws"], ["wd"], "dq_weight", axis=0, block_size=16),
        helper.make_node("MatMul", ["x", "wd"], ["m"], "product"),
        helper.make_node("Relu", ["m"], ["y"], "relu"),
    ]
    graph = helper.make_graph(
        nodes,
        "blocks",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 32])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 16])],
        initializers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


class Calibration(quantization.CalibrationDataReader):
    """Two samples for `residual`."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self._samples = iter([{"x": rng.random((1, 8, 8, 8), dtype=np.float32)} for _ in range(2)])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._samples, None)


def residual() -> onnx.ModelProto:
    """Two residual blocks of convolutions."""
    rng = np.random.default_rng(0)
    nodes, initializers, value = [], [], "x"
    for block in range(2):
        for part in ("a", "b"):
            weight = (rng.standard_normal((8, 8, 3, 3)) * 0.1).astype(np.float32)
            initializers.append(numpy_helper.from_array(weight, f"w{part}{block}"))
        nodes += [
            helper.make_node("Conv", [value, f"wa{block}"], [f"c{block}"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", [f"c{block}"], [f"r{block}"]),
            helper.make_node("Conv", [f"r{block}", f"wb{block}"], [f"d{block}"], pads=[1, 1, 1, 1]),
            helper.make_node("Add", [value, f"d{block}"], [f"s{block}"]),
            helper.make_node("Relu", [f"s{block}"], [f"o{block}"]),
        ]
        value = f"o{block}"
    shape = [1, 8, 8, 8]
    graph = helper.make_graph(
        nodes,
        "residual",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, shape)],
        initializers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)

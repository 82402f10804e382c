"""Small real models for tests, written as ONNX text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, parser

HEADER = '<ir_version: 10, opset_import: ["" : 21{extra}]>'


def text_model(body: str, *, extra: str = "") -> onnx.ModelProto:
    """A model from `name (inputs) => (outputs) { nodes }` with opset 21."""
    return parser.parse_model(HEADER.format(extra=extra) + body)


def saved(model: onnx.ModelProto, path: Path) -> Path:
    path.write_bytes(model.SerializeToString())
    return path


def relu() -> onnx.ModelProto:
    return text_model("relu (float[batch,4] x) => (float[batch,4] y) { y = Relu(x) }")


def _weights(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * 0.2).astype(np.float32)


def conv_net(*, fused: bool = False, channels: int = 16, size: int = 16) -> onnx.ModelProto:
    """Three convolutions with Relu; `fused` writes them as com.microsoft FusedConv, as an extended save would."""
    nodes, initializers = [], []
    value, width = "x", 3
    for i in range(3):
        initializers.append(numpy_helper.from_array(_weights((channels, width, 3, 3), i), f"w{i}"))
        initializers.append(numpy_helper.from_array(_weights((channels,), 10 + i), f"b{i}"))
        inputs, pads = [value, f"w{i}", f"b{i}"], [1, 1, 1, 1]
        if fused:
            nodes.append(
                helper.make_node(
                    "FusedConv", inputs, [f"r{i}"], domain="com.microsoft", activation="Relu",
                    pads=pads, kernel_shape=[3, 3],
                )
            )  # fmt: skip
        else:
            nodes.append(helper.make_node("Conv", inputs, [f"c{i}"], pads=pads, kernel_shape=[3, 3]))
            nodes.append(helper.make_node("Relu", [f"c{i}"], [f"r{i}"]))
        value, width = f"r{i}", channels
    nodes.append(helper.make_node("GlobalAveragePool", [value], ["p"]))
    nodes.append(helper.make_node("Flatten", ["p"], ["y"]))
    graph = helper.make_graph(
        nodes,
        "conv_net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, size, size])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, channels])],
        initializers,
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def conv_w8a8(path: Path) -> Path:
    """The conv net, statically quantized to QDQ with uint8 activations and weights."""
    import tempfile

    from onnxruntime import quantization as q

    class Reader(q.CalibrationDataReader):
        def __init__(self) -> None:
            rng = np.random.default_rng(0)
            self._data = iter([{"x": rng.random((1, 3, 16, 16), dtype=np.float32)} for _ in range(4)])

        def get_next(self) -> dict[str, np.ndarray] | None:
            return next(self._data, None)

    with tempfile.TemporaryDirectory() as folder:
        source = saved(conv_net(), Path(folder) / "conv.onnx")
        q.quantize_static(
            str(source), str(path), Reader(), quant_format=q.QuantFormat.QDQ,
            activation_type=q.QuantType.QUInt8, weight_type=q.QuantType.QUInt8,
        )  # fmt: skip
    return path


def divides_int_min() -> onnx.ModelProto:
    """INT_MIN / -1, which ends the process with SIGFPE on x86."""
    return text_model(
        """g (int32[1] x) => (int32[1] y)
        <int32[1] lowest = {-2147483648}, int32[1] minus = {-1}, int32[1] one = {1}>
        { z = Sub(x, x)  a = Add(lowest, z)  b = Add(minus, z)  y = Div(a, b) }"""
    )


def crashes_when_folded() -> onnx.ModelProto:
    """INT_MIN / -1 among constants: whoever folds them when the model is opened ends with SIGFPE on x86."""
    return text_model(
        """g (int32[1] x) => (int32[1] y) <int32[1] lowest = {-2147483648}, int32[1] minus = {-1}>
        { a = Div(lowest, minus)  y = Add(a, x) }"""
    )


def endless_loop() -> onnx.ModelProto:
    """A Loop whose condition never turns false."""
    return text_model(
        """g (float[1] x) => (float[1] y)
        <int64 trips = {9223372036854775807}, bool cond = {1}>
        {
          y = Loop (trips, cond, x) <body = b (int64 i, bool keep_in, float[1] v) => (bool keep, float[1] w)
            { keep = Identity(keep_in)  w = Sin(v) }>
        }"""
    )


def huge_allocation() -> onnx.ModelProto:
    return text_model(
        """g (int64[1] x) => (float[n] y) <int64[1] many = {4398046511104}>
        { z = Sub(x, x)  s = Add(many, z)  y = ConstantOfShape(s) }"""
    )


def embedding(rows: int = 10) -> onnx.ModelProto:
    """Token ids to rows of a table: ids outside the table fail at run time."""
    table = numpy_helper.from_array(_weights((rows, 4), 0), "table")
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "ids"], ["y"])],
        "embedding",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "sequence"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", "sequence", 4])],
        [table],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)

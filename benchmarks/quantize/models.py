"""Two nets with random weights: a residual convolution net and a transformer encoder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class _Net:
    """Collects nodes and weights."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(7)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def weight(self, *shape: int) -> str:
        name = f"w{len(self.weights)}"
        scale = 1.0 / np.sqrt(max(1, int(np.prod(shape[1:]))))
        values = (self._rng.standard_normal(shape) * scale).astype(np.float32)
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def sizes(self, *values: int) -> str:
        name = f"s{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def add(self, op: str, *inputs: str, **attributes: object) -> str:
        out = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [out], name=f"n{len(self.nodes)}", **attributes))
        return out

    def conv(self, value: str, width: int, channels: int, *, stride: int = 1) -> str:
        weight, bias = self.weight(channels, width, 3, 3), self.weight(channels)
        return self.add("Conv", value, weight, bias, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[stride, stride])


def _residual(net: _Net) -> str:
    value, width = net.add("Relu", net.conv("x", 3, 64, stride=2)), 64
    for channels in (64, 128, 256):
        value = net.add("Relu", net.conv(value, width, channels, stride=2))
        width = channels
        for _ in range(2):
            inner = net.conv(net.add("Relu", net.conv(value, width, width)), width, width)
            value = net.add("Relu", net.add("Add", inner, value))
    return net.add("Gemm", net.add("Flatten", net.add("GlobalAveragePool", value)), net.weight(1000, width), transB=1)


def _encoder(net: _Net, *, width: int = 256, layers: int = 4, heads: int = 4) -> str:
    value = "x"
    split, joined = net.sizes(1, 64, heads, width // heads), net.sizes(1, 64, width)
    for _ in range(layers):
        normed = net.add("LayerNormalization", value, net.weight(width), net.weight(width))
        q, k, v = (net.add("Reshape", net.add("MatMul", normed, net.weight(width, width)), split) for _ in range(3))
        scores = net.add(
            "MatMul", net.add("Transpose", q, perm=[0, 2, 1, 3]), net.add("Transpose", k, perm=[0, 2, 3, 1])
        )
        mixed = net.add("MatMul", net.add("Softmax", scores), net.add("Transpose", v, perm=[0, 2, 1, 3]))
        flat = net.add("Reshape", net.add("Transpose", mixed, perm=[0, 2, 1, 3]), joined)
        value = net.add("Add", value, net.add("MatMul", flat, net.weight(width, width)))
        hidden = net.add("Relu", net.add("MatMul", value, net.weight(width, 4 * width)))
        value = net.add("Add", value, net.add("MatMul", hidden, net.weight(4 * width, width)))
    return net.add("ReduceMean", value, net.sizes(1), keepdims=0)


KINDS: dict[str, tuple[list[int], int]] = {"residual": ([1, 3, 64, 64], 1000), "encoder": ([1, 64, 256], 256)}


def saved(kind: str, folder: Path) -> Path:
    """The net of a kind, in a file."""
    shape, width = KINDS[kind]
    net = _Net()
    net.nodes.append(helper.make_node("Identity", [_residual(net) if kind == "residual" else _encoder(net)], ["y"]))
    graph = helper.make_graph(
        net.nodes,
        kind,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, width])],
        net.weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    path = folder / f"{kind}.onnx"
    path.write_bytes(model.SerializeToString())
    return path

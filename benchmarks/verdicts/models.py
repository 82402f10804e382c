"""Models with a known truth: a plain net, and the same net with a side chain that costs time and changes nothing.

The side chain is `k` times MatMul and Tanh on a part of the input, times 0.0, added to the output: the runtime may not
remove it (0 times NaN is not 0), and the outputs are bit-identical.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class _Net:
    """Collects nodes and weights."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def weight(self, shape: tuple[int, ...], scale: float = 0.05) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(
            numpy_helper.from_array((self._rng.standard_normal(shape) * scale).astype(np.float32), name)
        )
        return name

    def constant(self, values: list[int] | float) -> str:
        name = f"c{len(self.weights)}"
        array = np.array(values, np.float32 if isinstance(values, float) else np.int64)
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def add(self, op: str, *inputs: str, **attributes: object) -> str:
        out = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [out], **attributes))
        return out


def _cnn(net: _Net, value: str, *, channels: int, layers: int) -> str:
    width = 3
    for _ in range(layers):
        weight, bias = net.weight((channels, width, 3, 3)), net.weight((channels,))
        value = net.add("Conv", value, weight, bias, pads=[1, 1, 1, 1], kernel_shape=[3, 3])
        value, width = net.add("Relu", value), channels
    value = net.add("GlobalAveragePool", value)
    return net.add("Flatten", value)


def _encoder(net: _Net, value: str, *, width: int, layers: int) -> str:
    for _ in range(layers):
        normed = net.add("LayerNormalization", value, net.weight((width,)), net.weight((width,)))
        q, k, v = (net.add("MatMul", normed, net.weight((width, width))) for _ in range(3))
        scores = net.add("Softmax", net.add("MatMul", q, net.add("Transpose", k, perm=[0, 2, 1])))
        mixed = net.add("MatMul", net.add("MatMul", scores, v), net.weight((width, width)))
        value = net.add("Add", value, mixed)
        hidden = net.add("Relu", net.add("MatMul", value, net.weight((width, 4 * width))))
        value = net.add("Add", value, net.add("MatMul", hidden, net.weight((4 * width, width))))
    return net.add("ReduceMean", value, net.constant([1]), keepdims=0)


KINDS: dict[str, tuple[list[int], int, int]] = {
    # input shape, width of the output, width of the side chain
    "cnn": ([1, 3, 40, 40], 48, 128),
    "encoder": ([1, 32, 192], 192, 128),
    "tiny": ([1, 3, 32, 32], 24, 32),
}


def build(kind: str, chain: int) -> onnx.ModelProto:
    """The net of a kind with `chain` steps in its side chain; none when 0."""
    shape, width, side = KINDS[kind]
    net = _Net(7)
    out = {
        "cnn": lambda: _cnn(net, "x", channels=48, layers=4),
        "encoder": lambda: _encoder(net, "x", width=192, layers=12),
        "tiny": lambda: _cnn(net, "x", channels=24, layers=3),
    }[kind]()
    if chain:
        flat = net.add("Reshape", "x", net.constant([1, int(np.prod(shape))]))
        value = net.add("Slice", flat, net.constant([0]), net.constant([side]), net.constant([1]))
        weight = net.weight((side, side))
        for _ in range(chain):
            value = net.add("Tanh", net.add("MatMul", value, weight))
        nothing = net.add("Mul", net.add("ReduceSum", value, net.constant([1]), keepdims=1), net.constant(0.0))
        out = net.add("Add", out, nothing)
    net.nodes.append(helper.make_node("Identity", [out], ["y"]))
    graph = helper.make_graph(
        net.nodes,
        kind,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, width])],
        net.weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def saved(kind: str, chain: int, folder: Path) -> Path:
    path = folder / f"{kind}_{chain}.onnx"
    if not path.exists():
        path.write_bytes(build(kind, chain).SerializeToString())
    return path

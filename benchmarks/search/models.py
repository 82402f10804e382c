"""Three nets like those people search for, with random weights: a CNN, a vision transformer, a text encoder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Net:
    """Collects nodes and weights."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def tensor(self, array: np.ndarray) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, *shape: int) -> str:
        scale = 1.0 / np.sqrt(np.prod(shape[1:]) if len(shape) == 4 else shape[0])
        return self.tensor((self._rng.standard_normal(shape) * scale).astype(np.float32))

    def scalar(self, value: float) -> str:
        return self.tensor(np.array(value, np.float32))

    def ints(self, *values: int) -> str:
        return self.tensor(np.array(values, np.int64))

    def add(self, op: str, *inputs: str, **attributes: object) -> str:
        out = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [out], **attributes))
        return out

    def model(self, given: onnx.ValueInfoProto, shape: list[int], last: str) -> onnx.ModelProto:
        self.nodes.append(helper.make_node("Identity", [last], ["y"]))
        out = helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)
        graph = helper.make_graph(self.nodes, "net", [given], [out], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def _gelu(net: Net, x: str) -> str:
    inner = net.add("Add", net.add("Erf", net.add("Div", x, net.scalar(1.4142135))), net.scalar(1.0))
    return net.add("Mul", net.add("Mul", x, inner), net.scalar(0.5))


def _norm(net: Net, x: str, width: int) -> str:
    """Layer normalisation as older exporters write it."""
    centred = net.add("Sub", x, net.add("ReduceMean", x, axes=[-1]))
    variance = net.add("ReduceMean", net.add("Pow", centred, net.scalar(2.0)), axes=[-1])
    normed = net.add("Div", centred, net.add("Sqrt", net.add("Add", variance, net.scalar(1e-5))))
    scaled = net.add("Mul", normed, net.tensor(np.ones(width, np.float32)))
    return net.add("Add", scaled, net.tensor(np.zeros(width, np.float32)))


def _linear(net: Net, x: str, width: int, out: int) -> str:
    return net.add("Add", net.add("MatMul", x, net.weight(width, out)), net.weight(out))


def _layers(net: Net, x: str, *, tokens: int, width: int, heads: int, layers: int) -> str:
    split = net.ints(1, tokens, heads, width // heads)
    whole = net.ints(1, tokens, width)
    for _ in range(layers):
        normed = _norm(net, x, width)
        q, k, v = (
            net.add(
                "Reshape", net.add("Add", net.add("MatMul", normed, net.weight(width, width)), net.weight(width)), split
            )
            for _ in range(3)
        )
        q, v = (net.add("Transpose", t, perm=[0, 2, 1, 3]) for t in (q, v))
        scores = net.add("MatMul", q, net.add("Transpose", k, perm=[0, 2, 3, 1]))
        scores = net.add("Softmax", net.add("Div", scores, net.scalar(float(np.sqrt(width // heads)))), axis=-1)
        mixed = net.add("Transpose", net.add("MatMul", scores, v), perm=[0, 2, 1, 3])
        mixed = net.add("MatMul", net.add("Reshape", mixed, whole), net.weight(width, width))
        x = net.add("Add", x, mixed)
        hidden = net.add(
            "Add", net.add("MatMul", _norm(net, x, width), net.weight(width, 4 * width)), net.weight(4 * width)
        )
        x = net.add("Add", x, net.add("MatMul", _gelu(net, hidden), net.weight(4 * width, width)))
    return net.add("ReduceMean", _norm(net, x, width), axes=[1], keepdims=0)


def cnn() -> onnx.ModelProto:
    """Residual blocks with batch normalisation, 96 x 96 pixels."""
    net, x, width = Net(1), "image", 3
    for channels, stride in ((32, 2), (32, 1), (64, 2), (64, 1), (96, 2), (96, 1)):
        y = net.add(
            "Conv", x, net.weight(channels, width, 3, 3), strides=[stride] * 2, pads=[1] * 4, kernel_shape=[3, 3]
        )
        ones, zeros = (net.tensor(np.full(channels, v, np.float32)) for v in (1.0, 0.0))
        y = net.add("BatchNormalization", y, ones, zeros, zeros, ones)
        x = net.add("Relu", net.add("Add", y, x) if stride == 1 else y)
        width = channels
    x = net.add("Flatten", net.add("GlobalAveragePool", x))
    given = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 96, 96])
    return net.model(given, [1, 10], net.add("Gemm", x, net.weight(width, 10)))


def vit() -> onnx.ModelProto:
    """Patches of 8 x 8 pixels through four layers."""
    net, width = Net(2), 128
    patches = net.add("Conv", "image", net.weight(width, 3, 8, 8), strides=[8, 8], kernel_shape=[8, 8])
    tokens = net.add("Transpose", net.add("Reshape", patches, net.ints(1, width, 64)), perm=[0, 2, 1])
    pooled = _layers(net, tokens, tokens=64, width=width, heads=4, layers=4)
    given = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 64, 64])
    return net.model(given, [1, 10], net.add("MatMul", pooled, net.weight(width, 10)))


def text() -> onnx.ModelProto:
    """Token ids through an embedding and four layers."""
    net, width = Net(3), 192
    embedded = net.add("Gather", net.weight(1000, width), "ids")
    pooled = _layers(net, embedded, tokens=48, width=width, heads=4, layers=4)
    given = helper.make_tensor_value_info("ids", TensorProto.INT64, [1, 48])
    return net.model(given, [1, width], pooled)


MODELS = {"cnn": cnn, "vit": vit, "text": text}


def save(name: str, folder: Path) -> tuple[Path, Path]:
    """A model and data for it."""
    rng = np.random.default_rng(0)
    path, data = folder / f"{name}.onnx", folder / f"{name}.npz"
    path.write_bytes(MODELS[name]().SerializeToString())
    if name == "text":
        np.savez(data, ids=rng.integers(0, 1000, (32, 48)))
    else:
        side = 96 if name == "cnn" else 64
        np.savez(data, image=rng.standard_normal((32, 3, side, side)).astype(np.float32))
    return path, data

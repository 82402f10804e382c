"""Graphs as exporters write them for families of architectures: random weights, as wide and deep as asked."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class _Graph:
    def __init__(self, width: int, *, whole_norms: bool) -> None:
        self.width, self.whole_norms = width, whole_norms
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._random = np.random.default_rng(0)

    def add(self, op: str, *inputs: str, **attributes: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def weight(self, *shape: int) -> str:
        return self.constant(self._random.normal(0, 0.1, shape).astype(np.float32))

    def constant(self, value: object) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def linear(self, value: str, out: int | None = None) -> str:
        product = self.add("MatMul", value, self.weight(self.width, out or self.width))
        return self.add("Add", product, self.weight(out or self.width))

    def norm(self, value: str) -> str:
        """As one operator, or in parts as exporters before opset 17 write it."""
        scale, shift = self.weight(self.width), self.weight(self.width)
        if self.whole_norms:
            return self.add("LayerNormalization", value, scale, shift, axis=-1)
        centred = self.add("Sub", value, self.add("ReduceMean", value, axes=[-1]))
        square = self.add("ReduceMean", self.add("Pow", centred, self.constant(np.float32(2))), axes=[-1])
        root = self.add("Sqrt", self.add("Add", square, self.constant(np.float32(1e-6))))
        return self.add("Add", self.add("Mul", self.add("Div", centred, root), scale), shift)

    def attention(self, value: str) -> str:
        q, k, v = (self.linear(value) for _ in range(3))
        scores = self.add("Softmax", self.add("MatMul", q, self.add("Transpose", k, perm=[0, 2, 1])), axis=-1)
        return self.linear(self.add("MatMul", scores, v))

    def gelu(self, value: str) -> str:
        half = self.add("Erf", self.add("Div", value, self.constant(np.float32(1.4142135))))
        return self.add("Mul", self.add("Mul", value, self.add("Add", half, self.constant(np.float32(1)))),
                        self.constant(np.float32(0.5)))  # fmt: skip

    def model(self, image: bool, value: str, tokens: int) -> onnx.ModelProto:
        shape = [1, 3, 2 * tokens, 2] if image else [1, tokens, self.width]
        graph = helper.make_graph(
            self.nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(value, TensorProto.FLOAT, [1, tokens, self.width])], self.weights,
        )  # fmt: skip
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        return model


def _image_encoder(*, layers: int, width: int, whole_norms: bool, layer_scale: bool) -> onnx.ModelProto:
    net, tokens = _Graph(width, whole_norms=whole_norms), 4
    patches = net.add("Conv", "x", net.weight(width, 3, 2, 2), kernel_shape=[2, 2], strides=[2, 2])
    flat = net.add("Reshape", patches, net.constant(np.array([1, width, tokens], np.int64)))
    value = net.add("Transpose", flat, perm=[0, 2, 1])

    def scaled(part: str) -> str:
        return net.add("Mul", part, net.weight(width)) if layer_scale else part

    for _ in range(layers):
        value = net.add("Add", scaled(net.attention(net.norm(value))), value)
        value = net.add("Add", scaled(net.linear(net.gelu(net.linear(net.norm(value))))), value)
    return net.model(True, net.norm(value), tokens)


def vit(*, layers: int = 3, width: int = 8, whole_norms: bool = True) -> onnx.ModelProto:
    return _image_encoder(layers=layers, width=width, whole_norms=whole_norms, layer_scale=False)


def dinov2(*, layers: int = 3, width: int = 8, whole_norms: bool = True) -> onnx.ModelProto:
    return _image_encoder(layers=layers, width=width, whole_norms=whole_norms, layer_scale=True)


def bert(*, layers: int = 3, width: int = 8, whole_norms: bool = True) -> onnx.ModelProto:
    """Norms after the sums, and no convolution."""
    net = _Graph(width, whole_norms=whole_norms)
    value = net.norm("x")
    for _ in range(layers):
        value = net.norm(net.add("Add", net.attention(value), value))
        value = net.norm(net.add("Add", net.linear(net.gelu(net.linear(value))), value))
    return net.model(False, value, 4)


FAMILIES: dict[str, Callable[..., onnx.ModelProto]] = {"vit": vit, "dinov2": dinov2, "bert": bert}

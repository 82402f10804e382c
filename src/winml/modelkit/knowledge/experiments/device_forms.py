"""Quantized nodes in two forms that compute the same numbers, of which a device gets one wrong."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto

from winml.modelkit.knowledge.experiments.parts import Graph, tensor

_TYPES: dict[str, type[np.uint8] | type[np.uint16]] = {"uint8": np.uint8, "uint16": np.uint16}


class _Pairs:
    """Puts a pair of QuantizeLinear and DequantizeLinear behind values."""

    def __init__(self, graph: Graph, activations: str) -> None:
        self._graph = graph
        self._type = _TYPES[activations]
        self._steps = int(np.iinfo(self._type).max)

    def pair(self, value: str, low: float, high: float) -> str:
        return self._floats(self._graph.add("QuantizeLinear", value, *(ends := self._ends(low, high))), ends)

    def one(self) -> str:
        """The number 1 with a scale of its own."""
        return self._floats(self._graph.constant(np.array([self._steps], self._type)), self._ends(0.0, 1.0))

    def _ends(self, low: float, high: float) -> tuple[str, str]:
        scale = (high - low) / self._steps
        zero = self._type(round(-low / scale))
        return self._graph.constant(np.array(scale, np.float32)), self._graph.constant(np.array(zero))

    def _floats(self, value: str, ends: tuple[str, str]) -> str:
        return self._graph.add("DequantizeLinear", value, *ends)


def quantized_norm(*, form: str = "reciprocal", activations: str = "uint16", opset: int = 21) -> ModelProto:
    """RMSNorm of numbers below 1: times the `reciprocal` of their root mean square, or times 1 to `divide` by it."""
    graph = Graph()
    pairs = _Pairs(graph, activations)
    x = pairs.pair("x", 0.0, 1.0)
    square = pairs.pair(graph.add("Mul", x, x), 0.0, 1.0)
    last = graph.constant(np.array([-1], np.int64))
    mean = pairs.pair(graph.add("ReduceMean", square, last, keepdims=1), 0.0, 0.6)
    root = pairs.pair(graph.add("Sqrt", mean), 0.0, 0.8)
    scale = graph.add("Reciprocal", root) if form == "reciprocal" else graph.add("Div", pairs.one(), root)
    y = pairs.pair(graph.add("Mul", x, pairs.pair(scale, 0.0, 5.0)), 0.0, 5.0)
    return graph.model([tensor("x", [1, 16, 32])], y, [1, 16, 32], opset=opset)


def quantized_mean(*, axes: str = "both", activations: str = "uint16", opset: int = 21) -> ModelProto:
    """The mean over words as Swin takes it, behind Transpose and Unsqueeze: over `both` axes, or the `longer` one."""
    graph = Graph()
    pairs = _Pairs(graph, activations)
    channels = pairs.pair(graph.add("Transpose", pairs.pair("x", 0.0, 1.0), perm=[0, 2, 1]), 0.0, 1.0)
    rows = graph.add("Unsqueeze", channels, graph.constant(np.array([-2], np.int64)))
    over = graph.constant(np.array([-1, -2] if axes == "both" else [-1], np.int64))
    mean = graph.add("ReduceMean", pairs.pair(rows, 0.0, 1.0), over, keepdims=1)
    # Centered: means of numbers from 0 to 1 are so much alike that any two agree.
    centered = graph.add("Sub", pairs.pair(mean, 0.0, 1.0), graph.constant(np.array(0.5, np.float32)))
    return graph.model([tensor("x", [1, 64, 16])], centered, [1, 16, 1, 1], opset=opset)

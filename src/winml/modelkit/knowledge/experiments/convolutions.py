"""Convolutional nets: plain, with what ONNX Runtime fuses them into, and quantized as QDQ."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper

from winml.modelkit.knowledge.experiments.parts import CONTRIB, Array, Graph, tensor

_KERNEL: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
_RANGES = {"uint8": (0, 255), "int8": (-128, 127), "uint16": (0, 65535), "int4": (-8, 7)}
_TYPES = {"uint8": TensorProto.UINT8, "int8": TensorProto.INT8, "uint16": TensorProto.UINT16, "int4": TensorProto.INT4}
_SPAN = 6.0
"""Values that activations are quantized to lie between zero and this."""


def conv_net(
    *,
    layers: int = 3,
    channels: int = 16,
    size: int = 16,
    fused: bool = False,
    batch: int | str = 1,
    window: int | None = None,
    opset: int = 21,
) -> ModelProto:
    """Convolutions with Relu and a pool; `fused` writes each pair as the one operator that optimization makes of it.

    `window` is the width of the pool, which need not end with the image; None pools all of it.
    """
    graph = Graph()
    value, width = "x", 3
    for _ in range(layers):
        weights = graph.constant(graph.weights(channels, width, 3, 3))
        bias = graph.constant(0.1 * graph.weights(channels))
        if fused:
            value = graph.add("FusedConv", value, weights, bias, domain=CONTRIB, activation="Relu", **_KERNEL)
        else:
            value = graph.add("Relu", graph.add("Conv", value, weights, bias, **_KERNEL))
        width = channels
    if window is None:
        pooled = graph.add("GlobalAveragePool", value)
    else:
        wide = [window, window]
        pooled = graph.add("AveragePool", value, kernel_shape=wide, strides=wide, ceil_mode=1, count_include_pad=1)
    return graph.model(
        [tensor("x", [batch, 3, size, size])], graph.add("Flatten", pooled), [batch, channels], opset=opset
    )


def _integers(values: Array, kind: str) -> TensorProto:
    low, high = _RANGES[kind]
    clipped = np.clip(np.round(values), low, high).astype(np.int32)
    return helper.make_tensor("", _TYPES[kind], clipped.shape, clipped.ravel().tolist())


def _activation_scale(kind: str) -> float:
    low, high = _RANGES[kind]
    return _SPAN / (high - low)


def _activation(graph: Graph, value: str, kind: str) -> str:
    """The value through a Quantize and a Dequantize of the type."""
    scale = graph.constant(np.array(_activation_scale(kind), np.float32))
    zero = graph.constant(_integers(np.array(_RANGES[kind][0]), kind))
    return graph.add("DequantizeLinear", graph.add("QuantizeLinear", value, scale, zero), scale, zero)


def _kernel_and_bias(
    graph: Graph, width: int, channels: int, activations: str, kind: str, *, per_channel: bool
) -> tuple[str, str]:
    values = graph.weights(channels, width, 3, 3)
    low, high = _RANGES[kind]
    largest = np.abs(values).max(axis=(1, 2, 3)) if per_channel else np.abs(values).max()
    scale = np.asarray(largest / (high if low < 0 else (high - low) / 2), np.float32)
    middle = 0 if low < 0 else (high - low + 1) // 2
    stored = values / (scale[:, None, None, None] if per_channel else scale) + middle
    axis: dict[str, Any] = {"axis": 0} if per_channel else {}
    zero = graph.constant(_integers(np.full(scale.shape, middle), kind))
    kernel = graph.add("DequantizeLinear", graph.constant(_integers(stored, kind)), graph.constant(scale), zero, **axis)
    # A bias is added to sums of products, so its scale is the product of theirs.
    bias_scale = (scale * _activation_scale(activations)).astype(np.float32)
    bias = np.round(0.1 * graph.weights(channels) / bias_scale).astype(np.int32)
    return kernel, graph.add("DequantizeLinear", graph.constant(bias), graph.constant(bias_scale), **axis)


def quantized_conv_net(
    *,
    activations: str = "uint8",
    weights: str = "int8",
    per_channel: bool = False,
    residual: bool = False,
    layers: int = 3,
    channels: int = 16,
    size: int = 16,
    opset: int = 21,
) -> ModelProto:
    """The same net with activations, weights and biases quantized; `residual` adds what went into each layer but one.

    Between variants only the element types differ, so that they compute the same up to rounding.
    """
    graph = Graph()
    value, width = _activation(graph, "x", activations), 3
    for _ in range(layers):
        kernel, bias = _kernel_and_bias(graph, width, channels, activations, weights, per_channel=per_channel)
        made = graph.add("Relu", graph.add("Conv", value, kernel, bias, **_KERNEL))
        made = _activation(graph, made, activations)
        if residual and width == channels:
            made = _activation(graph, graph.add("Add", value, made), activations)
        value, width = made, channels
    value = _activation(graph, graph.add("GlobalAveragePool", value), activations)
    return graph.model([tensor("x", [1, 3, size, size])], graph.add("Flatten", value), [1, channels], opset=opset)

"""Shapes that follow from a graph, asked of onnx without letting a graph take all memory."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import onnx.shape_inference
from onnx import GraphProto, ModelProto, TensorProto

MOST_ELEMENTS = 1 << 20
"""A dimension beyond this is no shape that a graph computes with."""
MOST_RANK = 64


def infer_shapes(model: ModelProto) -> ModelProto:
    """The model with the shapes of its values, as far as they follow.

    onnx can follow values that shapes are made of, and holds one object per element of them, whatever a tensor says its
    size is: with a dimension of 2^62 it never ends. Where a dimension is that large, values are not followed. Sizes
    that only come out of following values are left to the limits of the process that reads a model.
    """
    if _is_large(model.graph):
        return _infer(model, follows=False)
    if any(value > MOST_ELEMENTS for value in _constants(model.graph)):
        # Most of these are the open ends of slices; what they make is asked without following values.
        without = _infer(model, follows=False)
        if _is_large(without.graph):
            return without
    return _infer(model, follows=True)


def _infer(model: ModelProto, *, follows: bool) -> ModelProto:
    inferred: ModelProto = onnx.shape_inference.infer_shapes(model, data_prop=follows, strict_mode=False)
    return inferred


def _is_large(graph: GraphProto) -> bool:
    return any(size > MOST_ELEMENTS for size in _sizes(graph))


def _constants(graph: GraphProto) -> Iterator[int]:
    """The whole numbers in small constants of a graph or one inside it."""
    for tensor in graph.initializer:
        yield from _numbers(tensor)
    for node in graph.node:
        for attribute in node.attribute:
            yield from _constants(attribute.g)
            yield from (value for inner in attribute.graphs for value in _constants(inner))
            yield from _numbers(attribute.t)
            yield from attribute.ints


def _numbers(tensor: TensorProto) -> Iterator[int]:
    if tensor.data_type != TensorProto.INT64 or len(tensor.dims) > 1 or any(size > MOST_RANK for size in tensor.dims):
        return
    yield from tensor.int64_data
    yield from (value for (value,) in struct.iter_unpack("<q", tensor.raw_data[: len(tensor.raw_data) // 8 * 8]))


def _sizes(graph: GraphProto) -> Iterator[int]:
    """Every size that a graph or one inside it states."""
    for value in (*graph.input, *graph.output, *graph.value_info):
        yield from (dim.dim_value for dim in value.type.tensor_type.shape.dim)
        yield from (dim.dim_value for dim in value.type.sequence_type.elem_type.tensor_type.shape.dim)
    for tensor in graph.initializer:
        yield from tensor.dims
    for node in graph.node:
        for attribute in node.attribute:
            yield from _sizes(attribute.g)
            yield from (size for inner in attribute.graphs for size in _sizes(inner))
            yield from attribute.t.dims
            yield from (attribute.ints if node.op_type in ("ConstantOfShape", "RandomNormal", "RandomUniform") else ())

"""Writes sizes for symbolic dimensions into a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import GraphProto, ModelProto, TensorShapeProto

from winml.modelkit.graph import walk
from winml.modelkit.graph.macs import dynamic_axes, runtime_inputs, simple_inputs
from winml.modelkit.graph.shapes import infer_shapes
from winml.modelkit.graph.sizes import match_sizes


def name_dims(model: ModelProto, sizes: Mapping[str, int]) -> ModelProto:
    """The model with names for the open dimensions of `sizes` that have none; itself when there are none.

    Many exporters leave dimensions open without a symbol; such a dimension is named by its place, as `x[0]`.
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    unnamed = [
        (value.type.tensor_type.shape.dim[index], name)
        for value in runtime_inputs(copy.graph)
        for index, name in dynamic_axes(value)
        if name in sizes and not value.type.tensor_type.shape.dim[index].dim_param
    ]
    for dim, name in unnamed:
        dim.dim_param = name
    return copy if unnamed else model


def fix(model: ModelProto, sizes: Mapping[str, int]) -> ModelProto:
    """The model with these sizes in place of symbols, and what follows from them for the values inside."""
    sizes = match_sizes(simple_inputs(model), sizes)
    fixed = ModelProto()
    fixed.CopyFrom(model)
    for dim in _dims(fixed):
        if dim.dim_param in sizes:
            dim.dim_value = sizes[dim.dim_param]
    return infer_shapes(fixed)


def _dims(model: ModelProto) -> Iterator[TensorShapeProto.Dimension]:
    for graph in walk.graphs(model):
        if isinstance(graph, GraphProto):
            for value in (*graph.input, *graph.output, *graph.value_info):
                yield from value.type.tensor_type.shape.dim

"""Writes sizes for symbolic dimensions into a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx
from onnx import GraphProto, ModelProto, TensorShapeProto

from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.graph import walk


def fix(model: ModelProto, sizes: Mapping[str, int]) -> ModelProto:
    """The model with these sizes in place of symbols, and what follows from them for the values inside."""
    symbols = {dim.dim_param for value in model.graph.input for dim in value.type.tensor_type.shape.dim}
    for name in sizes:
        if name not in symbols:
            raise RequestError(f"the model has no symbolic dimension `{name}`", hint=did_you_mean(name, symbols - {""}))
    fixed = ModelProto()
    fixed.CopyFrom(model)
    for dim in _dims(fixed):
        if dim.dim_param in sizes:
            dim.dim_value = sizes[dim.dim_param]
    inferred: ModelProto = onnx.shape_inference.infer_shapes(fixed, data_prop=True)
    return inferred


def _dims(model: ModelProto) -> Iterator[TensorShapeProto.Dimension]:
    for graph in walk.graphs(model):
        if isinstance(graph, GraphProto):
            for value in (*graph.input, *graph.output, *graph.value_info):
                yield from value.type.tensor_type.shape.dim

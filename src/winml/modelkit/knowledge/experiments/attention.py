"""Attention blocks: as the operator of opset 23, and written out with a mask as text models compute it."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, TensorProto

from winml.modelkit.knowledge.experiments.parts import Graph, tensor

_HIDDEN = 64
_HEADS = 4


def _project(graph: Graph, value: str) -> str:
    return graph.add("MatMul", value, graph.constant(graph.weights(_HIDDEN, _HIDDEN)))


def _heads(graph: Graph, value: str, length: int, *, flipped: bool = False) -> str:
    shape = graph.constant(np.array([1, length, _HEADS, _HIDDEN // _HEADS], np.int64))
    return graph.add("Transpose", graph.add("Reshape", value, shape), perm=[0, 2, 3, 1] if flipped else [0, 2, 1, 3])


def _write_attention(graph: Graph, value: str, length: int, mask: str) -> str:
    """Softmax(QK + mask) V in single nodes."""
    query, keys, values = (_project(graph, value) for _ in range(3))
    scores = graph.add("MatMul", _heads(graph, query, length), _heads(graph, keys, length, flipped=True))
    scale = graph.constant(np.array((_HIDDEN // _HEADS) ** -0.5, np.float32))
    scores = graph.add("Add", graph.add("Mul", scores, scale), mask)
    mixed = graph.add("MatMul", graph.add("Softmax", scores, axis=-1), _heads(graph, values, length))
    shape = graph.constant(np.array([1, length, _HIDDEN], np.int64))
    return graph.add("Reshape", graph.add("Transpose", mixed, perm=[0, 2, 1, 3]), shape)


def attention(*, mask: str = "none", layers: int = 2, length: int = 16, opset: int = 23) -> ModelProto:
    """Blocks of the attention operator that exporters write from opset 23 on, with a `bool`, a `float` or no mask."""
    graph = Graph()
    seen = np.tril(np.ones((length, length), dtype=bool))
    masks = {
        "none": (),
        "bool": (graph.constant(seen),),
        "float": (graph.constant(np.where(seen, 0.0, -10000.0).astype(np.float32)),),
    }
    value = "x"
    for _ in range(layers):
        parts = [_project(graph, value) for _ in range(3)]
        mixed = graph.add("Attention", *parts, *masks[mask], q_num_heads=_HEADS, kv_num_heads=_HEADS)
        value = graph.add("Add", value, _project(graph, mixed))
    return graph.model([tensor("x", [1, length, _HIDDEN])], value, [1, length, _HIDDEN], opset=opset)


def masked_attention(*, looked_up_as: str = "bool", length: int = 16, opset: int = 21) -> ModelProto:
    """A block whose mask is looked up with `GatherND`, as text models export it: as truth values or as numbers."""
    graph = Graph()
    kind = {"bool": TensorProto.BOOL, "float": TensorProto.FLOAT}[looked_up_as]
    where = np.stack([np.zeros(length, np.int64), np.arange(length)], axis=-1)
    found = graph.add("GatherND", graph.add("Cast", "mask", to=kind), graph.constant(where))
    numbers = graph.add("Cast", found, to=TensorProto.FLOAT)
    shaped = graph.add("Reshape", numbers, graph.constant(np.array([1, 1, 1, length], np.int64)))
    hidden = graph.add("Sub", graph.constant(np.array(1.0, np.float32)), shaped)
    penalty = graph.add("Mul", hidden, graph.constant(np.array(-10000.0, np.float32)))
    value = _write_attention(graph, "x", length, penalty)
    inputs = [tensor("x", [1, length, _HIDDEN]), tensor("mask", [1, length], TensorProto.INT64)]
    return graph.model(inputs, value, [1, length, _HIDDEN], opset=opset)

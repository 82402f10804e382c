"""Walks over everything in a model: subgraphs of If, Loop and Scan, and local functions, included."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ONNX_DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training", "ai.onnx.training")

_HOLD_TENSORS = (ModelProto, GraphProto, FunctionProto, NodeProto, AttributeProto, SparseTensorProto)


def domain_of(name: str) -> str:
    """The domain, with the empty string for both spellings of the default one."""
    return "" if name == "ai.onnx" else name


def op_key(node: NodeProto) -> str:
    """`Conv`, or `com.microsoft:FusedConv` outside the default domain."""
    domain = domain_of(node.domain)
    return f"{domain}:{node.op_type}" if domain else str(node.op_type)


def attribute_value(node: NodeProto, name: str, default: Any) -> Any:
    """The integer or string attribute `name` of a node, or `default` when it is not set."""
    for attribute in node.attribute:
        if attribute.name == name:
            return attribute.s.decode(errors="replace") if attribute.type == AttributeProto.STRING else attribute.i
    return default


def subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    """The graphs directly inside one node."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def graphs(model: ModelProto) -> Iterator[GraphProto | FunctionProto]:
    """Every graph and every function body, an outer one before those inside it."""
    waiting: list[GraphProto | FunctionProto] = [*reversed(model.functions), model.graph]
    while waiting:
        graph = waiting.pop()
        yield graph
        inside = [inner for node in graph.node if node.attribute for inner in subgraphs(node)]
        waiting.extend(reversed(inside))


def nodes(model: ModelProto) -> Iterator[NodeProto]:
    """Every node; the nodes of a function once, however often it is called."""
    for graph in graphs(model):
        yield from graph.node


def initializers(model: ModelProto) -> Iterator[TensorProto]:
    """Every initializer, and the values of sparse ones."""
    for graph in graphs(model):
        if isinstance(graph, GraphProto):
            yield from graph.initializer
            for sparse in graph.sparse_initializer:
                yield sparse.values


def attribute_tensors(node: NodeProto) -> Iterator[TensorProto]:
    """The tensors in the attributes of one node, without its subgraphs."""
    for attribute in node.attribute:
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors
        if attribute.HasField("sparse_tensor"):
            yield from (attribute.sparse_tensor.values, attribute.sparse_tensor.indices)
        for sparse in attribute.sparse_tensors:
            yield from (sparse.values, sparse.indices)


def tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Every tensor whose data may be in another file."""
    for graph in graphs(model):
        if isinstance(graph, GraphProto):
            yield from graph.initializer
            for sparse in graph.sparse_initializer:
                yield from (sparse.values, sparse.indices)
        for node in graph.node:
            if node.attribute:
                yield from attribute_tensors(node)


def copy_model(model: ModelProto, place: Callable[[TensorProto, TensorProto, bool], None]) -> ModelProto:
    """A copy in which `place(source, target, nested)` fills every tensor; `nested` is true inside a node.

    Weights are never copied on the way, so this works past the 2 GB that one protobuf message may have.
    """
    copy = ModelProto()
    _copy(model, copy, place, nested=False)
    return copy


def _copy(source: Any, target: Any, place: Callable[[TensorProto, TensorProto, bool], None], *, nested: bool) -> None:
    nested = nested or isinstance(source, NodeProto)
    target.SetInParent()
    for field, value in source.ListFields():
        if isinstance(value, TensorProto):
            place(value, getattr(target, field.name), nested)
        elif isinstance(value, _HOLD_TENSORS):
            _copy(value, getattr(target, field.name), place, nested=nested)
        elif not hasattr(value, "add"):
            _assign(target, field.name, value)
        else:
            _copy_items(value, getattr(target, field.name), place, nested=nested)


def _copy_items(
    source: Any, target: Any, place: Callable[[TensorProto, TensorProto, bool], None], *, nested: bool
) -> None:
    for item in source:
        if isinstance(item, TensorProto):
            place(item, target.add(), nested)
        elif isinstance(item, _HOLD_TENSORS):
            _copy(item, target.add(), place, nested=nested)
        else:
            target.add().CopyFrom(item)


def _assign(target: Any, name: str, value: Any) -> None:
    if hasattr(value, "CopyFrom"):
        getattr(target, name).CopyFrom(value)
    elif hasattr(value, "extend"):
        getattr(target, name).extend(value)
    else:
        text = isinstance(value, bytes) and isinstance(
            getattr(target, name), str
        )  # protobuf's form of text not in UTF-8
        setattr(target, name, value.decode(errors="replace") if text else value)

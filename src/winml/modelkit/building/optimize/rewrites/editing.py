"""What every rewrite needs: constants, shapes, uses, and putting nodes in place of others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

MICROSOFT = "com.microsoft"
_CONSTANT_LIMIT = 2**20
"""Elements of the largest constant that is looked into."""


def nodes(model: ir.Model, op_type: str, domain: str = "") -> list[ir.Node]:
    """The nodes of one operator in the main graph and its subgraphs; functions are left alone."""
    found = (node for node in model.graph.all_nodes() if node.op_type == op_type and node.domain == domain)
    return [node for node in found if isinstance(node.graph, ir.Graph)]


def constant(value: ir.Value | None) -> npt.NDArray[Any] | None:
    """The value as an array where it is a constant of moderate size."""
    if value is None or value.is_graph_input():
        return None
    tensor = ir.convenience.get_const_tensor(value)
    return None if tensor is None or tensor.size > _CONSTANT_LIMIT else tensor.numpy()


def number(value: ir.Value | None) -> float | None:
    """The one number in a constant."""
    array = constant(value)
    return float(array.reshape(-1)[0]) if array is not None and array.size == 1 else None


def integers(value: ir.Value | None) -> list[int] | None:
    """The numbers of an integer constant."""
    array = constant(value)
    return [int(item) for item in array.reshape(-1)] if array is not None and array.dtype.kind in "iu" else None


def shape(value: ir.Value | None) -> tuple[int | None, ...] | None:
    """The sizes of a value, None for those that are open; None when not even the rank is known."""
    if value is None or value.shape is None:
        return None
    return tuple(dim if isinstance(dim, int) else None for dim in value.shape)


def static_shape(value: ir.Value | None) -> tuple[int, ...] | None:
    """The sizes of a value, or None when one of them is open."""
    sizes = shape(value)
    return None if sizes is None or None in sizes else tuple(size for size in sizes if size is not None)


def attribute(node: ir.Node, name: str, default: Any) -> Any:
    found = node.attributes.get(name)
    return default if found is None else found.value


def only_use(value: ir.Value) -> ir.Node | None:
    """The one node that reads a value, or None when there is another reader or it is an output."""
    users = list(value.uses())
    return users[0].node if len(users) == 1 and not value.is_graph_output() else None


def opset(model: ir.Model) -> int:
    return int(model.opset_imports.get("", 0))


class Editor:
    """Makes nodes and constants with names of their own, and puts them in place of others."""

    def __init__(self, model: ir.Model) -> None:
        self._model = model
        self._names = set(_names(model))
        self.replaced = False
        """Whether anything was put in the place of something else."""

    def fresh(self, base: str | None, suffix: str) -> str:
        name = wanted = f"{base or 'value'}_{suffix}"
        count = 1
        while name in self._names:
            count += 1
            name = f"{wanted}_{count}"
        self._names.add(name)
        return name

    def constant(self, array: npt.NDArray[Any], base: str | None, suffix: str) -> ir.Value:
        """A new initializer of the main graph."""
        name = self.fresh(base, suffix)
        tensor = ir.tensor(np.ascontiguousarray(array), name=name)
        kind, sizes = ir.TensorType(tensor.dtype), ir.Shape(array.shape)
        value = ir.Value(name=name, const_value=tensor, type=kind, shape=sizes)
        self._model.graph.register_initializer(value)
        return value

    def node(
        self,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        like: ir.Value,
        attributes: Mapping[str, Any] | None = None,
        *,
        domain: str = "",
    ) -> ir.Node:
        """A node with one output, named after the value that it helps to make."""
        name = self.fresh(like.name, op_type)
        output = ir.Value(name=name, type=like.type)
        return ir.node(op_type, inputs, attributes, domain=domain, outputs=[output], name=name)

    def replace(self, old: Sequence[ir.Node], new: Sequence[ir.Node], outputs: dict[ir.Value, ir.Value]) -> None:
        """Put `new` where the last of `old` is; `outputs` says which value takes the place of which."""
        self.replaced = True
        last = old[-1]
        graph = last.graph
        assert graph is not None
        for node in new:
            if node.domain:
                self._model.opset_imports.setdefault(node.domain, 1)
        ir.convenience.replace_nodes_and_values(graph, last, old, new, list(outputs), list(outputs.values()))


def _names(model: ir.Model) -> Iterator[str]:
    for graph in (model.graph, *model.graph.subgraphs()):
        for value in (*graph.inputs, *graph.initializers.values()):
            yield value.name or ""
    for node in model.graph.all_nodes():
        yield from (value.name or "" for value in node.outputs)
        yield node.name or ""

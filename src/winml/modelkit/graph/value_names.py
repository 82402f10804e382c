"""Names of values that a runtime cannot make again.

ONNX Runtime names the values of its fusions itself (`gemm_input_shape`, then `gemm_input_shape_token_0`). In a stored
model it does not always see that a name is taken: it forgets a constant that it has just merged with an equal one, its
next fusion takes the name, and the model cannot be opened ("Attempt to replace the existing tensor").
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from onnx import GraphProto, ModelProto

from winml.modelkit.graph import walk

PREFIX = "stored/"
"""No transformer of the runtime starts a name so."""

_TOKEN = re.compile(r"(_token_\d+)+$")
_GENERATED = re.compile(r"(.*_token_\d+|gemm_(input|output)_shape)", re.DOTALL)
"""What the runtime calls a second value of a kind, and the constants that it was seen to make twice."""


def values_of(model: ModelProto) -> set[str]:
    """Names of all values of the graph and of the graphs inside its nodes."""
    return {name for graph in _graphs(model) for name in _values(graph) if name}


def rename_generated(model: ModelProto, *, source: Collection[str] | None = None) -> int:
    """Rename values that the runtime may want to make again, in place, and return how many.

    These are the values that are not in `source`, if that is given, and those that look like the runtime's own.
    Inputs and outputs of the model keep their names.
    """
    used = values_of(model)
    kept = {value.name for value in (*model.graph.input, *model.graph.output)}
    renamed: dict[str, str] = {}
    for name in sorted(used - kept):
        made = source is not None and name not in source
        if made or _GENERATED.fullmatch(name):
            renamed[name] = free_name(PREFIX + _TOKEN.sub("", name.removeprefix(PREFIX)), used)
    if renamed:
        for graph in _graphs(model):
            _rename(graph, renamed)
    return len(renamed)


def free_name(name: str, used: set[str]) -> str:
    """`name`, or with a number after it when that is taken; taken from now on."""
    free, number = name, 0
    while free in used:
        number += 1
        free = f"{name}_{number}"
    used.add(free)
    return free


def _graphs(model: ModelProto) -> Iterator[GraphProto]:
    """The graphs in which a name means the same value; the bodies of functions have values of their own."""
    waiting = [model.graph]
    while waiting:
        graph = waiting.pop()
        yield graph
        waiting.extend(inner for node in graph.node if node.attribute for inner in walk.subgraphs(node))


def _values(graph: GraphProto) -> Iterator[str]:
    for value in (*graph.input, *graph.output, *graph.initializer):
        yield value.name
    for sparse in graph.sparse_initializer:
        yield sparse.values.name
    for node in graph.node:
        yield from node.input
        yield from node.output


def _rename(graph: GraphProto, renamed: dict[str, str]) -> None:
    sparse = (tensor.values for tensor in graph.sparse_initializer)
    for value in (*graph.input, *graph.output, *graph.initializer, *graph.value_info, *sparse):
        value.name = renamed.get(value.name, value.name)
    for annotation in graph.quantization_annotation:
        annotation.tensor_name = renamed.get(annotation.tensor_name, annotation.tensor_name)
        for entry in annotation.quant_parameter_tensor_names:
            entry.value = renamed.get(entry.value, entry.value)
    for node in graph.node:
        for names in (node.input, node.output):
            if not renamed.keys().isdisjoint(names):
                names[:] = [renamed.get(name, name) for name in names]

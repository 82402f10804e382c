"""Finishes a quantized model: nodes sorted, nothing in it that only quantizers need."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import ModelProto, NodeProto

from winml.modelkit.building.quantize.prepare import reads
from winml.modelkit.core.errors import RunFailedError
from winml.modelkit.graph.value_names import rename_generated

INFERRED = "onnx.infer"
"""The metadata entry by which ONNX Runtime's quantizers know that types were inferred."""


def producer_of(model: ModelProto) -> tuple[str, str]:
    """The producer of a model; quantizers replace it with their own name."""
    return model.producer_name, model.producer_version


def finish(model: ModelProto, producer: tuple[str, str]) -> None:
    """Sort the nodes, drop unused weights, types and names of the runtime, and restore the producer."""
    del model.graph.value_info[:]
    kept = [entry for entry in model.metadata_props if entry.key != INFERRED]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    model.producer_name, model.producer_version = producer
    sort_nodes(model)
    drop_unused_initializers(model)
    rename_generated(model)


def sort_nodes(model: ModelProto) -> None:
    """Put every node behind what it reads; the library's own sort does not look into the bodies of If and Loop."""
    graph = model.graph
    waiting = [NodeProto.FromString(node.SerializeToString()) for node in graph.node]
    needs = [reads(node) for node in waiting]
    made_by = {name: index for index, node in enumerate(waiting) for name in node.output if name}
    sources = [{made_by[name] for name in names if name in made_by} for names in needs]
    del graph.node[:]
    graph.node.extend(waiting[index] for index in _in_order(sources))


def _in_order(sources: list[set[int]]) -> Iterable[int]:
    """Indices such that each comes after its sources, otherwise as near to the given order as that allows."""
    done: set[int] = set()
    order: list[int] = []
    for start in range(len(sources)):
        stack = [start]
        entered: set[int] = set()
        while stack:
            index = stack[-1]
            missing = sorted(sources[index] - done)
            if index in done:
                stack.pop()
            elif not missing:
                done.add(index)
                order.append(index)
                stack.pop()
            elif index in entered:
                raise RunFailedError("the quantized graph has a cycle")
            else:
                entered.add(index)
                stack.extend(reversed(missing))
    return order


def drop_unused_initializers(model: ModelProto) -> None:
    """Take out the weights that no node reads; the runtime warns about each."""
    graph = model.graph
    used = {name for node in graph.node for name in reads(node)} | {value.name for value in graph.output}
    for index in reversed(range(len(graph.initializer))):
        if graph.initializer[index].name not in used:
            del graph.initializer[index]

"""Worker operation: everything that is known of a model before an EP is asked, and the file to ask with.

An EP names nodes in its answer, so a model whose nodes lack unique names is asked as a copy that has them. Dynamic
axes without a symbol get one in the copy, so that they can be fixed when a session is opened.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from winml.modelkit.core.target import Target
from winml.modelkit.graph import files, walk
from winml.modelkit.graph.facts import GraphFacts, facts
from winml.modelkit.graph.macs import dynamic_axes, name_axes, named_inputs, runtime_inputs
from winml.modelkit.graph.quantized_nodes import quantized_nodes
from winml.modelkit.graph.sizes import given_sizes
from winml.modelkit.knowledge.hazards import Model, hazards

if TYPE_CHECKING:
    from onnx import ModelProto

COPY = "asked.onnx"


def prepare(args: dict[str, Any], context: object) -> dict[str, Any]:
    """`{"facts", "nodes", "asked", "axes", "hazards"}` of the model file `args["path"]`.

    `asked` is the file to open, `axes` the sizes of `dims` by the names of open dimensions, `hazards` those of each
    target in `args["targets"]`.
    """
    path = Path(args["path"])
    model = files.load(path, weights=False)
    known = facts(model, path)
    axes = given_sizes(named_inputs(model), args["dims"])
    asked = path
    if not known.compiled and _lacks_names(model):
        model = files.load(path)
        _give_names(model)
        asked = files.save(model, Path.cwd() / COPY, overwrite=True)[0]
    nodes = tuple((node.name, walk.op_key(node)) for node in model.graph.node)
    seen = Model(known, nodes, tuple(quantized_nodes(model)))
    return {
        "facts": _facts(known),
        "nodes": nodes,
        "asked": str(asked),
        "axes": axes,
        "hazards": {
            f"{ep}/{device}": [hazard.to_json() for hazard in hazards(seen, Target(ep, device))]
            for ep, device in args["targets"]
        },
    }


def _facts(known: GraphFacts) -> dict[str, Any]:
    value = known.to_json()
    wanted = ("nodes", "ops", "opsets", "conv_share", "quantized", "dynamic_axes", "contrib_ops", "compiled_for")
    return {name: value[name] for name in wanted}


def _lacks_names(model: ModelProto) -> bool:
    names = Counter(node.name for node in model.graph.node)
    if "" in names or any(count > 1 for count in names.values()):
        return True
    return any(
        not value.type.tensor_type.shape.dim[index].dim_param
        for value in runtime_inputs(model.graph)
        for index, _ in dynamic_axes(value)
    )


def _give_names(model: ModelProto) -> None:
    taken: set[str] = {node.name for node in model.graph.node}
    seen: set[str] = set()
    for index, node in enumerate(model.graph.node):
        if not node.name or node.name in seen:
            node.name = _free(f"{node.name or node.op_type}_{index}", taken)
            taken.add(node.name)
        seen.add(node.name)
    name_axes(model.graph)


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name

"""Worker operation: everything that is known of a model before an EP is asked, and the file to ask with.

An EP names nodes in its answer, so a model whose nodes lack unique names is asked as a copy that has them. Dynamic
axes without a symbol get one in the copy, so that they can be fixed when a session is opened.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from winml.modelkit.building.analysis.result import HazardFound, ModelFacts, PreparedModel
from winml.modelkit.core.target import Target
from winml.modelkit.graph import files, walk
from winml.modelkit.graph.facts import facts
from winml.modelkit.graph.macs import dynamic_axes, name_axes, runtime_inputs, simple_inputs
from winml.modelkit.graph.quantized_nodes import find_quantized_nodes
from winml.modelkit.graph.sizes import match_sizes
from winml.modelkit.knowledge.hazards import NODES_NAMED, Hazard, ModelGraph, find_hazards

if TYPE_CHECKING:
    from onnx import ModelProto

COPY = "asked.onnx"


def prepare(args: dict[str, Any], context: object) -> PreparedModel:
    """What is known of the model file `args["path"]`, with the hazards of each target in `args["targets"]`."""
    path = Path(args["path"])
    model = files.load(path, weights=False)
    known = facts(model, path)
    axes = match_sizes(simple_inputs(model), args["dims"])
    asked = path
    if not known.compiled and _lacks_names(model):
        model = files.load(path)
        _give_names(model)
        asked = files.save(model, Path.cwd() / COPY, overwrite=True)[0]
    nodes = tuple((node.name, walk.op_key(node)) for node in model.graph.node)
    seen = ModelGraph(known, nodes, tuple(find_quantized_nodes(model)))
    return PreparedModel(
        facts=ModelFacts(
            nodes=known.nodes,
            ops=known.ops,
            opsets=known.opsets,
            conv_share=known.conv_share,
            quantized=known.quantized,
            dynamic_axes=known.dynamic_axes,
            contrib_ops=known.contrib_ops,
            compiled_for=known.compiled_for,
        ),
        nodes=nodes,
        asked=str(asked),
        axes=axes,
        hazards={
            f"{ep}/{device}": tuple(map(_hazard, find_hazards(seen, Target(ep, device))))
            for ep, device in args["targets"]
        },
    )


def _hazard(hazard: Hazard) -> HazardFound:
    row, found = hazard.row, hazard.found
    return HazardFound(
        id=row.id,
        message=found.message,
        ops=tuple(sorted(found.ops)),
        count=len(found.nodes),
        nodes=found.nodes[:NODES_NAMED],
        fix=row.fix,
        evidence=row.evidence,
    )


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
            name = f"{node.name or node.op_type}_{index}"
            while name in taken:
                name += "_"
            node.name = name
            taken.add(name)
        seen.add(node.name)
    name_axes(model.graph)

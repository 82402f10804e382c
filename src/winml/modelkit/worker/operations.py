"""The table of operations of a worker: name -> `module:function`, imported there on first use.

A function takes `(args, context)` and returns something JSON can hold; tensors travel as file paths.
"""

from __future__ import annotations

OPERATIONS: dict[str, str] = {
    "ping": "winml.modelkit.worker.program:ping",
    "analysis.ask": "winml.modelkit.building.analysis.ask:ask",
    "analysis.prepare": "winml.modelkit.building.analysis.prepare:prepare",
    "bench.block": "winml.modelkit.measuring.arms:block",
    "bench.distance": "winml.modelkit.measuring.arms:distance",
    "bench.keep": "winml.modelkit.measuring.arms:keep",
    "bench.probe": "winml.modelkit.measuring.arms:probe",
    "bench.together": "winml.modelkit.measuring.arms:together",
    "data.hub_file": "winml.modelkit.data.hub:file",
    "data.hub_model": "winml.modelkit.data.hub:model",
    "data.hub_weights": "winml.modelkit.data.hub:weight_types",
    "data.describe": "winml.modelkit.data.describe:describe",
    "evaluate.distance": "winml.modelkit.evaluation.distances:distance",
    "evaluate.prove": "winml.modelkit.building.proof.operations:prove",
    "evaluate.ranges": "winml.modelkit.building.proof.operations:ranges",
    "evaluate.reference": "winml.modelkit.building.proof.operations:reference",
    "evaluate.run": "winml.modelkit.evaluation.run:run",
    "compile.compiled": "winml.modelkit.building.compile.reading:read_compiled",
    "compile.model": "winml.modelkit.building.compile.running:model",
    "compile.source": "winml.modelkit.building.compile.reading:source",
    "compile.users": "winml.modelkit.building.compile.reading:users",
    "compile.validate": "winml.modelkit.building.compile.running:validate",
    "graph.describe": "winml.modelkit.graph.describe:describe",
    "graph.external_files": "winml.modelkit.graph.source:list_external_files",
    "graph.implied": "winml.modelkit.graph.implied:infer",
    "graph.name_dims": "winml.modelkit.graph.source:name_dims",
    "graph.save_as": "winml.modelkit.graph.source:save_as",
    "knowledge.model": "winml.modelkit.knowledge.experiments.make:make",
    "optimize.candidates": "winml.modelkit.building.optimize.candidates:candidates",
    "review.inputs": "winml.modelkit.support.review.inputs:write",
    "review.outputs": "winml.modelkit.support.review.outputs:check",
    "session.measure": "winml.modelkit.session.measure:measure",
    "session.saturation": "winml.modelkit.session.saturation:ask",
    "session.download": "winml.modelkit.session.windows_ml:download",
    "session.probe": "winml.modelkit.session.ep_registry:probe",
    "stages.export": "winml.modelkit.building.export.stage:run",
    "stages.derive": "winml.modelkit.building.export.derive:derive",
    "stages.forward": "winml.modelkit.building.export.forward:forward",
    "stages.optimize": "winml.modelkit.building.optimize.stage:run",
    "stages.quantize": "winml.modelkit.building.quantize.stage:run",
}

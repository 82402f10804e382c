"""The table of operations a worker can be asked for: name -> `module:function`, imported there on first use.

A function takes `(args, context)` and returns something JSON can hold; tensors travel as file paths.
"""

from __future__ import annotations

OPERATIONS: dict[str, str] = {
    "ping": "winml.modelkit.worker.program:ping",
    "analysis.ask": "winml.modelkit.analysis.ask:ask",
    "analysis.prepare": "winml.modelkit.analysis.prepare:prepare",
    "bench.block": "winml.modelkit.bench.arms:block",
    "bench.distance": "winml.modelkit.bench.arms:distance",
    "bench.keep": "winml.modelkit.bench.arms:keep",
    "bench.probe": "winml.modelkit.bench.arms:probe",
    "bench.together": "winml.modelkit.bench.arms:together",
    "data.hub_file": "winml.modelkit.data.hub:file",
    "data.hub_model": "winml.modelkit.data.hub:model",
    "data.hub_weights": "winml.modelkit.data.hub:weight_types",
    "data.describe": "winml.modelkit.data.describe:describe",
    "evaluate.distance": "winml.modelkit.evaluate.distances:distance",
    "evaluate.prove": "winml.modelkit.evaluate.proof:prove",
    "evaluate.ranges": "winml.modelkit.evaluate.proof:ranges",
    "evaluate.reference": "winml.modelkit.evaluate.proof:reference",
    "evaluate.run": "winml.modelkit.evaluate.run:run",
    "compile.compiled": "winml.modelkit.stages.compile.reading:compiled",
    "compile.model": "winml.modelkit.stages.compile.running:model",
    "compile.source": "winml.modelkit.stages.compile.reading:source",
    "compile.users": "winml.modelkit.stages.compile.reading:users",
    "compile.validate": "winml.modelkit.stages.compile.running:validate",
    "graph.describe": "winml.modelkit.graph.describe:describe",
    "graph.implied": "winml.modelkit.graph.implied:implied",
    "graph.named": "winml.modelkit.graph.source:named",
    "graph.source": "winml.modelkit.graph.source:source",
    "knowledge.model": "winml.modelkit.knowledge.experiments.make:make",
    "optimize.candidates": "winml.modelkit.stages.optimize.candidates:candidates",
    "review.inputs": "winml.modelkit.review.inputs:write",
    "review.outputs": "winml.modelkit.review.outputs:check",
    "session.measure": "winml.modelkit.session.measure:measure",
    "session.saturation": "winml.modelkit.session.saturation:ask",
    "session.download": "winml.modelkit.session.windows_ml:download",
    "session.probe": "winml.modelkit.session.ep_registry:probe",
    "stages.export": "winml.modelkit.stages.export.stage:run",
    "stages.forward": "winml.modelkit.stages.export.forward:forward",
    "stages.optimize": "winml.modelkit.stages.optimize.stage:run",
    "stages.quantize": "winml.modelkit.stages.quantize.stage:run",
}

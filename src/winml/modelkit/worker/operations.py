"""The table of operations a worker can be asked for: name -> `module:function`, imported there on first use.

A function takes `(args, context)` and returns something JSON can hold; tensors travel as file paths.
"""

from __future__ import annotations

OPERATIONS: dict[str, str] = {
    "ping": "winml.modelkit.worker.program:ping",
    "analysis.ask": "winml.modelkit.analysis.ask:ask",
    "bench.block": "winml.modelkit.bench.arms:block",
    "bench.distance": "winml.modelkit.bench.arms:distance",
    "bench.keep": "winml.modelkit.bench.arms:keep",
    "bench.probe": "winml.modelkit.bench.arms:probe",
    "bench.together": "winml.modelkit.bench.arms:together",
    "data.describe": "winml.modelkit.data.describe:describe",
    "graph.describe": "winml.modelkit.graph.describe:describe",
    "graph.source": "winml.modelkit.graph.source:source",
    "knowledge.model": "winml.modelkit.knowledge.experiments.make:make",
    "session.measure": "winml.modelkit.session.measure:measure",
    "session.probe": "winml.modelkit.session.ep_registry:probe",
}

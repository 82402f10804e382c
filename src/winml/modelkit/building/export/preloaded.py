"""What every export imports, imported once: a worker that has it forks a process for each of its exports.

Only what starts no threads: a process that forks must have none that could hold a lock. ONNX Runtime starts one, so it
is left to the processes that are forked.
"""

from __future__ import annotations

import importlib

from winml.modelkit.building.export.loading import library

MODULES = (
    "transformers.modeling_utils",
    "transformers.exporters",
    "torch.export",
    "torch.onnx",
    "torch._dynamo",
    "onnxscript",
    "winml.modelkit.building.export.stage",
    "winml.modelkit.building.export.tracing",
    "winml.modelkit.building.export.finalize",
)

library()
for _name in MODULES:
    importlib.import_module(_name)

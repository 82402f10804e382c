"""`winml inspect`: what a model file holds, or what a Hugging Face model says of itself."""

from __future__ import annotations

from typing import Any

from winml.modelkit.building.model_argument import model_path
from winml.modelkit.core import model_ref
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.model_ref import ModelRef
from winml.modelkit.worker.client import Worker

SCHEMA = "winml/inspect/1"
FOLDER_SCHEMA = "winml/inspect-folder/1"


def inspect(model: str, *, dims: dict[str, int], timeout_s: float | None = None) -> dict[str, Any]:
    """Read the model in a worker, where a file that breaks the parser breaks nothing else.

    Without `timeout_s` it may take 20 s and a second for every 10 MB.
    """
    ref = model_ref.parse(model)
    if ref.is_exported:
        return _described(ref, dims)
    path = model_path(model)
    with Worker(preload=("winml.modelkit.graph.describe",)) as worker:
        described = worker.call(
            "graph.describe", {"path": str(path), "dims": dims}, timeout_s=timeout_s, what=f"reading `{path.name}`"
        )
    return {"schema": SCHEMA, "ok": True, "model": model, **described}


def _described(ref: ModelRef, dims: dict[str, int]) -> dict[str, Any]:
    """What config.json and the headers of the weights say; nothing is imported or loaded for it."""
    if dims:
        raise RequestError("`--dim` is for ONNX models", hint="drop it, or export the model first")
    from winml.modelkit.building.export.describe import describe
    from winml.modelkit.building.exported import hub_weights, locate

    located = locate(ref, weights=False)
    weights = None if ref.kind == "folder" or located.folder.weight_files else hub_weights(ref)
    return {"schema": FOLDER_SCHEMA, "ok": True, "model": located.word, **describe(located.folder, weights)}

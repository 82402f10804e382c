"""`winml inspect`: what a model file holds."""

from __future__ import annotations

from typing import Any

from winml.modelkit.app.models import model_argument
from winml.modelkit.worker.client import Worker

SCHEMA = "winml/inspect/1"
TIMEOUT_S = 600.0


def inspect(model: str, *, dims: dict[str, int]) -> dict[str, Any]:
    """Read the model in a worker, where a file that breaks the parser breaks nothing else."""
    path = model_argument(model).path
    with Worker(preload=("winml.modelkit.graph.describe",)) as worker:
        described = worker.call(
            "graph.describe", {"path": str(path), "dims": dims}, timeout_s=TIMEOUT_S, what=f"reading `{path.name}`"
        )
    return {"schema": SCHEMA, "ok": True, "model": model, **described}

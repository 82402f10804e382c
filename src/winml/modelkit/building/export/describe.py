"""What can be said of a Hugging Face model without loading it."""

from __future__ import annotations

from typing import Any

from winml.modelkit.building.export import families, resolve, signature
from winml.modelkit.building.export.families import WHOLE
from winml.modelkit.building.export.folder import ModelFolder, Weights
from winml.modelkit.building.export.resolve import ExportOptions
from winml.modelkit.core import sections
from winml.modelkit.core.errors import ModelkitError


def describe(folder: ModelFolder, weights: Weights | None = None) -> dict[str, Any]:
    """Class, tasks, inputs, parts and weights, which may be told from elsewhere; what is not known is null."""
    weights = folder.weights() if weights is None else weights
    family = folder.family
    found: dict[str, Any] = {
        "model_type": folder.model_type,
        "architecture": folder.architecture,
        "remote_code": sorted(map(str, folder.remote_code.values())),
        "parameters": weights.parameters,
        "weight_types": dict(weights.types),
        "weight_bytes": weights.bytes,
        "files": [path.name for path in folder.weight_files],
        "proven": family is not None and family.proven,
    }
    try:
        task = resolve.task_of(folder, None)
        known = folder.require_family()
        parts = [_part(folder, task, part) for part in families.parts_of(known, task)]
        whole = _part(folder, task, WHOLE)
    except ModelkitError as error:
        return found | {
            "task": None,
            "tasks": [],
            "inputs": None,
            "parts": [],
            "reason": error.message,
            "hint": error.hint,
        }
    others = [other for other in families.tasks_of(known) if other != task]
    composite = [part for part in parts if part["part"] != WHOLE]
    return found | {
        "task": task,
        "tasks": [task, *others],
        "inputs": whole["inputs"],
        "parts": composite,
        "reason": None,
        "hint": None,
    }


def _part(folder: ModelFolder, task: str, part: str) -> dict[str, Any]:
    options = ExportOptions(trust_remote_code=True)  # nothing is run here
    section = resolve.resolve(folder, options, part)
    inputs = signature.inputs_of(folder, folder.require_family(), task, part)
    return {"part": part, "inputs": sections.plain(inputs), "npu_sizes": resolve.npu_sizes(folder, section)}

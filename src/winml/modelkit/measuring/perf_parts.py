"""`winml perf` of a composite model: every part by itself, one after another."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from winml.modelkit.core.build_folder import MODEL, PARTS
from winml.modelkit.core.errors import ModelkitError, RequestError
from winml.modelkit.core.model_file import part_names
from winml.modelkit.core.plain_text import shell_word
from winml.modelkit.graph.signature import read_signature
from winml.modelkit.graph.sizes import given_sizes
from winml.modelkit.measuring.perf import OnEvent, PerfRequest, perf

SCHEMA = "winml/perf-parts/1"


def perf_model(request: PerfRequest, on_event: OnEvent) -> dict[str, Any]:
    """Measure a model; of a composite one every part."""
    folder = Path(request.model)
    if not (folder / PARTS).is_file():
        return perf(request, on_event)
    return _measure_parts(request, folder, on_event)


def _measure_parts(request: PerfRequest, folder: Path, on_event: OnEvent) -> dict[str, Any]:
    parts = part_names(folder)
    if not parts:
        raise RequestError(f"`{folder / PARTS}` names no parts", hint="build the model again")
    if request.op_tracing is not None or request.inputs.get("npz"):
        raise RequestError(
            "a trace and inputs from a file are of one part",
            hint=f"name one: `winml perf -m {shell_word(str(folder / parts[-1]))}`",
        )
    dims = _dims_by_part(folder, parts, request.inputs.get("dims", {}))
    measured: list[dict[str, Any]] = []
    for part in parts:
        inputs = {**request.inputs, "dims": dims[part]}
        on_event({"event": "part", "part": part})
        try:
            result = perf(replace(request, model=str(folder / part), inputs=inputs), on_event)
        except ModelkitError as error:
            error.details = {**error.details, "parts": measured, "part": part}
            raise type(error)(f"part `{part}`: {error.message}", hint=error.hint, details=error.details) from error
        measured.append({"part": part, **result})
    first = measured[0]
    return {
        "schema": SCHEMA,
        "ok": True,
        "model": request.model,
        "target": first["target"],
        "simulated": first["simulated"],
        "parts": measured,
        "warnings": list(dict.fromkeys(f"{one['part']}: {word}" for one in measured for word in one["warnings"])),
    }


def _dims_by_part(folder: Path, parts: list[str], dims: dict[str, int]) -> dict[str, dict[str, int]]:
    """The sizes that the user gave, for the parts that have a place for them; one that no part has is refused."""
    found: dict[str, dict[str, int]] = {part: {} for part in parts}
    for word, size in dims.items():
        for part in parts:
            with contextlib.suppress(RequestError):
                given_sizes(read_signature(folder / part / MODEL).inputs, {word: size})
                found[part][word] = size
        if all(word not in sizes for sizes in found.values()):
            raise RequestError(f"no part of the model has a symbolic dimension `{word}`")
    return found

"""`winml support inputs`: inputs of a built model as a file that `winml perf` and `winml eval` take."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from winml.modelkit.building.model_argument import model_path
from winml.modelkit.core.build_folder import CONFIG
from winml.modelkit.core.errors import RequestError
from winml.modelkit.data import sizes
from winml.modelkit.store import atomic, digest
from winml.modelkit.worker.client import Worker

SCHEMA = "winml/support/1"


@dataclass(frozen=True)
class InputsRequest:
    """Everything the user decided."""

    model: str
    output: str
    samples: int | None = None
    """Rows for `winml eval --data`; None writes one set for `winml perf --input-data`."""
    dims: dict[str, int] = field(default_factory=dict)
    int_ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    seed: int = 0


def inputs(request: InputsRequest) -> dict[str, Any]:
    """Make the file and say what is in it."""
    output = Path(request.output)
    if output.exists():
        raise RequestError(f"output file exists: `{output}`", hint="name another file")
    path = model_path(request.model)
    known = sizes.find(path, request.dims).require()
    config = path.parent / CONFIG
    atomic.make_folder(output.parent)
    args = {
        "model": str(path.absolute()),
        "config": str(config.absolute()) if config.is_file() else None,
        "output": str(output.absolute()),
        "samples": request.samples,
        "dims": known.dims,
        "int_ranges": {**known.ranges, **request.int_ranges},
        "seed": request.seed,
    }
    with Worker() as worker:
        made = worker.call("review.inputs", args, what=f"making inputs of `{path.name}`")
    return {
        "schema": SCHEMA,
        "ok": True,
        "action": "inputs",
        "model": request.model,
        "file": request.output,
        "digest": digest.of_file(output),
        "samples": request.samples,
        "seed": request.seed,
        **made,
    }

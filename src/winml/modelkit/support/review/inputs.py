"""Worker operation `review.inputs`: inputs of a built model as a file, the same for the same request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from winml.modelkit.building.export import samples
from winml.modelkit.core import sections
from winml.modelkit.core.config import ExportSection
from winml.modelkit.core.json_text import read_object
from winml.modelkit.core.values import to_json
from winml.modelkit.graph.describe import describe
from winml.modelkit.graph.inputs import Arrays, Dim, InputRequest, synthetic
from winml.modelkit.store import atomic


@dataclass(frozen=True)
class _Spec:
    """An input as the graph has it."""

    name: str
    dtype: str
    shape: tuple[Dim, ...]


def write(args: dict[str, Any], context: Any) -> dict[str, Any]:
    """Write the inputs of `args["model"]` to `args["output"]`.

    With `samples`, rows of that many samples as `winml eval --data` takes them; null writes one set as `winml perf
    --input-data` takes it. A model that was exported gets the inputs of its export, by the config in `args["config"]`.
    """
    facts = to_json(describe({"path": args["model"], "dims": {}}, context).facts)
    specs = [_Spec(i["name"], i["dtype"], tuple(i["shape"])) for i in facts["inputs"]]
    section = _section(args["config"])
    count = args["samples"] or 1
    made = [_made(specs, section, args, args["seed"] + index) for index in range(count)]
    arrays = made[0] if args["samples"] is None else {s.name: np.stack([m[s.name] for m in made]) for s in specs}
    with atomic.writing(Path(args["output"])) as stream:
        np.savez(stream, **arrays)  # type: ignore[arg-type]  # numpy's stub takes the names for options
    return {"inputs": {name: {"dtype": str(a.dtype), "shape": list(a.shape)} for name, a in arrays.items()}}


def _section(config: str | None) -> ExportSection | None:
    if config is None:
        return None
    value = read_object(Path(config)).get("export")
    return None if value is None else sections.read(ExportSection, value, "export")


def _made(specs: Sequence[_Spec], section: ExportSection | None, args: Mapping[str, Any], seed: int) -> Arrays:
    if section is None:
        ranges = {name: (low, high) for name, (low, high) in args["int_ranges"].items()}
        return synthetic(specs, InputRequest(dims=args["dims"], int_ranges=ranges, seed=seed))
    found = samples.made(section, _sizes(specs, section) | args["dims"], seed=seed)
    return {spec.name: found[spec.name] for spec in specs}


def _sizes(specs: Sequence[_Spec], section: ExportSection) -> dict[str, int]:
    """Sizes of the export, but where a later stage has fixed an axis those of the graph."""
    by_name = {spec.name: spec.shape for spec in specs}
    fixed = {
        axis: size
        for entry in section.inputs
        for axis, size in zip(entry.shape, by_name.get(entry.name, ()), strict=False)
        if isinstance(axis, str) and isinstance(size, int)
    }
    return {**section.sizes, **fixed}

"""Worker operation `review.inputs`: inputs of a built model as a file, the same for the same request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from winml.modelkit.building.export import samples
from winml.modelkit.core.config import ExportSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.json_text import read_object
from winml.modelkit.core.values import read
from winml.modelkit.graph.describe import describe
from winml.modelkit.graph.description import ValueFacts
from winml.modelkit.graph.inputs import Arrays, Dim, InputRequest, synthetic
from winml.modelkit.store import atomic
from winml.modelkit.support.inputs_order import InputsOrder, MadeInputs, TensorMade


@dataclass(frozen=True)
class _Spec:
    """An input as the graph has it."""

    name: str
    dtype: str
    shape: tuple[Dim, ...]


def write(args: dict[str, Any], context: Any) -> MadeInputs:
    """Write the inputs of an `InputsOrder`; a model that was exported gets the inputs of its export, by the config."""
    order = read(InputsOrder, args)
    facts = describe({"path": str(order.model), "dims": {}}, context).facts
    specs = [_make_spec(value) for value in facts.inputs]
    export = None if order.config is None else read_object(order.config).get("export")
    section = None if export is None else read(ExportSection, export, "export")
    made = [_make(specs, section, order, order.seed + index) for index in range(order.samples or 1)]
    arrays = made[0] if order.samples is None else {s.name: np.stack([m[s.name] for m in made]) for s in specs}
    with atomic.writing(order.output) as stream:
        np.savez(stream, **arrays)
    return MadeInputs(inputs={name: TensorMade(dtype=str(a.dtype), shape=a.shape) for name, a in arrays.items()})


def _make_spec(value: ValueFacts) -> _Spec:
    if value.shape is None:
        raise RequestError(f"input `{value.name}` says neither how many dimensions it has nor their sizes")
    return _Spec(value.name, value.dtype, value.shape)


def _make(specs: Sequence[_Spec], section: ExportSection | None, order: InputsOrder, seed: int) -> Arrays:
    if section is None:
        asked = InputRequest(
            dims=dict(order.dims), int_ranges=dict(order.int_ranges), seed=seed, placeholders=order.placeholders
        )
        return synthetic(specs, asked)
    found = samples.make_samples(section, _sizes(specs, section) | dict(order.dims), seed=seed)
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

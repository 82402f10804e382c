"""Sample inputs of an export: seeded, of the shapes and values that the section names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.building.export.signature import total_size
from winml.modelkit.core.config import ExportSection, InputSection
from winml.modelkit.graph.inputs import put_placeholders

Arrays = dict[str, npt.NDArray[Any]]


def make_samples(section: ExportSection, sizes: Mapping[str, int], *, seed: int, padded: bool = True) -> Arrays:
    """An array for every input with open axes at these sizes; masks have padding, or are ones alone."""
    rng = np.random.default_rng(seed)
    arrays = {entry.name: _array(entry, sizes, rng) for entry in section.inputs}
    if not padded:
        arrays |= {entry.name: np.ones_like(arrays[entry.name]) for entry in section.inputs if is_mask(entry)}
    return arrays


def is_mask(entry: InputSection) -> bool:
    """Whether an input says what is padding."""
    return entry.values == "padding"


def other_sizes(section: ExportSection) -> dict[str, int]:
    """Sizes that differ from those of the traced sample on every open axis, and stay consistent with one another."""
    found = {axis: max(1, size - 1) for axis, size in section.sizes.items()}
    return {**found, **total_size(section.inputs, found)}


def _array(entry: InputSection, sizes: Mapping[str, int], rng: np.random.Generator) -> npt.NDArray[Any]:
    shape = tuple(axis if isinstance(axis, int) else sizes[axis] for axis in entry.shape)
    dtype = np.dtype(entry.dtype)
    if is_mask(entry):
        return _make_padded_mask(shape, dtype)
    if entry.values == "positions":
        return np.broadcast_to(np.arange(shape[-1], dtype=dtype), shape).copy()
    if entry.values == "boxes":  # the second corner lies right of the first and below it
        corners = rng.uniform(entry.low, entry.high, (2, *shape[:-1], 2))
        return np.concatenate([corners.min(axis=0), corners.max(axis=0)], axis=-1).astype(dtype)
    if dtype.kind == "f":
        return rng.uniform(entry.low, entry.high, shape).astype(dtype)
    drawn = rng.integers(int(entry.low), int(entry.high), shape, endpoint=True).astype(dtype)
    return put_placeholders(drawn, entry.placeholders)


def _make_padded_mask(shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """A mask whose last sample is a third padding; a mask of ones alone would not show whether it is used."""
    mask = np.ones(shape, dtype)
    padding = shape[-1] // 3
    if padding:
        mask[-1, -padding:] = 0
    return mask

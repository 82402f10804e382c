"""Whether the decoder of a pair reads a cache that is filled up on the left as the same one that is not.

A device with fixed shapes takes a cache of one length, whatever the length of the text. What a class makes of masks and
positions is its own, so that PyTorch is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from winml.modelkit.building.export import samples
from winml.modelkit.building.export.parts import evaluate_part
from winml.modelkit.building.export.signature import PAIR_MASK, text_axes
from winml.modelkit.core.config import ExportSection, InputSection

FILLED = 3
"""Slots that are added before the words."""
TOLERANCE = 1e-3
"""Largest difference of logits, relative to the largest number."""
NAMES = (PAIR_MASK, "position_ids")
"""The inputs that it needs."""


def takes_filled_cache(part: Any, inputs: Iterable[InputSection], sizes: Mapping[str, int]) -> bool:
    """Whether the logits after a cache do not depend on whether it is filled up."""
    inputs = tuple(inputs)
    axes = text_axes(inputs)
    if axes is None:
        return False
    words, past = (axis if isinstance(axis, int) else sizes[axis] for axis in axes)
    section = ExportSection(task="", inputs=inputs)
    given = samples.make_samples(section, {**sizes, "total": past + words}, seed=0, padded=False)
    if "position_ids" in given:
        given["position_ids"] = np.broadcast_to(np.arange(past, past + words), given["position_ids"].shape).copy()
    plain = {name: array for name, array in given.items() if name not in NAMES}
    filled = {
        name: np.pad(array, ((0, 0), (0, 0), (FILLED, 0), (0, 0))) if _is_own_cache(name) else array
        for name, array in given.items()
    }
    filled[PAIR_MASK] = np.pad(given[PAIR_MASK], ((0, 0), (FILLED, 0)))
    try:
        wanted = evaluate_part(part, plain)["logits"]
        found = [evaluate_part(part, one)["logits"] for one in (given, filled)]
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - whatever the code of a model raises for arguments that it does not have
        return False
    largest = max(float(np.abs(wanted).max()), 1e-6)
    return all(one.shape == wanted.shape and float(np.abs(one - wanted).max()) <= TOLERANCE * largest for one in found)


def _is_own_cache(name: str) -> bool:
    return name.startswith("past_") and "_encoder_" not in name

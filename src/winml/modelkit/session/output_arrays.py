"""Outputs that are no tensors as arrays, so that they can be compared: sequences, maps, what was left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt


def as_array(value: Any) -> npt.NDArray[Any]:
    """An output as one array.

    A sequence of maps, as classifiers with ZipMap have it, is a row per map with its values in the order of its keys.
    Elements of different shapes are laid end to end; an optional output that is not there is empty.
    """
    if value is None:
        return np.empty(0)
    if isinstance(value, Mapping):
        return np.asarray([value[key] for key in sorted(value)])
    if not isinstance(value, list):
        return np.asarray(value)
    parts = [as_array(element) for element in value]
    if not parts:
        return np.empty(0)
    if len({part.shape for part in parts}) == 1:
        return np.stack(parts)
    return np.concatenate([part.ravel() for part in parts])

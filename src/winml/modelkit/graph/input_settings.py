"""How the inputs of a model are made, as a command asks for it and a worker reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Annotated

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.placeholders import Placeholders
from winml.modelkit.core.values import AtLeast, key
from winml.modelkit.graph.sizes import Size


@dataclass(frozen=True, kw_only=True)
class InputSettings:
    """Sizes, ranges and the seed of synthetic inputs, or the file that inputs are read from."""

    npz: Path | None = None
    dims: Mapping[str, int] = field(default_factory=dict)
    batch_size: Annotated[int, AtLeast(1)] | None = None
    int_ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Lowest and highest value per input; the empty name means every integer input."""
    seed: int = 0
    sizes: Mapping[str, Size] | None = key(omit=True)
    """Every open dimension of the model with its size and where that comes from; None before they were looked up."""
    placeholders: Mapping[str, Placeholders] | None = key(omit=True, default=None)
    """Words that stand for what another input holds, by the name of their input; as the model says."""


DEFAULT = InputSettings()

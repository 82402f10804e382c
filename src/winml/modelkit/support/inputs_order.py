"""The request and the answer of the worker that makes inputs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.placeholders import Placeholders


@dataclass(frozen=True, kw_only=True)
class InputsOrder:
    """Inputs to make."""

    model: Path
    config: Path | None
    """The config of the build that made the model; its export describes the inputs."""
    output: Path
    samples: int | None
    """Rows of that many samples for `winml eval --data`; None: one set for `winml perf --input-data`."""
    dims: Mapping[str, int]
    int_ranges: Mapping[str, tuple[int, int]]
    placeholders: Mapping[str, Placeholders]
    seed: int


@dataclass(frozen=True, kw_only=True)
class TensorMade:
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class MadeInputs:
    """What was written."""

    inputs: Mapping[str, TensorMade]

"""What the worker that makes inputs is given, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from winml.modelkit.core.dataclass import dataclass


@dataclass(frozen=True, kw_only=True)
class InputsOrder:
    """Inputs to make."""

    model: Path
    config: Path | None
    """Of the build that made the model, whose export says what it takes."""
    output: Path
    samples: int | None
    """Rows of that many samples as `winml eval --data` takes them; None: one set as `winml perf --input-data` does."""
    dims: Mapping[str, int]
    int_ranges: Mapping[str, tuple[int, int]]
    seed: int


@dataclass(frozen=True, kw_only=True)
class TensorMade:
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class MadeInputs:
    """What was written."""

    inputs: Mapping[str, TensorMade]

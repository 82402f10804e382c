"""How far the outputs of a model are from those of a reference: questions and answers of a worker.

Without numpy: the parent process reads it.
"""

from __future__ import annotations

from collections.abc import Mapping

from winml.modelkit.core.dataclass import dataclass


@dataclass(frozen=True, kw_only=True)
class KeptArray:
    """An output of one run that was kept."""

    dtype: str
    shape: tuple[int, ...]
    whole: bool
    """Not whole: values that a seed chose."""
    digest: str


@dataclass(frozen=True, kw_only=True)
class KeptOutputs:
    """Outputs that were kept in a file."""

    digest: str
    arrays: Mapping[str, KeptArray]


@dataclass(frozen=True, kw_only=True)
class LeastSpread:
    min: float
    median: float


@dataclass(frozen=True, kw_only=True)
class MostSpread:
    max: float
    median: float


@dataclass(frozen=True, kw_only=True)
class OutputDistance:
    """How far an output is from the reference's, over runs; the noise ratio is that of runs that are not equal."""

    output: str
    runs: int
    equal: int
    incomparable: int
    cosine: LeastSpread | None
    max_abs: MostSpread | None
    sqnr_db: LeastSpread | None


@dataclass(frozen=True, kw_only=True)
class SavedOutputs:
    """Where the outputs of a model are, and what they are called."""

    path: str
    outputs: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class DistanceRequest:
    candidate: SavedOutputs
    reference: SavedOutputs
    samples: int
    keep: str | None
    """A file for the outputs of both."""


@dataclass(frozen=True, kw_only=True)
class DistanceReport:
    outputs: tuple[OutputDistance, ...]
    notes: tuple[str, ...]
    kept: KeptOutputs | None

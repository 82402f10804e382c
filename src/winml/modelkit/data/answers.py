"""What the worker operations of this package answer; the parent process reads it, so nothing heavy is imported."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.values import Count, Digest


@dataclass(frozen=True, kw_only=True)
class HubModel:
    """A model in the hub's cache."""

    folder: Path
    revision: str
    """The commit."""


@dataclass(frozen=True, kw_only=True)
class DataDescription:
    """The samples that data gives a model."""

    digest: Digest
    samples: Count
    columns: Mapping[str, str]
    notes: tuple[str, ...]

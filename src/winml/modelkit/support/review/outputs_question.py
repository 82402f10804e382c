"""The request and the answer of the worker that reads saved outputs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.support.review.results import KeptArray, OutputDistance


@dataclass(frozen=True, kw_only=True)
class OutputsQuestion:
    """Files of outputs, and the claims about them."""

    file: Path
    again: Path | None
    """The file of another run."""
    arrays: Mapping[str, KeptArray]
    distance: tuple[OutputDistance, ...]


@dataclass(frozen=True, kw_only=True)
class OutputsAnswer:
    """What contradicts the claims."""

    problems: tuple[str, ...]

"""The result of `winml quantize` with a limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from winml.modelkit.building.quantize.result import QuantizeResult
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.result import CommandResult
from winml.modelkit.core.values import Count
from winml.modelkit.evaluation.result import EvalResult


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One assignment of precisions, and what it came to on the target."""

    kept: int
    """Layers in float."""
    nodes: tuple[str, ...]
    """Their nodes in the model before."""
    raised: int = 0
    """Layers with 16-bit activations."""
    wide_nodes: tuple[str, ...] = ()
    """Their nodes."""
    answer: Literal["within", "exceeded", "inconclusive", "failed"]
    metric: str | None
    value: float | None
    """Of the metric."""
    drop: float | None
    agreement: float | None
    """The least median cosine of an output to the one before."""
    bytes: int | None
    placed: Mapping[str, int] | None = None
    """Nodes by EP; null where it was not run."""
    seconds: float
    reason: str | None = None
    mending: tuple[str, ...] = ()
    """What was changed so that it loses less, with all layers as they are."""


@dataclass(frozen=True, kw_only=True, repr=False)
class MendResult(CommandResult):
    """A model that was quantized as far as its limit allows."""

    schema: Literal["winml/quantize-within/1"] = "winml/quantize-within/1"
    ok: Literal[True] = True
    model: str
    output: str
    max_drop: float | None
    min_agreement: float | None
    layers: Count | None
    """Layers that lose something; null where the first attempt held the limit and none was asked."""
    kept: tuple[str, ...]
    """Nodes that stay in float."""
    raised: tuple[str, ...] = ()
    """Nodes with 16-bit activations."""
    summary: tuple[str, ...] = ()
    """What was found and what it came to, in sentences."""
    attempts: tuple[Attempt, ...]
    quantized: QuantizeResult
    evaluation: EvalResult
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, kw_only=True)
class FailedMend:
    """What was tried where no assignment holds the limit."""

    attempts: tuple[Attempt, ...]

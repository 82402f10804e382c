"""How far two models agree that generate text: their next tokens on the same text, and the tokens they generate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.values import read

OTHER_VOCABULARY = (
    "compare builds of one model; models of different vocabularies are judged each alone, by `bits_per_byte`"
)
GENERATED = "generated"
"""The series of generated tokens."""


@dataclass(frozen=True, kw_only=True)
class DivergenceRequest:
    """Where the logits of both models are, and of how many texts."""

    candidate: str
    reference: str
    samples: int


@dataclass(frozen=True, kw_only=True)
class DivergenceReport:
    """Sums over the places of each text that were compared."""

    places: tuple[float, ...]
    divergence: tuple[float | None, ...]
    """How much is lost when the candidate's distribution is taken for the reference's, in nats; null for NaN."""
    same: tuple[float, ...]
    """Places at which both find the same token the likeliest."""


def diverge(args: dict[str, Any], context: object) -> DivergenceReport:
    """Worker operation: how far the next-token distributions of two models are apart."""
    import numpy as np

    from winml.modelkit.evaluation.generation import saved_logits
    from winml.modelkit.evaluation.generation.scoring import log_softmax

    asked = read(DivergenceRequest, args)
    places, divergence, same = list[float](), list[float | None](), list[float]()
    sides = (saved_logits.read(Path(one), asked.samples) for one in (asked.candidate, asked.reference))
    for (ids, mine), (other_ids, theirs) in zip(*sides, strict=True):
        if np.array_equal(ids, other_ids) and mine.shape[-1] != theirs.shape[-1]:
            raise DataError(
                f"the vocabularies have different sizes ({mine.shape[-1]} tokens, and {theirs.shape[-1]} of the "
                "reference), so that the next tokens cannot be compared",
                hint=OTHER_VOCABULARY,
            )
        if not np.array_equal(ids, other_ids) or mine.shape != theirs.shape:
            raise DataError(
                "the two models read the texts as different tokens, so that their next tokens cannot be compared",
                hint="compare models with the same tokenizer",
            )
        total = 0.0
        for row, other in zip(mine, theirs, strict=True):  # a row at a time: a text has many megabytes
            ours, right = log_softmax(row[None])[0], log_softmax(other[None])[0]
            shares = np.exp(right)
            with np.errstate(invalid="ignore"):
                total += float(np.sum(np.where(shares > 0, shares * (right - ours), 0.0)))
        places.append(float(len(mine)))
        # Rounding may leave less than nothing of two that are equal.
        divergence.append(max(total, 0.0) if np.isfinite(total) else None)
        same.append(float((mine.argmax(axis=-1) == theirs.argmax(axis=-1)).sum()))
    return DivergenceReport(places=tuple(places), divergence=tuple(divergence), same=tuple(same))


def compare_tokens(candidate: Sequence[Sequence[int]], reference: Sequence[Sequence[int]]) -> Mapping[str, list[float]]:
    """Of every prompt: places at which both have the same token, all places, and tokens before the first difference.

    A text that has ended where the other goes on differs at every place that it lacks.
    """
    series: dict[str, list[float]] = {"equal": [], "places": [], "alike": []}
    for mine, theirs in zip(candidate, reference, strict=True):
        pairs = [a == b for a, b in zip(mine, theirs, strict=False)]
        longest = max(len(mine), len(theirs))
        series["equal"].append(float(sum(pairs)))
        series["places"].append(float(longest))
        series["alike"].append(float(pairs.index(False) if False in pairs else len(pairs)))
    return series


def compare_losses(candidate: Mapping[str, Sequence[Any]], reference: Mapping[str, Sequence[Any]]) -> list[Any]:
    """By how much the loss of each text is higher than the reference's; None where one is unknown."""
    pairs = zip(candidate["loss"], reference["loss"], strict=True)
    return [None if mine is None or theirs is None else mine - theirs for mine, theirs in pairs]

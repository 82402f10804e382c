"""How likely a decoder finds the tokens of a text, in memory that depends on neither its length nor its vocabulary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.session.generation.generator import Ids, Logits, Scorer

PART_BYTES = 64 * 2**20
"""Logits that are in memory at once: those of a whole text would be gigabytes."""
_LEAST_PART = 16
_USUAL_VOCABULARY = 32_000


@dataclass(frozen=True)
class Window:
    """Tokens from `start` to `end` of a text in one run, of which those from `first` are predicted."""

    start: int
    end: int
    first: int


@dataclass(frozen=True)
class ScoredTokens:
    """Tokens of a text that follow one another, with what the model gave for each."""

    first: int
    """The place of the first of them in the text."""
    logits: Logits
    losses: npt.NDArray[np.float64]
    """Minus the natural logarithm of the probability of each."""
    right: npt.NDArray[np.bool_]
    """Whether each is the likeliest token."""


def plan_windows(count: int, window: int, stride: int) -> list[Window]:
    """Windows over a text that predict every token but the first once.

    All but the first window give their tokens at least `window - stride` tokens of context.
    """
    found, start, done = [], 0, 1
    while True:
        end = min(start + window, count)
        found.append(Window(start, end, max(done, start + 1)))
        if end == count:
            return found
        start, done = start + stride, end


def part_length(vocabulary: int | None) -> int:
    """Tokens whose logits are in memory at once."""
    return max(_LEAST_PART, PART_BYTES // (4 * (vocabulary or _USUAL_VOCABULARY)))


def score_tokens(generator: Scorer, ids: Ids, window: Window) -> Iterator[ScoredTokens]:
    """The predicted tokens of a window, part by part; the logits after a token are about the next one."""
    place = window.start
    # The last token predicts one that is not there.
    text = ids[window.start : window.end - 1]
    for logits in generator.score_parts(text, part=part_length(generator.vocabulary)):
        first = max(window.first, place + 1)
        kept = logits[first - 1 - place :]
        place += len(logits)
        if len(kept):
            losses, right = token_losses(kept, ids[first : first + len(kept)])
            yield ScoredTokens(first, kept, losses, right)


def token_losses(
    logits: Logits, tokens: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """The loss of each token, and whether it is the likeliest; NaN where the logits of a row are not numbers."""
    rows = np.arange(len(tokens))
    values = logits.astype(np.float32, copy=False)
    highest = values.max(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", over="ignore"):
        sums = np.exp(values - highest).sum(axis=-1, dtype=np.float64)
        losses = np.log(sums) + highest[:, 0].astype(np.float64) - values[rows, tokens].astype(np.float64)
    return losses, values.argmax(axis=-1) == tokens


def log_softmax(logits: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The logarithms of the probabilities of each row."""
    values = logits.astype(np.float64)
    values -= values.max(axis=-1, keepdims=True)
    values -= np.log(np.exp(values).sum(axis=-1, keepdims=True))
    return values


def spread_places(count: int, most: int) -> npt.NDArray[np.int64]:
    """At most so many of the places 1 to `count`, evenly spread; the same for the same text."""
    if count <= most:
        return np.arange(1, count + 1)
    return 1 + (np.arange(most, dtype=np.int64) * count) // most


def take_rows(part: ScoredTokens, places: Sequence[int] | npt.NDArray[np.int64]) -> Logits:
    """The logits of those tokens of a part that are at the places."""
    wanted = np.asarray(places, np.int64) - part.first
    chosen: Logits = part.logits[wanted[(wanted >= 0) & (wanted < len(part.logits))]]
    return chosen

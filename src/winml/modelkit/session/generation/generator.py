"""What runs a decoder: the prompt first, then one token after another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.errors import RequestError

Ids = npt.NDArray[np.int64]
Logits = npt.NDArray[Any]


class Generator(Protocol):
    """A model that continues texts; the likeliest token is taken, so that the same input gives the same text."""

    @property
    def runtime(self) -> str:
        """The program that runs the steps, with its version."""
        ...

    @property
    def context_length(self) -> int:
        """Tokens of a prompt and its continuation together, at most."""
        ...

    def start(self, ids: Ids, mask: Ids | None = None, *, new_tokens: int) -> None:
        """Run prompts (batch, length), padded on the left where `mask` is 0, with room for so many more tokens."""
        ...

    def next(self) -> Ids:
        """The next token of every sequence (batch); runs a step, except for the first, which the prompt gave."""
        ...

    def close(self) -> None: ...


class Scorer(Protocol):
    """A model that says how likely the tokens of a text are."""

    @property
    def context_length(self) -> int:
        """Tokens of a text, at most."""
        ...

    @property
    def vocabulary(self) -> int | None:
        """How many tokens the logits have; None where only a run tells."""
        ...

    def score_parts(self, ids: Ids, *, part: int) -> Iterator[Logits]:
        """The logits after every token of one text, so many at a time, or as many as the graph takes."""
        ...


def generate(generator: Generator, ids: Ids, mask: Ids | None = None, *, new_tokens: int, ends: tuple[int, ...]) -> Ids:
    """The tokens after the prompts; ends early when all sequences have ended, and one that has ended is filled up."""
    generator.start(ids, mask, new_tokens=new_tokens)
    done = np.zeros(len(ids), bool)
    columns: list[Ids] = []
    for _ in range(new_tokens):
        tokens = generator.next()
        if ends:
            tokens = np.where(done, np.int64(ends[0]), tokens)
            done |= np.isin(tokens, ends)
        columns.append(tokens)
        if done.all():
            break
    return np.stack(columns, axis=1).astype(np.int64, copy=False)


def check_prompt(ids: Ids, mask: Ids | None, *, new_tokens: int, context_length: int) -> Ids:
    """The mask of a prompt; an error for one that is empty or too long."""
    if ids.ndim != 2 or not ids.size:
        raise RequestError("a prompt must have at least one token")
    if new_tokens < 1:
        raise RequestError(f"tokens to generate must be at least 1 but got {new_tokens}")
    found: Ids = np.ones_like(ids) if mask is None else mask.astype(np.int64)
    if found.shape != ids.shape or not found.sum(axis=1).all():
        raise RequestError("the mask of a prompt must have its shape and leave at least one token of every sequence")
    if (np.diff(found, axis=1) < 0).any():
        raise RequestError("prompts must be padded on the left")
    longest = int(found.sum(axis=1).max())
    if longest + new_tokens > context_length:
        raise RequestError(
            f"a prompt of {longest} tokens with {new_tokens} more does not fit the model's {context_length}",
            hint="shorten the prompt or ask for fewer tokens",
        )
    return found

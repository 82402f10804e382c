"""Texts that the parts of a composite model read and continue, with graphs of open and of fixed shapes.

A graph of fixed shapes takes a cache of one length. It is filled up on the left with zeros, which the mask hides, and
positions count real tokens only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.errors import RequestError
from winml.modelkit.graph.inputs import Arrays

if TYPE_CHECKING:
    from winml.modelkit.session.composite import Composite

Ids = npt.NDArray[np.int64]
Logits = npt.NDArray[Any]


class DecoderText:
    """Texts of a decoder in two graphs: `prefill` reads prompts, `decode` one token after another."""

    def __init__(self, parts: Composite) -> None:
        self._parts = parts
        self._past: Arrays = {}
        self._mask: Ids = np.zeros((0, 0), np.int64)
        """Of all tokens that were read."""

    def read(self, ids: Ids, mask: Ids, *, piece: int | None = None) -> Iterator[Logits]:
        """The logits after the tokens of prompts, piece by piece, without those of columns that were added.

        A graph of fixed width reads the prompt in pieces, the first of which is padded on the left. One that takes no
        cache reads the first piece alone, and the graph for steps the rest, one token after another. A graph with an
        open width reads `piece` tokens at once, or all.
        """
        fixed = self._parts.fixed_size("prefill", "input_ids", 1)
        cache = self._empty_cache(len(ids))
        width = fixed or (piece if piece is not None and cache else ids.shape[1])
        added = 0
        if fixed is not None:
            longest = max(1, int(mask.sum(axis=1).max()))
            ids, mask = ids[:, -longest:], mask[:, -longest:]
            added = -longest % fixed if cache else max(0, fixed - longest)
            ids, mask = (np.pad(array, ((0, 0), (added, 0))) for array in (ids, mask))
        self._past, self._mask = cache, mask[:, :0]
        yield self._read("prefill", ids[:, :width], mask[:, :width])[:, added:]
        part, step = ("prefill", width) if cache else ("decode", 1)
        for start in range(width, ids.shape[1], step):
            yield self._read(part, ids[:, start : start + step], mask[:, start : start + step])

    def step(self, ids: Ids) -> Logits:
        """The logits after one more token of every text (batch, 1)."""
        return self._read("decode", ids, np.ones_like(ids))

    def _read(self, part: str, ids: Ids, new_mask: Ids) -> Logits:
        """The logits of a part for the next tokens of texts."""
        self._mask = mask = np.concatenate([self._mask, new_mask], axis=1)
        count = ids.shape[1]
        # Padding is on the left, and positions count real tokens only.
        positions = np.maximum(np.cumsum(mask, axis=1) - 1, 0)[:, -count:]
        total, past = self._parts.fixed_size(part, "attention_mask", 1), self._past
        if total is not None:  # the oldest words go, which are padding as long as the text fits
            mask = _fit_mask(mask, total)
            past = {name: fit_past(array, total - count) for name, array in past.items()}
        made = self._parts.run(part, {"input_ids": ids, "attention_mask": mask, "position_ids": positions, **past})
        self._past = past_of(made)
        logits: Logits = made["logits"]
        return logits

    def _empty_cache(self, batch: int) -> Arrays:
        """A cache without words for the graph for prompts; nothing for one that takes none."""
        return {
            spec.name: np.zeros((batch, spec.shape[1], 0, spec.shape[3]), spec.dtype)
            for spec in self._parts.sessions["prefill"].inputs
            if spec.name.startswith("past_")
        }


class PairText:
    """Texts that a decoder says of what its encoder has read."""

    def __init__(self, parts: Composite) -> None:
        self._parts = parts
        self._past: Arrays = {}
        self._masks: Arrays = {}
        self._done = 0
        """Tokens that the decoder has read; every text begins with one, so that all have as many."""

    def read(self, inputs: Arrays, first: int) -> Logits:
        """The logits after the token that a text begins with (batch, 1, vocabulary)."""
        inputs = self._fit_inputs(inputs)
        state = self._parts.run("encoder", inputs)["last_hidden_state"]
        self._masks = {"encoder_attention_mask": inputs["attention_mask"]} if "attention_mask" in inputs else {}
        ids = np.full((len(state), 1), first, np.int64)
        made = self._parts.run("prefill", {"input_ids": ids, "encoder_hidden_states": state, **self._masks})
        self._past, self._done = past_of(made), 1
        logits: Logits = made["logits"]
        return logits

    def step(self, ids: Ids) -> Logits:
        """The logits after one more token of every text (batch, 1)."""
        self._done += 1
        mask = np.ones((len(ids), self._done), np.int64)
        total, past = self._parts.fixed_size("decode", "decoder_attention_mask", 1), self._past
        if total is not None:
            mask = _fit_mask(mask, total)
            past = {name: array if "_encoder" in name else fit_past(array, total - 1) for name, array in past.items()}
        given = {
            "input_ids": ids,
            "decoder_attention_mask": mask,
            "position_ids": np.full_like(ids, self._done - 1),
        }
        made = self._parts.run("decode", {**given, **self._masks, **past})
        self._past = past | past_of(made)  # those of the encoder stay as they are
        logits: Logits = made["logits"]
        return logits

    def _fit_inputs(self, inputs: Arrays) -> Arrays:
        """The inputs of the encoder as long as its graph: texts are filled up on the right, and the mask hides that."""
        length = self._parts.fixed_size("encoder", "input_ids", 1)
        if length is None or "input_ids" not in inputs:
            return inputs
        ids = inputs["input_ids"].astype(np.int64)
        mask = inputs.get("attention_mask", np.ones_like(ids)).astype(np.int64)
        used = np.flatnonzero(mask.any(axis=0))
        needed = int(used[-1]) + 1 if used.size else 1
        if needed > length:
            raise RequestError(
                f"a text of {needed} tokens was given, and `{self._parts.folder}` was built for {length}",
                hint=f"build it with `--dim sequence={needed}`, or shorten the text",
            )
        if needed < length and "attention_mask" not in {spec.name for spec in self._parts.sessions["encoder"].inputs}:
            raise RequestError(
                f"a text of {needed} tokens was given, and the encoder of `{self._parts.folder}` takes {length} "
                "without a mask that would hide the rest",
                hint=f"build it with `--dim sequence={needed}`",
            )
        missing = ((0, 0), (0, length - needed))
        ids = np.pad(ids[:, :needed], missing, constant_values=self._parts.padding_token)
        return {**inputs, "input_ids": ids, "attention_mask": np.pad(mask[:, :needed], missing)}


def past_of(made: Arrays) -> Arrays:
    """The cache that a step returns, by the input names of the next step."""
    return {f"past_{name.removeprefix('present_')}": a for name, a in made.items() if name.startswith("present_")}


def fit_past(array: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    """The newest words of a cache, with zeros before them, which the mask hides, where there are fewer."""
    newest = array[:, :, max(0, array.shape[2] - length) :]
    missing = length - newest.shape[2]
    return np.ascontiguousarray(np.pad(newest, ((0, 0), (0, 0), (missing, 0), (0, 0))))


def _fit_mask(mask: Ids, total: int) -> Ids:
    newest = mask[:, -total:]
    return np.pad(newest, ((0, 0), (total - newest.shape[1], 0)))

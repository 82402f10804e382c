"""What the parts of a composite model pass to one another, so that a proof runs them together. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RunFailedError
from winml.modelkit.graph.inputs import Arrays, Dim, Input

PAST, PRESENT = "past_", "present_"
PAIR_MASK = "decoder_attention_mask"
LENGTH = 2
"""The axis of a cache that counts words."""


@dataclass(frozen=True)
class Ran:
    """What a part took and gave."""

    inputs: Arrays
    outputs: Arrays


def link(part: str, feed: Arrays, specs: Sequence[Input], earlier: Mapping[str, Ran]) -> Arrays:
    """The inputs of a part, with the outputs of the parts before it in place of synthetic values.

    A part that gives another shape than the next one takes is an error: they cannot be used together.
    """
    shapes = {spec.name: tuple(spec.shape) for spec in specs}
    linked = dict(feed)
    encoder, prefill = earlier.get("encoder"), earlier.get("prefill")
    if encoder is not None and part in ("prefill", "decode"):
        given = {
            "encoder_hidden_states": encoder.outputs.get("last_hidden_state"),
            "encoder_attention_mask": encoder.inputs.get("attention_mask"),
        }
        linked |= {name: array for name, array in given.items() if array is not None and name in feed}
    if prefill is not None and part == "decode":
        linked |= _past(prefill, feed, shapes)
        linked |= _positions(prefill, linked)
    for name, array in linked.items():
        if array is not feed[name]:
            _check_fits(part, name, array.shape, shapes[name])
    return linked


def find_linked_inputs(part: str, outputs: Iterable[str]) -> dict[str, str]:
    """What inputs of later parts are called that outputs of a part go to, by output."""
    found = {name: PAST + name.removeprefix(PRESENT) for name in outputs if name.startswith(PRESENT)}
    return found | ({"last_hidden_state": "encoder_hidden_states"} if part == "encoder" else {})


def _past(prefill: Ran, feed: Arrays, shapes: Mapping[str, tuple[Dim, ...]]) -> Arrays:
    """The cache that the first words leave; one of fixed length keeps its last words, or repeats them.

    What was read of an encoder has the length that it has.
    """
    found: Arrays = {}
    for name in feed:
        array = prefill.outputs.get(PRESENT + name.removeprefix(PAST)) if name.startswith(PAST) else None
        if array is None:
            continue
        wanted = shapes[name][LENGTH]
        if isinstance(wanted, int) and "_encoder_" not in name:
            array = np.take(array, np.arange(-wanted, 0) % array.shape[LENGTH], axis=LENGTH)
        found[name] = array
    return found


def _positions(prefill: Ran, linked: Arrays) -> Arrays:
    """Mask and positions of the next words after those of the cache, for a decoder that takes them."""
    caches = [array for name, array in linked.items() if name.startswith(PAST) and "_encoder_" not in name]
    if PAIR_MASK in linked and caches:
        words, length = linked["input_ids"], caches[0].shape[LENGTH]
        # As long as the cache that was passed on, whatever the length of the synthetic one.
        found = {PAIR_MASK: np.ones((len(words), length + words.shape[1]), linked[PAIR_MASK].dtype)}
        if "position_ids" in linked:
            places = np.broadcast_to(length + np.arange(words.shape[1]), words.shape)
            found["position_ids"] = places.astype(linked["position_ids"].dtype)
        return found
    if "attention_mask" not in linked or not caches or "attention_mask" not in prefill.inputs:
        return {}
    length, words = caches[0].shape[LENGTH], linked["input_ids"]
    mask = prefill.inputs["attention_mask"]
    before = np.take(mask, np.arange(-length, 0) % mask.shape[1], axis=1)
    found = {"attention_mask": np.concatenate([before, np.ones_like(words)], axis=1).astype(mask.dtype)}
    if "position_ids" in linked:
        first = before.sum(axis=1, keepdims=True)
        found["position_ids"] = (first + np.arange(words.shape[1])).astype(linked["position_ids"].dtype)
    return found


def _check_fits(part: str, name: str, given: tuple[int, ...], wanted: tuple[Dim, ...]) -> None:
    fits = len(given) == len(wanted) and all(
        not isinstance(size, int) or size == have for size, have in zip(wanted, given, strict=False)
    )
    if not fits:
        raise RunFailedError(
            f"the parts do not fit: `{name}` of part `{part}` has shape {_words(wanted)}, and the part before gives "
            f"{_words(given)}",
            hint="give the parts one size with `--shape`, or export the model as a whole with `--part model`",
        )


def _words(shape: Sequence[Dim]) -> str:
    return f"[{', '.join('?' if size is None else str(size) for size in shape)}]"

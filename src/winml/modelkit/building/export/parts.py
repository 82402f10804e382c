"""Parts of composite models as modules with tensors in and out, so that each becomes a graph of its own.

Caches of keys and values go in as `past_LAYER[_KIND]_key` and come out as `present_LAYER[_KIND]_key`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers.cache_utils import Cache, DynamicCache, EncoderDecoderCache

from winml.modelkit.building.export.caches import takes_positions
from winml.modelkit.building.export.families import DECODER, WHOLE, Shape
from winml.modelkit.building.export.samples import Arrays
from winml.modelkit.core.config import ExportSection

Tensors = dict[str, Tensor]


class Part(nn.Module):
    """A module whose forward takes and gives tensors by name."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.config = model.config


class Encoder(Part):
    """What a decoder reads."""

    def forward(self, **inputs: Tensor) -> Tensors:
        return {"last_hidden_state": self.model.get_encoder()(**inputs, return_dict=True).last_hidden_state}


class PairPrefill(Part):
    """The decoder of a pair on the first words."""

    def forward(self, input_ids: Tensor, encoder_hidden_states: Tensor, **masks: Tensor) -> Tensors:
        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        return _decode(self.model, input_ids, encoder_hidden_states, masks, cache, kinds=("decoder", "encoder"))


class PairDecode(Part):
    """The decoder of a pair on the next words; what it read of the encoder is in the cache.

    A cache that is filled up on the left has a mask that hides what fills it, and positions are given, because the
    length of the cache does not tell them.
    """

    def forward(self, input_ids: Tensor, **others: Tensor) -> Tensors:
        masks = {name: others.pop(name) for name in list(others) if name.endswith("_mask")}
        positions = others.pop("position_ids", None)
        cache = EncoderDecoderCache(_cache(others, "decoder"), _cache(others, "encoder"))
        # Only its length matters: keys and values of the encoder come from the cache.
        length = others["past_0_encoder_key"]
        encoder = getattr(self.model.config, "encoder", self.model.config)
        width = int(getattr(encoder, "d_model", None) or encoder.hidden_size)
        state = length.new_zeros(1).expand(length.shape[0], length.shape[2], width)
        with _set_positions(self.model, positions) as places:
            return _decode(self.model, input_ids, state, masks | places, cache, kinds=("decoder",))


@contextmanager
def _set_positions(model: Any, positions: Tensor | None) -> Iterator[Tensors]:
    """Have the decoder of a pair take the place of every token from `positions` (batch, tokens).

    Decoders with a table of positions look them up by the length of the cache, in a module that takes positions as
    well, one row of them; others are given them by an argument, which is yielded.
    """
    table = None if positions is None else _position_table(model)
    if positions is None or table is None:
        yield {} if positions is None else {"decoder_position_ids": positions}
        return

    def give(module: nn.Module, args: Any, kwargs: Any) -> Any:
        return args, {**kwargs, "position_ids": positions.reshape(-1)}

    def shape(module: nn.Module, args: Any, output: Tensor) -> Tensor:
        return output.reshape(*positions.shape, output.shape[-1])

    handles = table.register_forward_pre_hook(give, with_kwargs=True), table.register_forward_hook(shape)
    try:
        yield {}
    finally:
        for handle in handles:
            handle.remove()


def _position_table(model: Any) -> nn.Module | None:
    """The module of a decoder that has a vector for every place and takes places by name."""
    for name, module in model.get_decoder().named_modules():
        if name.rpartition(".")[2] == "embed_positions":
            takes = inspect.signature(module.forward).parameters
            return module if "position_ids" in takes else None
    return None


class Next(Part):
    """A decoder on the next words after a cache: a piece of the prompt, or one word."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor, position_ids: Tensor, **past: Tensor) -> Tensors:
        cache = _cache(past, "")
        output = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            past_key_values=cache,
            use_cache=True,
            return_dict=True,
        )
        return {"logits": output.logits, **dict(_present(cache, ""))}


class WithPast(Part):
    """A decoder on a prompt, or on the next words after a cache: one graph for both."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **others: Tensor) -> Tensors:
        past = {name: value for name, value in others.items() if name.startswith("past_key_values.")}
        cache = DynamicCache()
        for layer in range(len(past) // 2):
            cache.update(past[f"past_key_values.{layer}.key"], past[f"past_key_values.{layer}.value"], layer)
        positions = {name: value for name, value in others.items() if name == "position_ids"}
        if not positions and takes_positions(self.model):  # those that follow the cache
            start = past["past_key_values.0.key"].shape[2]
            positions["position_ids"] = torch.arange(start, start + input_ids.shape[1])[None].expand(input_ids.shape)
        output = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            past_key_values=cache,
            use_cache=True,
            return_dict=True,
            **positions,
        )
        present: Tensors = {}
        for layer, entry in enumerate(cache.layers):
            present |= {f"present.{layer}.key": entry.keys, f"present.{layer}.value": entry.values}
        return {"logits": output.logits, **present}


class ImageEncoder(Part):
    """The image half of a dual encoder, in the space that both share."""

    def forward(self, pixel_values: Tensor) -> Tensors:
        return {"image_embeds": _embeddings(self.model.get_image_features(pixel_values=pixel_values))}


class TextEncoder(Part):
    """The text half of a dual encoder."""

    def forward(self, **inputs: Tensor) -> Tensors:
        return {"text_embeds": _embeddings(self.model.get_text_features(**inputs))}


class Whole(Part):
    """The model as its class runs it, without caches."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        takes = inspect.signature(model.forward).parameters.values()
        # Newer classes take it without naming it; a few have a forward that takes tensors alone.
        self._takes_how = any(p.name == "return_dict" or p.kind is p.VAR_KEYWORD for p in takes)

    def forward(self, **inputs: Tensor) -> Tensors:
        how = {"return_dict": True} if self._takes_how else {}
        return tensors_of(self.model(**inputs, **how))


TABLE: dict[Shape, dict[str, Callable[[Any], Part]]] = {
    "single": {},
    "encoder-decoder": {"encoder": Encoder, "prefill": PairPrefill, "decode": PairDecode},
    "decoder": {"prefill": Next, "decode": Next, DECODER: WithPast},
    "dual": {"image": ImageEncoder, "text": TextEncoder},
}
"""The module of every part, as `signature` names its inputs."""


def part_of(model: Any, section: ExportSection) -> Part:
    """The module of a part; a decoder that reads an encoder has inputs of that name."""
    if section.part == WHOLE:
        return Whole(model)
    paired = section.part == "encoder" or any("encoder_" in entry.name for entry in section.inputs)
    shapes: tuple[Shape, ...] = ("encoder-decoder",) if paired else ("decoder", "dual")
    return next(TABLE[shape][section.part](model) for shape in shapes if section.part in TABLE[shape])


def tensors_of(output: Any, prefix: str = "") -> Tensors:
    """The tensors of an output by name; one that is a list has its items numbered, caches are skipped."""
    if isinstance(output, Tensor):
        return {"output": output}
    if isinstance(output, list | tuple):
        output = {"output": output}
    found: Tensors = {}
    for name, value in output.items():
        if isinstance(value, Tensor):
            found[prefix + name] = value
        elif isinstance(value, dict):
            found |= tensors_of(value, f"{prefix}{name}.")
        elif isinstance(value, list | tuple):
            found |= {f"{prefix}{name}.{n}": item for n, item in enumerate(value) if isinstance(item, Tensor)}
    return found


def _embeddings(output: Any) -> Tensor:
    """The vectors, which newer models wrap into an output."""
    return output if isinstance(output, Tensor) else output.pooler_output


def _decode(
    model: Any, words: Tensor, state: Tensor, masks: Tensors, cache: EncoderDecoderCache, *, kinds: tuple[str, ...]
) -> Tensors:
    from transformers.modeling_outputs import BaseModelOutput

    output = model(
        encoder_outputs=BaseModelOutput(last_hidden_state=state),
        attention_mask=masks.get("encoder_attention_mask"),
        decoder_input_ids=words,
        **{name: masks[name] for name in ("decoder_attention_mask", "decoder_position_ids") if name in masks},
        past_key_values=cache,
        use_cache=True,
        return_dict=True,
    )
    caches = {"decoder": cache.self_attention_cache, "encoder": cache.cross_attention_cache}
    present = {name: value for kind in kinds for name, value in _present(caches[kind], kind)}
    return {"logits": output.logits, **present}


def _names(layer: int, kind: str, prefix: str) -> tuple[str, str]:
    start = "_".join(filter(None, (prefix, str(layer), kind)))
    return f"{start}_key", f"{start}_value"


def _cache(past: Tensors, kind: str) -> DynamicCache:
    """A cache that holds what was given for every layer."""
    cache = DynamicCache()
    layer = 0
    while (names := _names(layer, kind, "past"))[0] in past:
        cache.update(past[names[0]], past[names[1]], layer)
        layer += 1
    return cache


def _present(cache: Cache, kind: str) -> Iterator[tuple[str, Tensor]]:
    for layer, entry in enumerate(cache.layers):
        key, value = _names(layer, kind, "present")
        yield key, entry.keys
        yield value, entry.values


def evaluate_part(part: Part, inputs: Arrays) -> Arrays:
    """The outputs of a part for arrays, as arrays."""
    with torch.inference_mode():
        output = part(**{name: torch.from_numpy(array) for name, array in inputs.items()})
    return {name: value.numpy() for name, value in output.items()}

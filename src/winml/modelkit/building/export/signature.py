"""Which inputs a model is exported with: names, types, axes and values, from its config alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from winml.modelkit.building.export import families
from winml.modelkit.building.export.families import DECODER, WHOLE, Family
from winml.modelkit.building.export.folder import ModelFolder
from winml.modelkit.core.config import InputSection
from winml.modelkit.core.errors import ModelFileError, RequestError
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.graph.sizes import SHIFTED_POSITIONS

SIZES: dict[str, int] = {
    "batch": 2, "text_batch": 2, "image_batch": 3, "sequence": 16, "decoder_sequence": 5, "past": 4, "prompt_past": 4,
    "total": 9,
    "samples": 8000, "frames": 100, "choices": 4, "points": 3, "patches": 24, "objects": 6,
}  # fmt: skip
"""Sizes of open axes in the traced sample: at least 2, since torch takes a size of 1 for a constant."""

NPU_SIZES: dict[str, int] = {
    "batch": 1, "text_batch": 1, "image_batch": 1, "sequence": 128, "decoder_sequence": 1, "past": 127,
    "samples": 16000, "frames": 100, "choices": 4, "points": 1, "patches": 1024, "objects": 36,
}  # fmt: skip
"""Sizes of open axes where a device needs fixed shapes."""
NPU_TEXT = 512
"""Tokens of a text, the prompt among them, that a decoder of fixed shapes is built for."""
NPU_CHUNK = 64
"""Tokens of a prompt that it reads at once."""
NPU_PAIR_TEXT = 128
"""Tokens that the decoder of a pair says, the first among them."""

PAIR_MASK = "decoder_attention_mask"
"""Which slots of the cache of a pair's decoder hold words: one of fixed length is filled up with others."""
_RELATIVE = ("t5", "mt5", "umt5", "longt5", "switch_transformers")
"""Pairs whose attention counts from the token that looks, so that no token needs its place."""

FIRST_WORD = 3
"""Ids below are special in most vocabularies: padding would change what positions mean."""
_LABELLED = ("text-classification", "token-classification", "question-answering", "fill-mask", "feature-extraction")

_MERGING = ("donut-swin", "swin", "swinv2")
"""Encoders of images that merge patches from stage to stage."""
_EXTRA_TOKENS = {"deit": 2}
"""Vectors that encoders give besides one per patch; others give one, for the class."""

Maker = Callable[[ModelFolder, Family], Iterator[InputSection]]


def inputs_of(folder: ModelFolder, family: Family, task: str, part: str = WHOLE) -> tuple[InputSection, ...]:
    """The inputs of a part of a model."""
    if part == WHOLE:
        return tuple(_whole(folder, family, task))
    makers = _PARTS[family.shape]
    parts = (*families.parts_of(family, task), *((DECODER,) if families.has_decoder(family, task) else ()))
    if part not in makers or part not in parts:
        known = sorted({WHOLE, *parts})
        raise RequestError(f"the model has no part `{part}` for {task}", hint=did_you_mean(part, known))
    return tuple(makers[part](folder, family))


def usual(folder: ModelFolder, name: str) -> InputSection | None:
    """What an input of this name is in nearly every model; None when that is unknown, or the config says too little."""
    make = _USUAL.get(name)
    try:
        return None if make is None else make(folder)
    except ModelFileError:
        return None


def longest(folder: ModelFolder) -> int | None:
    """How many tokens the model takes at most; None when positions are not a table."""
    found = folder.value("max_position_embeddings", "n_positions", "max_target_positions")
    if not isinstance(found, int):
        return None
    shifted = folder.model_type in SHIFTED_POSITIONS
    return found - (folder.whole("pad_token_id", otherwise=1) + 1 if shifted else 0)


def text_axes(inputs: Iterable[InputSection]) -> tuple[int | str, int | str] | None:
    """The axes of the new tokens and of the cache where a mask is as long as both; None for other inputs."""
    named = {entry.name: entry for entry in inputs}
    caches = [entry for name, entry in named.items() if name.startswith("past_") and "_encoder_" not in name]
    mask = named.get(PAIR_MASK, named.get("attention_mask"))
    if mask is None or "total" not in mask.shape or not caches:
        return None
    return named["input_ids"].shape[1], caches[0].shape[2]


def total_size(inputs: Iterable[InputSection], sizes: Mapping[str, int]) -> dict[str, int]:
    """The size of `total` that goes with other sizes; nothing where no input has such an axis."""
    axes = text_axes(inputs)
    return {} if axes is None else {"total": sum(axis if isinstance(axis, int) else sizes[axis] for axis in axes)}


def _words(folder: ModelFolder, name: str, *shape: str) -> InputSection:
    vocabulary = folder.whole("vocab_size")
    return InputSection(name, "int64", shape, min(FIRST_WORD, vocabulary - 1), vocabulary - 1)


def _mask(name: str, *shape: str) -> InputSection:
    return InputSection(name, "int64", shape, 0, 1, "padding")


def _text(folder: ModelFolder, family: Family, batch: str = "batch") -> Iterator[InputSection]:
    yield _words(folder, "input_ids", batch, "sequence")
    yield _mask("attention_mask", batch, "sequence")
    kinds = folder.whole("type_vocab_size", otherwise=1)
    if family.token_types and kinds > 1:
        yield InputSection("token_type_ids", "int64", (batch, "sequence"), 0, kinds - 1)


def _image(folder: ModelFolder, batch: str = "batch") -> InputSection:
    encoder = folder.config.get("encoder") or folder.config.get("vision_config") or folder.config
    channels = encoder.get("num_channels", 3)
    return InputSection("pixel_values", "float32", (batch, channels, *folder.image_size()), -2.0, 2.0)


def _features(folder: ModelFolder) -> InputSection:
    frames = 2 * folder.whole("max_source_positions", otherwise=1500)
    return InputSection("input_features", "float32", ("batch", folder.whole("num_mel_bins", otherwise=80), frames))


def _token_types(folder: ModelFolder) -> InputSection:
    kinds = folder.whole("type_vocab_size", otherwise=2)
    return InputSection("token_type_ids", "int64", ("batch", "sequence"), 0, max(0, kinds - 1))


_USUAL: dict[str, Callable[[ModelFolder], InputSection]] = {
    "input_ids": lambda folder: _words(folder, "input_ids", "batch", "sequence"),
    "attention_mask": lambda folder: _mask("attention_mask", "batch", "sequence"),
    "token_type_ids": _token_types,
    "decoder_input_ids": lambda folder: _words(folder, "decoder_input_ids", "batch", "decoder_sequence"),
    "pixel_values": _image,
    "input_values": lambda folder: InputSection("input_values", "float32", ("batch", "samples")),
    "input_features": _features,
}


def _source(folder: ModelFolder, family: Family) -> Iterator[InputSection]:
    """What the encoder of a model reads, or the model when it is not taken apart."""
    if family.modality == "text":
        yield from _text(folder, family)
    elif family.modality == "image":
        yield _image(folder)
    elif family.modality == "audio":
        yield InputSection("input_values", "float32", ("batch", "samples"))
    elif family.modality == "features":
        yield _features(folder)
    else:
        yield from _text(folder, family, "text_batch")
        yield _image(folder, "image_batch")


def _whole(folder: ModelFolder, family: Family, task: str) -> Iterator[InputSection]:
    yield from _source(folder, family)
    # BART for classification reads the same text on both sides by itself.
    if family.shape == "encoder-decoder" and (family.modality != "text" or task not in _LABELLED[:-1]):
        yield _words(folder, "decoder_input_ids", "batch", "decoder_sequence")


# --- parts


def _state(folder: ModelFolder, family: Family) -> Iterator[InputSection]:
    """What a decoder reads of its encoder."""
    encoder = folder.config.get("encoder") or folder.config
    width = int(encoder.get("d_model") or encoder.get("hidden_size") or folder.whole("d_model"))
    if family.modality == "text":
        yield InputSection("encoder_hidden_states", "float32", ("batch", "sequence", width))
        yield _mask("encoder_attention_mask", "batch", "sequence")
    else:
        yield InputSection("encoder_hidden_states", "float32", ("batch", _encoder_length(folder, family), width))


def _encoder_length(folder: ModelFolder, family: Family) -> int:
    """How many vectors an encoder of images or sound gives: one per patch and the class token, one per two frames."""
    if family.modality == "features":
        return folder.whole("max_source_positions", otherwise=1500)
    encoder = folder.config.get("encoder") or {}
    patch = int(encoder.get("patch_size", 16))
    if encoder.get("model_type") in _MERGING:
        # Every stage but the last merges 2x2 patches; odd numbers are filled up, and there is no class token.
        step = patch * 2 ** (len(encoder.get("depths", (0,))) - 1)
        height, width = (-(-size // step) for size in folder.image_size())
        return int(height * width)
    height, width = folder.image_size()
    return (height // patch) * (width // patch) + _EXTRA_TOKENS.get(encoder.get("model_type", ""), 1)


def _cache(folder: ModelFolder, kind: str, length: int | str) -> Iterator[InputSection]:
    """Keys and values of every layer; `kind` distinguishes those of the text from those of the encoder."""
    heads = folder.whole("num_key_value_heads", "decoder_attention_heads", "n_head", "num_heads", "num_attention_heads")
    size = folder.value("head_dim", "d_kv")
    if not isinstance(size, int):
        all_heads = folder.whole("decoder_attention_heads", "n_head", "num_heads", "num_attention_heads")
        size = folder.whole("d_model", "n_embd", "hidden_size") // all_heads
    layers = folder.whole("decoder_layers", "num_decoder_layers", "n_layer", "num_layers", "num_hidden_layers")
    for layer in range(layers):
        for what in ("key", "value"):
            name = "_".join(filter(None, ("past", str(layer), kind, what)))
            yield InputSection(name, "float32", ("batch", heads, length, size))


def _first_of_pair(folder: ModelFolder, family: Family) -> Iterator[InputSection]:
    yield _words(folder, "input_ids", "batch", "decoder_sequence")
    yield from _state(folder, family)


def _next_of_pair(folder: ModelFolder, family: Family) -> Iterator[InputSection]:
    yield _words(folder, "input_ids", "batch", "decoder_sequence")
    if family.modality == "text":
        yield _mask("encoder_attention_mask", "batch", "sequence")
    yield from filled_cache_inputs(takes_positions=folder.model_type not in _RELATIVE)
    yield from _cache(folder, "decoder", "past")
    length = "sequence" if family.modality == "text" else _encoder_length(folder, family)
    yield from _cache(folder, "encoder", length)


def filled_cache_inputs(
    *, takes_positions: bool, batch: int | str = "batch", words: int | str = "decoder_sequence"
) -> Iterator[InputSection]:
    """What the decoder of a pair needs to read a cache that is filled up on the left."""
    yield InputSection(PAIR_MASK, "int64", (batch, "total"), 0, 1, "padding")
    if takes_positions:
        yield InputSection("position_ids", "int64", (batch, words), 0, 0, "positions")


def _first(folder: ModelFolder, family: Family) -> Iterator[InputSection]:
    """A piece of a prompt after the cache of those before it: with fixed shapes a prompt is read in such pieces."""
    yield _words(folder, "input_ids", "batch", "sequence")
    yield _mask("attention_mask", "batch", "total")
    yield InputSection("position_ids", "int64", ("batch", "sequence"), 0, 0, "positions")
    yield from _cache(folder, "", "prompt_past")


def _next(folder: ModelFolder, family: Family) -> Iterator[InputSection]:
    yield _words(folder, "input_ids", "batch", "decoder_sequence")
    yield _mask("attention_mask", "batch", "total")
    yield InputSection("position_ids", "int64", ("batch", "decoder_sequence"), 0, 0, "positions")
    yield from _cache(folder, "", "past")


def _with_past(folder: ModelFolder, family: Family) -> Iterator[InputSection]:
    """A prompt, or the next words after a cache; names are those that onnxruntime-genai has."""
    for entry in _next(folder, family):
        _, number, kind = entry.name.split("_") if entry.name.startswith("past_") else ("", "", "")
        yield replace(entry, name=f"past_key_values.{number}.{kind}") if number else entry


def _image_part(folder: ModelFolder, family: Family) -> Iterator[InputSection]:
    yield _image(folder)


_PARTS: dict[families.Shape, dict[str, Maker]] = {
    "single": {},
    "encoder-decoder": {"encoder": _source, "prefill": _first_of_pair, "decode": _next_of_pair},
    "decoder": {"prefill": _first, "decode": _next, DECODER: _with_past},
    "dual": {"image": _image_part, "text": _text},
}

"""What an input of a model may look like, by its name: alternatives for an architecture that is in no table.

Names of inputs mean the same in nearly every model of transformers; sizes come from the config and the processor of the
model. Which alternative is right is decided by running the model (`derive`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from winml.modelkit.building.export import signature
from winml.modelkit.building.export.folder import ModelFolder
from winml.modelkit.core.config import InputSection

_PARTS_OF_IMAGES = ("vision_config", "encoder", "backbone_config", "backbone", "image_config", "qformer_config")
_PARTS_OF_SOUND = (
    "audio_config",
    "audio_encoder",
    "encoder",
    "speech_config",
    "audio_encoder_config",
    "encoder_config",
)
_USUAL_EDGES = (224, 256, 384, 512, 64, 32, 640)
_BOX = 1000
"""Boxes of words lie in pages of this size, whatever the page."""

Section = Iterator[InputSection]


class Facts:
    """What the config and the processor of a model show, by the names that families use for it."""

    def __init__(self, config: Any, folder: ModelFolder, class_name: str) -> None:
        self.config = config
        self.folder = folder
        self.class_name = class_name
        self.batches = {"text": "batch", "image": "batch"}
        """Names of the batch axis; two that differ leave both open."""

    def number(self, *names: str, of: tuple[str, ...] = (), otherwise: int | None = None) -> int | None:
        """The first of these numbers that the named parts of the config, or the config itself, have."""
        for part in (*(self._part(name) for name in of), self.config, *self._inner()):
            for name in names:
                found = getattr(part, name, None)
                if type(found) is int and found > 0:
                    return found
        return otherwise

    def _part(self, name: str) -> Any:
        found = getattr(self.config, name, None)
        return found if hasattr(found, "to_dict") else None

    def _inner(self) -> list[Any]:
        inner = [value for value in vars(self.config).values() if hasattr(value, "to_dict")]
        return [*inner, *(value for one in inner for value in vars(one).values() if hasattr(value, "to_dict"))]

    def vocabulary(self, *, decoder: bool) -> int:
        try:
            text = self.config.get_text_config(decoder=decoder)
        except (AttributeError, ValueError):  # a config with several texts does not choose
            text = self.config
        found = getattr(text, "vocab_size", None)
        if type(found) is int and found > 0:
            return found
        return self.number("vocab_size", "n_words", "decoder_vocab_size", "src_vocab_size") or 100

    def image_word(self) -> int | None:
        """The id that stands in a text for a vector of an image."""
        found = (getattr(self.config, name, None) for name in ("image_token_id", "image_token_index"))
        return next((word for word in found if type(word) is int and 0 <= word < self.vocabulary(decoder=False)), None)

    def edges(self) -> list[tuple[int, int]]:
        """Heights and widths of images: of the processor, of the config, usual ones."""
        found: list[tuple[int, int]] = []
        named = self.folder.processor_image_size()
        if named is not None:
            found.append(named)
        for part in (*(self._part(name) for name in _PARTS_OF_IMAGES), self.config, *self._inner()):
            for name in ("image_size", "input_image_size", "img_size", "crop_size"):
                size = getattr(part, name, None)
                if type(size) is int and size > 0:
                    found.append((size, size))
                elif isinstance(size, list | tuple) and len(size) == 2 and all(type(edge) is int for edge in size):
                    found.append((size[0], size[1]))
        return list(dict.fromkeys([*found, *((edge, edge) for edge in _USUAL_EDGES)]))

    def channels(self) -> int:
        names = ("num_channels", "in_channels", "in_chans", "num_input_channels")
        return self.number(*names, of=_PARTS_OF_IMAGES) or 3

    def patches(self, edges: tuple[int, int]) -> int:
        patch = self.number("patch_size", of=_PARTS_OF_IMAGES) or 16
        return (edges[0] // patch) * (edges[1] // patch)


def find_alternatives(name: str, facts: Facts) -> tuple[InputSection, ...]:
    """What an input of this name may be, the likeliest first; empty when that is unknown."""
    make = _RULES.get(name)
    return () if make is None else tuple(make(facts))


def _words(name: str, sequence: str, *, decoder: bool = False) -> Callable[[Facts], Section]:
    def make(facts: Facts) -> Section:
        last = facts.vocabulary(decoder=decoder) - 1
        ends = [getattr(facts.config, key, None) for key in ("eos_token_id", "pad_token_id")]
        first = signature.FIRST_WORD
        while first in ends:  # an end in the middle of a text, or padding, changes what positions mean
            first += 1
        yield InputSection(name, "int64", _text_shape(facts, sequence), min(first, last), last)
        end = getattr(facts.config, "eos_token_id", None)
        if type(end) is int and end < last:
            # Some classifiers want as many ends in every text: half of the ids are one, all others another.
            yield InputSection(name, "int64", _text_shape(facts, sequence), end, end + 1)

    return make


def _text_shape(facts: Facts, sequence: str) -> tuple[int | str, ...]:
    choices = ("choices",) if facts.class_name.endswith("ForMultipleChoice") else ()
    return (facts.batches["text"], *choices, sequence)


def _mask(name: str, sequence: str) -> Callable[[Facts], Section]:
    def make(facts: Facts) -> Section:
        yield InputSection(name, "int64", _text_shape(facts, sequence), 0, 1, "padding")

    return make


def _token_types(facts: Facts) -> Section:
    kinds = facts.number("type_vocab_size") or 1
    if kinds > 1:
        yield InputSection("token_type_ids", "int64", _text_shape(facts, "sequence"), 0, kinds - 1)


def _boxes(facts: Facts) -> Section:
    high = min(_BOX, (facts.number("max_2d_position_embeddings") or _BOX + 1) - 1)
    yield InputSection("bbox", "int64", (*_text_shape(facts, "sequence"), 4), 0, high, "boxes")
    yield InputSection("bbox", "float32", (*_text_shape(facts, "sequence"), 4), 0, 1, "boxes")


def _images(facts: Facts) -> Section:
    frames = facts.number("num_frames", "frames_per_clip", of=_PARTS_OF_IMAGES)
    edges, channels, batch = facts.edges(), facts.channels(), facts.batches["image"]
    if frames is not None:
        for one in edges:
            yield InputSection("pixel_values", "float32", (batch, frames, channels, *one), -2.0, 2.0)
    for place, one in enumerate(edges):
        yield InputSection("pixel_values", "float32", (batch, channels, *one), -2.0, 2.0)
        if facts.image_word() is not None and place < 2:  # some take several images with a text
            yield InputSection("pixel_values", "float32", (batch, 1, channels, *one), -2.0, 2.0)
    patches, patch = facts.number("num_patches", of=_PARTS_OF_IMAGES), facts.number("patch_size", of=_PARTS_OF_IMAGES)
    if patches is not None and patch is not None:
        yield InputSection("pixel_values", "float32", (batch, patches, channels * patch**2), -2.0, 2.0)


def _videos(facts: Facts) -> Section:
    frames = facts.number("num_frames", "frames_per_clip", of=_PARTS_OF_IMAGES, otherwise=4)
    for one in facts.edges():
        shape = (facts.batches["image"], frames or 4, facts.channels(), *one)
        yield InputSection("pixel_values_videos", "float32", shape, -2.0, 2.0)


def _patch_mask(facts: Facts) -> Section:
    patches = facts.number("num_patches", of=_PARTS_OF_IMAGES)
    if patches is not None:
        yield InputSection("pixel_attention_mask", "int64", (facts.batches["image"], patches), 1, 1)


def _patch_grid(facts: Facts) -> Section:
    patches = facts.number("num_patches", of=_PARTS_OF_IMAGES)
    if patches is not None:
        edge = math.isqrt(patches)
        yield InputSection("spatial_shapes", "int64", (facts.batches["image"], 2), edge, edge)


def _noise(facts: Facts) -> Section:
    for one in facts.edges():
        yield InputSection("noise", "float32", (facts.batches["image"], facts.patches(one)), 0.0, 1.0)


def _masked_patches(facts: Facts) -> Section:
    for one in facts.edges():
        yield InputSection("bool_masked_pos", "bool", (facts.batches["image"], facts.patches(one)), 0, 1)


def _flat_patches(facts: Facts) -> Section:
    patch = facts.number("patch_size", of=_PARTS_OF_IMAGES) or 16
    width = facts.number("patch_embed_hidden_size", of=_PARTS_OF_IMAGES) or facts.channels() * patch**2
    for count in dict.fromkeys((width, facts.channels() * patch**2)):
        # The first two numbers of a patch are its row and its column.
        shape = (facts.batches["image"], "patches", count + 2)
        yield InputSection("flattened_patches", "float32", shape, 0.0, 1.0)


def _points(facts: Facts) -> Section:
    for height, width in facts.edges()[:1]:
        shape = (facts.batches["image"], 1, "points", 2)
        yield InputSection("input_points", "float32", shape, 0.0, float(min(height, width)))


def _point_labels(facts: Facts) -> Section:
    yield InputSection("input_labels", "int64", (facts.batches["image"], 1, "points"), 0, 1)


def _sound(facts: Facts) -> Section:
    frames, bins = facts.number("max_length"), facts.number("num_mel_bins")
    if frames is not None and bins is not None:
        yield InputSection("input_values", "float32", ("batch", frames, bins))
    yield InputSection("input_values", "float32", ("batch", "samples"))
    yield InputSection("input_values", "float32", ("batch", facts.number("audio_channels") or 1, "samples"))


def _features(facts: Facts) -> Section:
    names = (
        "num_mel_bins", "input_feat_per_channel", "feature_projection_input_dim", "feature_size", "input_dim", "n_mels",
        "n_mel", "num_mel_features", "nb_mel_bins", "input_size", "num_freq_bin", "mel_bins",
    )  # fmt: skip
    sizes = [facts.number(name, of=_PARTS_OF_SOUND) for name in names]
    bins = [size for size in dict.fromkeys(sizes) if size is not None] or [80]
    longest = facts.number("max_source_positions", of=_PARTS_OF_SOUND)
    square = facts.number("spec_size", of=_PARTS_OF_SOUND)
    for size in bins:
        if square is not None:
            yield InputSection("input_features", "float32", ("batch", 1, square * max(1, square // size), size))
        if longest is not None:
            yield InputSection("input_features", "float32", ("batch", size, 2 * longest))
        yield InputSection("input_features", "float32", ("batch", "frames", size))
        yield InputSection("input_features", "float32", ("batch", size, "frames"))
    doubled = [size * 2 for size in bins]  # two frames that lie in one
    for size in doubled:
        yield InputSection("input_features", "float32", ("batch", "frames", size))


def _frame_mask(facts: Facts) -> Section:
    longest = facts.number("max_source_positions", of=_PARTS_OF_SOUND)
    for frames in ("frames",) if longest is None else (2 * longest, "frames"):
        yield InputSection("input_features_mask", "int64", ("batch", frames), 0, 1, "padding")


def _spectrogram(name: str, axis: str) -> Callable[[Facts], Section]:
    def make(facts: Facts) -> Section:
        bins = facts.number("num_mel_bins", "model_in_dim", "num_mels") or 80
        yield InputSection(name, "float32", ("batch", axis, bins))

    return make


def _history(facts: Facts) -> int:
    """How many past values a model of time series reads: its context, and the oldest value that it looks up."""
    lags = getattr(facts.config, "lags_sequence", None)
    length = facts.number("context_length", "context_len", "seq_len", "window_size") or 32
    return length + (max(lags) if isinstance(lags, list | tuple) and lags else 0)


def _series(name: str, dtype: str, length: Callable[[Facts], int]) -> Callable[[Facts], Section]:
    def make(facts: Facts) -> Section:
        count = facts.number("num_input_channels", "input_size", "num_channels") or 1
        low, high = (-1.0, 1.0) if dtype == "float32" else (1, 1)
        alone = InputSection(name, dtype, ("batch", length(facts)), low, high)
        several = InputSection(name, dtype, ("batch", length(facts), count), low, high)
        yield from (alone, several) if count == 1 else (several, alone)

    return make


def _prediction(facts: Facts) -> int:
    return facts.number("prediction_length", "horizon_length") or 8


def _times(name: str, length: Callable[[Facts], int]) -> Callable[[Facts], Section]:
    def make(facts: Facts) -> Section:
        count = facts.number("num_time_features") or 1
        yield InputSection(name, "float32", ("batch", length(facts), count))

    return make


def _vectors(name: str, *sizes: str, axes: tuple[int | str, ...] = ()) -> Callable[[Facts], Section]:
    def make(facts: Facts) -> Section:
        size = facts.number(*sizes)
        if size is not None:
            yield InputSection(name, "float32", ("batch", *axes, size))

    return make


def _states(name: str) -> Callable[[Facts], Section]:
    """What a part is given by the part before it: a vector for every word, or the image itself for the first part."""

    def make(facts: Facts) -> Section:
        sizes = dict.fromkeys(facts.number(key) for key in ("hidden_size", "d_model", "input_dim", "embed_dim", "dim"))
        for size in sizes:
            if size is not None:
                yield InputSection(name, "float32", ("batch", "sequence", size))
        if facts.number("image_size", "patch_size", "in_channels", "num_channels") is not None:
            yield from _rename(_images, name)(facts)

    return make


def _rename(rule: Callable[[Facts], Section], name: str) -> Callable[[Facts], Section]:
    return lambda facts: (replace(one, name=name) for one in rule(facts))


def _numbers(name: str, *shape: int | str, dtype: str = "float32", high: float = 1.0) -> Callable[[Facts], Section]:
    def make(facts: Facts) -> Section:
        yield InputSection(name, dtype, shape, 0.0, high)

    return make


def _timesteps(facts: Facts) -> Section:
    yield InputSection("timesteps", "int64", ("batch", "sequence"), 0, (facts.number("max_ep_len") or 100) - 1)


def _anything(facts: Facts) -> Section:
    last = facts.vocabulary(decoder=False) - 1
    yield InputSection("inputs", "int64", ("batch", "sequence"), min(signature.FIRST_WORD, last), last)
    for one in facts.edges():
        yield InputSection("inputs", "float32", ("batch", facts.channels(), *one), -2.0, 2.0)


_RULES: dict[str, Callable[[Facts], Section]] = {
    "input_ids": _words("input_ids", "sequence"),
    "attention_mask": _mask("attention_mask", "sequence"),
    "token_type_ids": _token_types,
    "bbox": _boxes,
    "decoder_input_ids": _words("decoder_input_ids", "decoder_sequence", decoder=True),
    "qformer_input_ids": _words("qformer_input_ids", "sequence"),
    "protein_input_ids": _words("protein_input_ids", "sequence"),
    "protein_attention_mask": _mask("protein_attention_mask", "sequence"),
    "pixel_values": _images,
    "pixel_values_videos": _videos,
    "pixel_attention_mask": _patch_mask,
    "spatial_shapes": _patch_grid,
    "noise": _noise,
    "bool_masked_pos": _masked_patches,
    "flattened_patches": _flat_patches,
    "input_points": _points,
    "input_labels": _point_labels,
    "visual_feats": _vectors("visual_feats", "visual_feat_dim", axes=("objects",)),
    "visual_pos": _numbers("visual_pos", "batch", "objects", 4),
    "visual_embeds": _vectors("visual_embeds", "visual_embedding_dim", axes=("objects",)),
    "input_values": _sound,
    "input_features": _features,
    "input_features_mask": _frame_mask,
    "image": _rename(_images, "image"),
    "hidden_states": _states("hidden_states"),
    "inputs_embeds": _states("inputs_embeds"),
    "query_embeds": _states("query_embeds"),
    "mel_spectrogram": _rename(_spectrogram("spectrogram", "frames"), "mel_spectrogram"),
    "is_longer": _numbers("is_longer", "batch", 1, dtype="bool"),
    "spectrogram": _spectrogram("spectrogram", "frames"),
    "decoder_input_values": _spectrogram("decoder_input_values", "decoder_sequence"),
    "speaker_embeddings": _vectors("speaker_embeddings", "speaker_embedding_dim"),
    "past_values": _series("past_values", "float32", _history),
    "past_observed_mask": _series("past_observed_mask", "bool", _history),
    "past_time_features": _times("past_time_features", _history),
    "future_values": _series("future_values", "float32", _prediction),
    "future_time_features": _times("future_time_features", _prediction),
    "states": _vectors("states", "state_dim", axes=("sequence",)),
    "actions": _vectors("actions", "act_dim", axes=("sequence",)),
    "rewards": _numbers("rewards", "batch", "sequence", 1),
    "returns_to_go": _numbers("returns_to_go", "batch", "sequence", 1),
    "timesteps": _timesteps,
    "inputs": _anything,
}

"""Worker operation `stages.derive`: the inputs of an architecture that is in no table, found by running its class.

Names come from the signature of `forward`, from `main_input_name` and from the processor of the folder; sizes from the
config; what the class accepts is decided by PyTorch. Nothing is traced here.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.building.export import resolve, samples, signature
from winml.modelkit.building.export.candidates import Facts, find_alternatives
from winml.modelkit.building.export.derivation import IMAGE_WORDS, NO_CACHE, DerivedPart, InputDerivation
from winml.modelkit.building.export.families import DECODER, WHOLE
from winml.modelkit.building.export.folder import ModelFolder
from winml.modelkit.building.export.forward import list_tensors
from winml.modelkit.building.export.loading import library, load, make_untrained
from winml.modelkit.building.export.nearest import name_nearest
from winml.modelkit.building.export.noise import mean_noise
from winml.modelkit.core.config import ExportSection, InputSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.placeholders import Placeholders
from winml.modelkit.data.processor import read_object

if TYPE_CHECKING:  # it imports torch
    from winml.modelkit.building.export.caches import LayerCache

_ALWAYS = (
    "input_ids", "attention_mask", "token_type_ids", "bbox", "decoder_input_ids", "pixel_values", "pixel_values_videos",
    "input_values", "input_features", "input_points", "input_labels", "speaker_embeddings", "decoder_input_values",
    "noise", "visual_feats", "visual_pos", "visual_embeds", "past_observed_mask", "past_time_features",
    "future_time_features", "spatial_shapes", "pixel_attention_mask", "states", "actions", "rewards", "returns_to_go",
    "timesteps", "flattened_patches",
)  # fmt: skip
"""Inputs that a user of a model has data for, also where the class could do without."""
_MEDIA = ("pixel_values", "pixel_values_videos", "input_values", "input_features", "is_longer")
_BY_THE_CLASS = ("text-classification", "token-classification", "question-answering", "feature-extraction")
"""Tasks for which a class with two sides reads the same text on both by itself."""
_GENERATING = ("text2text-generation", "image-to-text", "automatic-speech-recognition", "text-generation")
_PROCESSORS = ("tokenizer_config.json", "preprocessor_config.json", "processor_config.json")
_MOST_TRIALS = 120
_STATES = "encoder_sequence"
"""How many vectors an encoder gives, where that is not the length of its input."""
_NOISE = "the class draws random numbers; in the export they are replaced by their mean, so that it repeats"
_BY_HAND = "describe its inputs with `--input-specs FILE`; `winml support probe` writes the file as far as it can"
_MOST_OF_A_SET = 24


def derive(args: dict[str, Any], context: object) -> InputDerivation:
    """The inputs of the model in `args["folder"]` for `args["task"]`; code of a model runs only with `trust`."""
    folder = ModelFolder(Path(args["folder"]))
    section = ExportSection(task=args["task"])
    library()
    with _quiet():
        if folder.weight_files:
            model = load(folder.path, section, attention=None, trust=bool(args.get("trust_remote_code")))
        else:
            model = make_untrained(folder, section, trust=bool(args.get("trust_remote_code")))
        if hasattr(model.config, "use_cache"):
            model.config.use_cache = False
        try:
            return _Search(model, folder, section.task).find()
        except RequestError as error:
            raise name_nearest(error, folder.config) from None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what models print and warn about while they are tried."""
    import warnings

    with warnings.catch_warnings(), Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(nowhere):
            yield


@dataclass(frozen=True)
class _Found:
    """Inputs that the model accepts, with sizes of their open axes."""

    inputs: tuple[InputSection, ...]
    sizes: Mapping[str, int]
    notes: tuple[str, ...] = ()


class _Refused(Exception):
    """A model does not run on inputs; the message is its own, in one line."""


class _Search:
    """Tries inputs of one model until it accepts them."""

    def __init__(self, model: Any, folder: ModelFolder, task: str) -> None:
        self.model = model
        self.folder = folder
        self.task = task
        self.name = type(model).__name__
        self.facts = Facts(model.config, folder, self.name)
        self.parameters = {parameter.name: parameter for parameter in list_tensors(type(model))}
        self.known = [name for name in self.parameters if find_alternatives(name, self.facts)]
        """Inputs that something is known of, in the order of forward."""
        self.trials = 0
        self.first_error: str | None = None

    def find(self) -> InputDerivation:
        from winml.modelkit.building.export.parts import Whole

        self._require_forward()
        named = inspect.signature(self.model.forward).parameters.values()
        needed = [p.name for p in named if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
        for name in needed:
            if name not in self.known:
                raise RequestError(
                    f"{self.name} needs `{name}`, and nothing is known of an input of that name", hint=_BY_HAND
                )
        part = Whole(self.model)
        found = self._find_with_images(part) or self._find_accepted(part)
        if found is None and not self.trials:
            raise RequestError(
                f"nothing is known of the inputs of {self.name}, which are {', '.join(self.parameters) or 'none'}",
                hint=_BY_HAND,
            )
        if found is None:
            raise RequestError(
                f"{self.name} accepts none of {self.trials} sets of inputs: {self.first_error}", hint=_BY_HAND
            )
        found = self._open_axes(part, replace(found, notes=(*found.notes, *self._name_left_out(found))))
        noisy = not self._repeats(part, found)
        if noisy:
            with mean_noise(active=True):
                if not self._repeats(part, found):
                    raise RequestError(f"{self.name} draws random numbers that nothing can stand for", hint=_BY_HAND)
        fixed = self._find_fixed_sizes(part, found)
        split, notes, missing = self._split(found, fixed)
        whole = DerivedPart(part=WHOLE, inputs=found.inputs, sizes=found.sizes, fixed_sizes=fixed, notes=missing)
        parts = [replace(one, fixed_sizes={**_select_used(one.inputs, fixed), **one.fixed_sizes}) for one in split]
        return InputDerivation(
            class_name=self.name,
            parts=(whole, *parts),
            mean_noise=noisy,
            notes=(self._describe(found), *found.notes, *((_NOISE,) if noisy else ()), *notes),
        )

    def _require_forward(self) -> None:
        """Raise for a class that is never called itself: there is nothing to trace."""
        from torch import nn

        if type(self.model).forward is not nn.Module.forward:
            return
        parts = ", ".join(f"`{name}`" for name, _ in itertools.islice(self.model.named_children(), 6))
        raise RequestError(
            f"{self.name} has no `forward`: its methods run its parts {parts} one after the other",
            hint="save the part that you need as a model of its own (`save_pretrained`) and export that folder",
        )

    # Which inputs

    def _list_required(self) -> list[str]:
        main = getattr(self.model, "main_input_name", None)
        mains = [main] if isinstance(main, str) else list(main or ())
        return [name for name, p in self.parameters.items() if p.default is p.empty or (name in mains)]

    def _read_processor_names(self) -> dict[str, str]:
        """Inputs that files of the processor name, and the file."""
        found: dict[str, str] = {}
        for file in _PROCESSORS:
            if (self.folder.path / file).is_file():
                named = read_object(self.folder.path / file).get("model_input_names")
                for name in named if isinstance(named, list) else ():
                    found.setdefault(str(name), file)
        return found

    def _usual(self) -> list[str]:
        """The inputs that a user of the model has data for."""
        from_processor, required = self._read_processor_names(), self._list_required()
        found = [name for name in self.known if name in (*required, *from_processor, *_ALWAYS)]
        dropped = []
        if "input_ids" not in found and "inputs" not in found:
            dropped += ["attention_mask", "token_type_ids"]
        if "tokenizer_config.json" in from_processor.values() and "token_type_ids" not in from_processor:
            dropped.append("token_type_ids")
        if not getattr(self.model.config, "is_encoder_decoder", False) or self.task in _BY_THE_CLASS:
            dropped += ["decoder_input_ids", "decoder_input_values"]
        return [name for name in found if name in required or name not in dropped]

    def _sets(self) -> Iterator[list[str]]:
        """Names of inputs to try together, the likeliest first."""
        usual, required = self._usual(), self._list_required()
        sets = [usual]
        for dropped in ("token_type_ids", "noise", "past_observed_mask", "attention_mask", "bbox"):
            sets.append([name for name in usual if name != dropped or name in required])
        sets += [[*usual, extra] for extra in self.known if extra not in usual]
        sets.append(self.known)
        if "input_ids" in usual:  # a model of several media with its text alone
            sets.append([name for name in usual if name not in _MEDIA or name in required])
        sets.append([name for name in usual if name in (*_MEDIA, "pixel_attention_mask", "spatial_shapes")])
        sets.append(required)
        seen: list[set[str]] = [set()]
        for names in sets:
            if set(names) not in seen:
                seen.append(set(names))
                yield [name for name in self.known if name in names]

    def _combine(self, names: list[str], most: int) -> Iterator[tuple[InputSection, ...]]:
        """What inputs of these names may be together, the likeliest first."""
        choices = [find_alternatives(name, self.facts) for name in names]
        places = itertools.product(*(range(len(one)) for one in choices))
        for chosen in sorted(places, key=lambda at: (sum(at), at))[:most]:
            yield tuple(one[place] for one, place in zip(choices, chosen, strict=True))

    def _find_with_images(self, part: Any) -> _Found | None:
        """Inputs of a class that reads images within a text, whose ids hold a word for every vector of an image."""
        word = self.facts.image_word()
        if word is None or not {"input_ids", "pixel_values"} <= set(self.known):
            return None
        sets = (names for names in self._sets() if {"input_ids", "pixel_values"} <= set(names))
        combined = (inputs for names in sets for inputs in self._combine(names, _MOST_OF_A_SET))
        counts: dict[InputSection, int | None] = {}
        for inputs in itertools.islice(combined, _MOST_TRIALS):
            image = next(entry for entry in inputs if entry.name == "pixel_values")
            if image not in counts:
                counts[image] = self._count_vectors(inputs)
            count = counts[image]
            if count is None:
                continue
            words = Placeholders(word, count)
            inputs = tuple(replace(e, placeholders=words) if e.name == "input_ids" else e for e in inputs)
            found = _Found(inputs, {**self._sizes(inputs), "sequence": count + signature.SIZES["sequence"]})
            if self._accepts(part, found):
                words_of = "1 word" if count == 1 else f"{count} words"
                note = f"{IMAGE_WORDS} {words_of} of the text: input_ids begin with as many of id {word}"
                return replace(found, notes=(note,))
        return None

    def _count_vectors(self, inputs: tuple[InputSection, ...]) -> int | None:
        """How many vectors the class makes of the images that go with one text; None when it does not say."""
        import torch

        owners = (self.model, getattr(self.model, "model", None))
        features = next((f for owner in owners if (f := getattr(owner, "get_image_features", None))), None)
        if features is None:
            return None
        taken = tuple(entry for entry in inputs if entry.name in inspect.signature(features).parameters)
        sizes = self._sizes(taken)
        arrays = samples.make_samples(ExportSection(task="", inputs=taken), sizes, seed=0)
        try:
            with torch.no_grad():
                found = features(**{name: torch.from_numpy(array) for name, array in arrays.items()})
                found = getattr(found, "pooler_output", found)
                rows = [one.reshape(-1, one.shape[-1]).shape[0] for one in _list_tensors(found)]
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the code of a model raises
            self.first_error = self.first_error or _say(error)
            return None
        texts = next(iter(arrays.values())).shape[0]
        return sum(rows) // texts if rows and sum(rows) % texts == 0 and sum(rows) else None

    def _name_left_out(self, found: _Found) -> list[str]:
        """A note on the images or sounds that the class takes and the inputs do not have."""
        names = {entry.name for entry in found.inputs}
        media = [name for name in _MEDIA if name in self.parameters and name != "is_longer"]
        if "input_ids" not in names or not media or names & set(media):
            return []
        why = "" if self.first_error is None else f"; the first refusal was: {self.first_error}"
        return [f"derived with its text alone: no {' or '.join(media)} that goes with a text was found{why}"]

    def _find_accepted(self, part: Any) -> _Found | None:
        apart, together = {"text": "text_batch", "image": "image_batch"}, {"text": "batch", "image": "batch"}
        for batches in (apart, together) if self.task.startswith("zero-shot-image") else (together,):
            self.facts.batches = batches
            combined = (inputs for names in self._sets() for inputs in self._combine(names, _MOST_OF_A_SET))
            for inputs in itertools.islice(combined, _MOST_TRIALS):
                found = _Found(inputs, self._sizes(inputs))
                if self._accepts(part, found):
                    return found
        for names in itertools.islice(self._sets(), 4):  # some classes take a batch of one alone
            for chosen in self._combine(names, _MOST_OF_A_SET // 4):
                inputs = tuple(replace(entry, shape=(1, *entry.shape[1:])) for entry in chosen)
                found = _Found(inputs, self._sizes(inputs), ("batch is fixed at 1: the class takes no other",))
                if self._accepts(part, found):
                    return found
        return None

    def _accepts(self, part: Any, found: _Found, sizes: Mapping[str, int] | None = None) -> bool:
        """Whether the model runs on the inputs and gives tensors."""
        self.trials += 1
        try:
            outputs = run_part(part, found.inputs, sizes or found.sizes)
        except _Refused as error:
            self.first_error = self.first_error or str(error)
            return False
        if not outputs:
            self.first_error = self.first_error or "it gives no tensors"
        return bool(outputs)

    def _sizes(self, inputs: tuple[InputSection, ...]) -> dict[str, int]:
        axes = dict.fromkeys(axis for entry in inputs for axis in entry.shape if isinstance(axis, str))
        found = {axis: signature.SIZES.get(axis, 2) for axis in axes}
        longest = signature.longest(self.folder)
        if longest is not None and "sequence" in found:
            found["sequence"] = max(2, min(found["sequence"], longest))
        return found

    # Which axes

    def _open_axes(self, part: Any, found: _Found) -> _Found:
        """The inputs with those axes open that the model takes at another size too."""
        for axis, size in list(found.sizes.items()):
            if self._accepts(part, found, {**found.sizes, axis: max(1, size - 1)}):
                continue
            fixed = 1 if axis.endswith("batch") else size
            usual = signature.NPU_SIZES.get(axis, size)
            for candidate in dict.fromkeys((usual, fixed, size)):
                tried = _fix(found, axis, candidate)
                if self._accepts(part, tried):
                    note = f"axis {axis} is fixed at {candidate}: the class does not take it at {max(1, size - 1)}"
                    found = replace(tried, notes=(*found.notes, note))
                    break
        return found

    def _find_fixed_sizes(self, part: Any, found: _Found) -> dict[str, int]:
        """The sizes that a device with fixed shapes gets: the usual ones, or less where the model does not take them.

        How long a text may be is not always what the config seems to say: some count positions from another number.
        """
        section = ExportSection(task=self.task, inputs=found.inputs, sizes=dict(found.sizes))
        tried = resolve.npu_sizes(self.folder, section)
        while not self._accepts(part, found, tried):
            sample = found.sizes
            smaller = {
                axis: max(sample[axis], size // 2) if size > sample[axis] else size for axis, size in tried.items()
            }
            if smaller == tried:
                alone = {axis: 1 if axis.endswith("batch") else size for axis, size in sample.items()}
                return alone if self._accepts(part, found, alone) else dict(sample)
            tried = smaller
        return tried

    def _repeats(self, part: Any, found: _Found) -> bool:
        """Whether the model gives the same twice."""
        first, second = (run_part(part, found.inputs, found.sizes) for _ in range(2))
        return all(first[name].shape == second[name].shape and _close(first[name], second[name]) for name in first)

    # Parts

    def _split(self, found: _Found, fixed: Mapping[str, int]) -> tuple[list[DerivedPart], list[str], tuple[str, ...]]:
        """The parts of a model besides the whole, why there are none, and what the whole does without."""
        if self.task == "text-generation":
            return self._split_decoder(found)
        return *self._split_sides(found, fixed), ()

    def _split_decoder(self, found: _Found) -> tuple[list[DerivedPart], list[str], tuple[str, ...]]:
        """The decoder with its cache in one graph, for a class whose cache is keys and values."""
        import torch

        from winml.modelkit.building.export import caches
        from winml.modelkit.building.export.parts import WithPast

        words = next((entry for entry in found.inputs if entry.name == "input_ids"), None)
        if words is None or not {entry.name for entry in found.inputs} <= {"input_ids", "attention_mask"}:
            others = ", ".join(
                entry.name for entry in found.inputs if entry.name not in ("input_ids", "attention_mask")
            )
            return [], [], (f"{NO_CACHE}: it reads {others or 'no tokens'} with every step",)
        ids = np.random.default_rng(0).integers(int(words.low), int(words.high), (2, sum(caches.CHUNKS)), endpoint=True)
        try:
            layers = caches.find_cache(
                self.model, torch.from_numpy(ids), caches.count_dropped(self.model, self.folder.config)
            )
            decoder = self._describe_decoder(words, layers)
            run_part(WithPast(self.model), decoder.inputs, decoder.sizes)
        except (caches.OtherCache, _Refused) as error:
            return [], [], (f"{NO_CACHE}: {error}",)
        return [decoder], [], (f"{NO_CACHE}; the part `{DECODER}` has one (`--part {DECODER}`)",)

    def _describe_decoder(self, words: InputSection, layers: tuple[LayerCache, ...]) -> DerivedPart:
        from winml.modelkit.building.export import caches

        inputs = [
            replace(words, shape=("batch", "decoder_sequence"), placeholders=None),
            InputSection("attention_mask", "int64", ("batch", "total"), 0, 1, "padding"),
        ]
        if caches.takes_positions(self.model):
            inputs.append(InputSection("position_ids", "int64", ("batch", "decoder_sequence"), 0, 0, "positions"))
        for number, layer in enumerate(layers):
            for kind, (heads, size) in (("key", layer.key), ("value", layer.value)):
                name = f"past_key_values.{number}.{kind}"
                inputs.append(InputSection(name, "float32", ("batch", heads, "past", size)))
        sizes = {axis: signature.SIZES[axis] for axis in ("batch", "decoder_sequence", "total", "past")}
        note = f"its cache was derived: {caches.describe_cache(layers)}; a text in pieces gives the logits of the whole"
        window = caches.find_window(self.model)
        windows = (
            () if window is None else (f"layers that look back {window} tokens keep the whole text; a mask hides it",)
        )
        return DerivedPart(part=DECODER, inputs=tuple(inputs), sizes=sizes, fixed_sizes={}, notes=(note, *windows))

    def _split_sides(self, found: _Found, fixed: Mapping[str, int]) -> tuple[list[DerivedPart], list[str]]:
        """The encoder and decoder of a pair, or the two encoders of a dual one, and why there are none."""
        names = {entry.name for entry in found.inputs}
        pair = getattr(self.model.config, "is_encoder_decoder", False) and "decoder_input_ids" in names
        if pair and self.task in _GENERATING and hasattr(self.model, "get_encoder") and self.model.can_generate():
            try:
                return self._split_pair(found, fixed), []
            except _Refused as error:
                return [], [f"it is exported whole, because its parts do not run alone: {error}"]
        dual = {"pixel_values", "input_ids"} <= names and hasattr(self.model, "get_image_features")
        if dual and self.task == "zero-shot-image-classification" and hasattr(self.model, "get_text_features"):
            try:
                return self._split_dual(found), []
            except _Refused as error:
                return [], [f"it is exported whole, because its encoders do not run alone: {error}"]
        return [], []

    def _split_pair(self, found: _Found, fixed: Mapping[str, int]) -> list[DerivedPart]:
        from winml.modelkit.building.export.parts import Encoder, PairDecode, PairPrefill

        sizes = dict(found.sizes)
        source = tuple(entry for entry in found.inputs if not entry.name.startswith("decoder_"))
        encoder = DerivedPart(part="encoder", inputs=source, sizes=_select_used(source, sizes), fixed_sizes={})
        # Far enough apart: an encoder that merges frames gives as many vectors for 99 as for 100.
        other = {axis: max(1, size - 1 if axis.endswith("batch") else size * 3 // 4) for axis, size in sizes.items()}
        states = [run_part(Encoder(self.model), source, at)["last_hidden_state"].shape for at in (sizes, other)]
        state_axes = _name_axes(states, (sizes, other), _STATES)
        states_fixed: dict[str, int] = {}
        if _STATES in state_axes:
            sizes[_STATES], other[_STATES] = states[0][1], states[1][1]
            states_fixed = {_STATES: run_part(Encoder(self.model), source, fixed)["last_hidden_state"].shape[1]}
        words = next(entry for entry in found.inputs if entry.name == "decoder_input_ids")
        words = replace(words, name="input_ids")
        state = InputSection("encoder_hidden_states", "float32", state_axes)
        mask = [
            replace(entry, name="encoder_attention_mask")
            for entry in source
            if entry.name == "attention_mask" and entry.shape[-1] == state_axes[1]
        ]
        first = (words, state, *mask)
        prefill = DerivedPart(part="prefill", inputs=first, sizes=_select_used(first, sizes), fixed_sizes=states_fixed)
        made = [run_part(PairPrefill(self.model), first, at) for at in (sizes, other)]
        sizes["past"] = signature.SIZES["past"]
        caches = []
        for name in made[0]:
            if name.startswith("present_"):
                shapes = [one[name].shape for one in made]
                axes: list[int | str] = list(_name_axes(shapes, (sizes, other), "past"))
                if len(axes) != 4:
                    raise _Refused(f"its cache has {len(axes)} axes")
                axes[2] = "past" if "_decoder_" in name else axes[2]
                caches.append(InputSection(name.replace("present_", "past_", 1), "float32", tuple(axes)))
        following = (words, *mask, *self._find_filled(words, (*mask, *caches), sizes), *caches)
        sizes |= signature.total_size(following, sizes)
        run_part(PairDecode(self.model), following, sizes)
        return [
            encoder,
            prefill,
            DerivedPart(
                part="decode", inputs=following, sizes=_select_used(following, sizes), fixed_sizes=states_fixed
            ),
        ]

    def _find_filled(
        self, words: InputSection, others: tuple[InputSection, ...], sizes: Mapping[str, int]
    ) -> tuple[InputSection, ...]:
        """The inputs by which the decoder of a pair reads a cache of fixed length; none where it cannot."""
        from winml.modelkit.building.export.filled_cache import takes_filled_cache
        from winml.modelkit.building.export.parts import PairDecode

        batch, count = words.shape
        for takes_positions in (False, True):  # a class may take places that it does not use
            tried = tuple(signature.filled_cache_inputs(takes_positions=takes_positions, batch=batch, words=count))
            if takes_filled_cache(PairDecode(self.model), (words, *tried, *others), sizes):
                return tried
        return ()

    def _split_dual(self, found: _Found) -> list[DerivedPart]:
        from winml.modelkit.building.export.parts import ImageEncoder, TextEncoder

        parts = []
        for name, module, starts in (("image", ImageEncoder, "pixel_"), ("text", TextEncoder, "")):
            chosen = [e for e in found.inputs if e.name.startswith("pixel_") == bool(starts)]
            takes = inspect.signature(
                self.model.get_image_features if starts else self.model.get_text_features
            ).parameters
            inputs = tuple(_with_batch(entry) for entry in chosen if entry.name in takes)
            run_part(module(self.model), inputs, self._sizes(inputs))
            parts.append(DerivedPart(part=name, inputs=inputs, sizes=self._sizes(inputs), fixed_sizes={}))
        return parts

    def _describe(self, found: _Found) -> str:
        """Where the inputs come from, in a sentence."""
        from_processor, required = self._read_processor_names(), self._list_required()
        said = []
        for entry in found.inputs:
            source = "of forward" if entry.name in required else from_processor.get(entry.name, "usual in forward")
            said.append(f"{entry.name} ({source})")
        return f"inputs of {self.name}, which is in no table, were derived: {', '.join(said)}; PyTorch accepts them"


def run_part(part: Any, inputs: tuple[InputSection, ...], sizes: Mapping[str, int]) -> samples.Arrays:
    """The outputs of a part on a sample with these sizes."""
    from winml.modelkit.building.export.parts import evaluate_part

    section = ExportSection(task="", inputs=inputs)
    try:
        return evaluate_part(part, samples.make_samples(section, sizes, seed=0))
    except MemoryError:
        raise
    except Exception as error:  # whatever the code of a model raises
        raise _Refused(_say(error)) from error


def _say(error: Exception) -> str:
    """What an error says, in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:300]


def _list_tensors(value: Any) -> list[Any]:
    """The tensors of a value that is one, or holds several one after another."""
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    return [tensor for one in value for tensor in _list_tensors(one)] if isinstance(value, list | tuple) else []


def _close(one: npt.NDArray[Any], two: npt.NDArray[Any]) -> bool:
    return bool(np.allclose(one, two, rtol=1e-4, atol=1e-5, equal_nan=True))


def _fix(found: _Found, axis: str, size: int) -> _Found:
    inputs = tuple(
        replace(entry, shape=tuple(size if one == axis else one for one in entry.shape)) for entry in found.inputs
    )
    return _Found(inputs, {name: value for name, value in found.sizes.items() if name != axis}, found.notes)


def _select_used(inputs: tuple[InputSection, ...], sizes: Mapping[str, int]) -> dict[str, int]:
    axes = {axis for entry in inputs for axis in entry.shape if isinstance(axis, str)}
    return {axis: size for axis, size in sizes.items() if axis in axes}


def _with_batch(entry: InputSection) -> InputSection:
    return replace(entry, shape=("batch", *entry.shape[1:]))


def _name_axes(
    shapes: Sequence[tuple[int, ...]], sizes: Sequence[Mapping[str, int]], other: str
) -> tuple[int | str, ...]:
    """Names for the axes of a value, by how they change with the sizes of known axes; constant ones keep their size."""
    found: list[int | str] = []
    for place, (one, two) in enumerate(zip(*shapes, strict=True)):
        axes = [axis for axis in sizes[0] if (sizes[0][axis], sizes[1].get(axis)) == (one, two)]
        preferred = (
            "batch" if place == 0 and "batch" in axes else next((axis for axis in axes if axis != "batch"), None)
        )
        if one == two and (place == 0 or preferred is None or sizes[0][preferred] == sizes[1][preferred]):
            found.append(int(one))
        else:
            found.append(preferred or other)
    return tuple(found)

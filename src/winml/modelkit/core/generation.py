"""The folder of a model that generates text, as `genai_config.json` describes it.

The file is that of onnxruntime-genai, so that both programs open the same folder. It is data: provider options and
libraries that it names are never used, and its files stay below its folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError, ModelFileError
from winml.modelkit.core.inside import stays_inside
from winml.modelkit.core.json_text import read_object
from winml.modelkit.core.values import Names

GENAI_CONFIG = "genai_config.json"
TOKENIZER = "tokenizer.json"
INSTALL_GENAI = "`pip install 'winml-modelkit[genai]'`"
IN_PLACE_ATTENTION = "GroupQueryAttention"
"""The operator whose cache may be one buffer that every step writes into."""
_GENAI_PACKAGES = (
    "onnxruntime-genai",
    "onnxruntime-genai-cuda",
    "onnxruntime-genai-directml",
    "onnxruntime-genai-winml",
)
"""Distributions that bring onnxruntime-genai."""
_HINT = "`winml build -m MODEL -o DIR` makes such a folder"
_MAX_LENGTH = 2**24
_MAX_LAYERS = 4096
_IGNORED = ("provider_options", "custom_ops_library", "ep_context_file_path", "enable_profiling", "config_entries")
"""Settings of a session that run code, choose a device or write files: those are the user's to give."""
_IGNORED_OF_DECODER = ("sliding_window",)
"""A prompt is given at once here, not in windows."""
_LENGTHS = ("max_position_embeddings", "n_positions", "max_target_positions")
"""Names that configs of models have for the tokens of a text."""


@dataclass(frozen=True, kw_only=True)
class DecoderFolder:
    """A model with a cache of keys and values, and what is needed to run it step by step."""

    folder: Path
    file: str
    """The ONNX model, below the folder."""
    model_type: str
    context_length: int
    """Tokens of a prompt and its continuation together, at most."""
    layers: int
    heads: int | None
    """Heads of keys and values; null where only the graph says."""
    head_size: int | None
    past_names: tuple[str, str]
    """Inputs for keys and values, with `%d` for the layer."""
    present_names: tuple[str, str]
    takes_positions: bool = False
    in_place: bool = False
    """Whether the cache may be one buffer that every step writes into."""
    vocabulary: int | None = None
    hidden_size: int | None = None
    attention_heads: int | None = None
    first_token: int | None = None
    end_tokens: tuple[int, ...]
    padding_token: int
    ignored: Names = ()
    """Settings of the file that were not used."""

    @property
    def model(self) -> Path:
        return self.folder / self.file

    def past_pairs(self) -> list[tuple[str, str]]:
        """The cache: names of inputs, each with the output that follows it."""
        pairs = zip(self.past_names, self.present_names, strict=True)
        return [(past % n, present % n) for past, present in pairs for n in range(self.layers)]


def find_genai() -> tuple[str, str] | None:
    """The distribution that brings onnxruntime-genai and its version; None where there is none. Nothing is imported."""
    if find_spec("onnxruntime_genai") is None:
        return None
    for name in _GENAI_PACKAGES:
        try:
            return name, metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


def is_decoder_folder(path: Path) -> bool:
    """Whether a path is a folder with a model that generates text."""
    return (path / GENAI_CONFIG).is_file()


def read_decoder_folder(folder: Path) -> DecoderFolder:
    """What `genai_config.json` in a folder says; a ModelFileError where it says too little."""
    path = folder / GENAI_CONFIG
    try:
        value = read_object(path, lenient=True)
    except (OSError, DataError) as error:
        raise ModelFileError(f"`{folder}` is not a folder that generates text: {error}", hint=_HINT) from error
    try:
        return _read(folder, value)
    except (KeyError, TypeError, ValueError, OSError) as error:
        reason = f"`{error.args[0]}` is missing" if isinstance(error, KeyError) else str(error)
        raise ModelFileError(f"`{path}`: {reason}", hint=_HINT) from error


def make_genai_config(
    folder: DecoderFolder, *, file: str, session: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """The content of `genai_config.json` for a decoder; `file` is the name of its model there."""
    names = {"input_ids": "input_ids", "attention_mask": "attention_mask"}
    if folder.takes_positions:
        names["position_ids"] = "position_ids"
    sizes = {
        "head_size": folder.head_size,
        "hidden_size": folder.hidden_size,
        "num_attention_heads": folder.attention_heads,
        "num_key_value_heads": folder.heads,
        "num_hidden_layers": folder.layers,
    }
    tokens = {
        "bos_token_id": folder.first_token,
        "eos_token_id": list(folder.end_tokens),
        "pad_token_id": folder.padding_token,
        "vocab_size": folder.vocabulary,
    }
    decoder = {
        "session_options": {"provider_options": [], **session},
        "filename": file,
        "inputs": {**names, "past_key_names": folder.past_names[0], "past_value_names": folder.past_names[1]},
        "outputs": {
            "logits": "logits",
            "present_key_names": folder.present_names[0],
            "present_value_names": folder.present_names[1],
        },
        **_drop_unknown(sizes),
    }
    return {
        "model": {
            "type": folder.model_type,
            **_drop_unknown(tokens),
            "context_length": folder.context_length,
            "decoder": decoder,
        },
        "search": {
            "do_sample": False,
            "max_length": folder.context_length,
            "min_length": 0,
            "num_beams": 1,
            "past_present_share_buffer": folder.in_place,
        },
    }


def _drop_unknown(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def find_length(config: Mapping[str, Any]) -> int | None:
    """How many tokens the config of a model says that its decoder takes."""
    places = (config, config.get("decoder"), config.get("text_config"))
    found = (place.get(name) for place in places if isinstance(place, Mapping) for name in _LENGTHS)
    return next((size for size in found if isinstance(size, int) and size > 0), None)


def _read(folder: Path, value: Mapping[str, Any]) -> DecoderFolder:
    model = _object(value, "model")
    decoder = _object(model, "decoder")
    inputs, outputs = _object(decoder, "inputs"), _object(decoder, "outputs")
    if "encoder" in model or "vision" in model or "speech" in model or "pipeline" in decoder:
        raise ValueError("models of several parts are not read; this one has more than a decoder")
    for name in ("input_ids", "attention_mask", "position_ids"):
        if inputs.get(name, name) != name:
            raise ValueError(f"its input `{name}` has another name, which is not read")
    file = _text(decoder, "filename")
    if not stays_inside(file):
        raise ValueError(f"it names `{file}`, which is outside its folder")
    if not (folder / file).is_file():
        raise ValueError(f"it names `{file}`, which is not there")
    session, search = decoder.get("session_options", {}), value.get("search", {})
    return DecoderFolder(
        folder=folder,
        file=file,
        model_type=str(model.get("type", "unknown")),
        context_length=_whole(model, "context_length", _MAX_LENGTH),
        layers=_whole(decoder, "num_hidden_layers", _MAX_LAYERS),
        heads=_optional(decoder, "num_key_value_heads"),
        head_size=_optional(decoder, "head_size"),
        past_names=(_pattern(inputs, "past_key_names"), _pattern(inputs, "past_value_names")),
        present_names=(_pattern(outputs, "present_key_names"), _pattern(outputs, "present_value_names")),
        takes_positions="position_ids" in inputs,
        in_place=bool(search.get("past_present_share_buffer")) if isinstance(search, dict) else False,
        vocabulary=_optional(model, "vocab_size"),
        hidden_size=_optional(decoder, "hidden_size"),
        attention_heads=_optional(decoder, "num_attention_heads"),
        first_token=next(iter(_tokens(model.get("bos_token_id"))), None),
        end_tokens=_tokens(model.get("eos_token_id")),
        padding_token=(_tokens(model.get("pad_token_id")) or _tokens(model.get("eos_token_id")) or (0,))[0],
        ignored=(
            *(name for name in _IGNORED if isinstance(session, dict) and session.get(name)),
            *(name for name in _IGNORED_OF_DECODER if decoder.get(name)),
        ),
    )


def _object(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value[name]
    if not isinstance(found, dict):
        raise TypeError(f"`{name}` must be an object")
    return found


def _text(value: Mapping[str, Any], name: str) -> str:
    found = value[name]
    if not isinstance(found, str) or not found:
        raise TypeError(f"`{name}` must be a text")
    return found


def _pattern(value: Mapping[str, Any], name: str) -> str:
    """A name with one `%d` and no other sign of formatting."""
    found = _text(value, name)
    if found.count("%") != 1 or "%d" not in found:
        raise ValueError(f"`{name}` must have one `%d` for the layer but is `{found}`")
    return found


def _whole(value: Mapping[str, Any], name: str, most: int) -> int:
    found = value[name]
    if not isinstance(found, int) or isinstance(found, bool) or not 1 <= found <= most:
        raise ValueError(f"`{name}` must be a whole number from 1 to {most} but is {found!r:.40}")
    return found


def _optional(value: Mapping[str, Any], name: str) -> int | None:
    return None if value.get(name) is None else _whole(value, name, _MAX_LENGTH)


def _tokens(value: Any) -> tuple[int, ...]:
    found = value if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(token, int) and not isinstance(token, bool) and 0 <= token < 2**31 for token in found):
        raise ValueError(f"a token must be a whole number but is {value!r:.40}")
    return tuple(found)

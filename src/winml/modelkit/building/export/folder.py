"""What a model folder holds: config.json, headers of safetensors files, the sizes a processor gives.

Read without torch or transformers, whose import alone costs seconds.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from winml.modelkit.building.export import families
from winml.modelkit.building.export.families import Family
from winml.modelkit.building.export.weight_files import check_files, is_pointer, pointer_error
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError, ModelFileError, RequestError
from winml.modelkit.core.json_text import MAX_BYTES, parse_json
from winml.modelkit.core.model_ref import CONFIG
from winml.modelkit.core.values import read
from winml.modelkit.data.processor import read_object

_SAFETENSORS, _BIN = "*.safetensors", "pytorch_model*.bin"
_PLAIN_NAME = re.compile(r"[^/\\:\0]+\.(safetensors|bin)")
_MOST_ELEMENTS = 2**63
_LONGEST_EDGE = 2**16
_PROCESSOR_ENDINGS = (".json", ".txt", ".model", ".jinja", ".tiktoken")
POOLING = "1_Pooling/config.json"
"""How sentence-transformers combines tokens into one embedding."""
_NO_PROCESSOR = ("trainer_state.json", "training_args.json")
PLAIN_ATTENTION = "eager"
_ATTENTIONS = ("eager", "sdpa")
"""What transformers computes itself; other names load packages, or kernels from the hub."""
_ATTENTION_KEYS = ("attn_implementation", "_attn_implementation", "_attn_implementation_internal")
PROVES_A_PROBE = "`winml support probe` shows what a model of this kind would need"


@dataclass(frozen=True)
class Weights:
    """How many numbers the weights are, by type."""

    parameters: int | None
    """None when that is unknown without loading the files."""
    types: Mapping[str, int]
    bytes: int | None
    """None where they are not on this machine."""


@dataclass(frozen=True)
class _Config:
    """What is read of config.json here, by the types that save_pretrained writes."""

    model_type: str | None = None
    architectures: tuple[str, ...] | None = None
    auto_map: Mapping[str, str | tuple[str | None, ...] | None] | None = None
    text_config: Mapping[str, Any] | None = None
    vision_config: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class _Index:
    """Which file of weights holds a tensor."""

    weight_map: Mapping[str, str]


@dataclass(frozen=True)
class ModelFolder:
    """A folder with config.json."""

    path: Path

    @cached_property
    def config(self) -> dict[str, Any]:
        try:
            found = read_object(self.path / CONFIG)
        except FileNotFoundError as error:
            raise ModelFileError(
                f"`{self.path}` has no {CONFIG}", hint="a model folder is what `save_pretrained` writes"
            ) from error
        except DataError as error:
            if is_pointer(self.path / CONFIG):
                raise pointer_error(self.path / CONFIG) from error
            raise
        try:
            read(_Config, found, "config", strict=False)
        except RequestError as error:
            raise ModelFileError(
                f"`{self.path / CONFIG}`: {error.message}", hint="fetch it again; it may be damaged"
            ) from error
        return found

    @property
    def model_type(self) -> str | None:
        found = self.config.get("model_type")
        return found if isinstance(found, str) else None

    @property
    def architecture(self) -> str | None:
        """The class that saved the model."""
        named = self.config.get("architectures")
        return named[0] if named else None

    @property
    def family(self) -> Family | None:
        return families.FAMILIES.get(self.model_type or "")

    @property
    def foreign_attention(self) -> str | None:
        """The first attention that the config names, for itself or a part, which is not the library's own."""
        parts = [self.config, *(part for part in self.config.values() if isinstance(part, dict))]
        named = [part[key] for part in parts for key in _ATTENTION_KEYS if part.get(key) is not None]
        return next((str(name) for name in named if name not in _ATTENTIONS), None)

    @property
    def remote_code(self) -> Mapping[str, Any]:
        """Classes that come with the model as code; empty when the library has all of them."""
        return self.config.get("auto_map") or {}

    def require_family(self) -> Family:
        """The family; an error names the nearest that is known."""
        if self.family is not None:
            return self.family
        self.require_type()
        raise ModelFileError(
            f"architecture `{self.model_type}` is not supported",
            hint="`winml catalog` lists the supported ones; name its inputs with `--input-specs` and its task with "
            f"`--task`, or see what it needs: {PROVES_A_PROBE}",
        )

    def require_type(self) -> None:
        if self.model_type is None:
            raise ModelFileError(
                f"`{self.path / CONFIG}` has no `model_type`", hint="it is not the config of a Hugging Face model"
            )

    def value(self, *names: str) -> Any:
        """The first of these keys that the config has, also in the part for text or for the decoder."""
        places = [self.config, *(self.config.get(part) for part in ("text_config", "decoder", "vision_config"))]
        for place in places:
            for name in names:
                if isinstance(place, dict) and place.get(name) is not None:
                    return place[name]
        return None

    def whole(self, *names: str, otherwise: int | None = None) -> int:
        """A number of the config; without `otherwise` it is required."""
        found = self.value(*names)
        if isinstance(found, int):
            return found
        if otherwise is None:
            raise ModelFileError(f"`{self.path / CONFIG}` has no `{names[0]}`")
        return otherwise

    @cached_property
    def weight_files(self) -> tuple[Path, ...]:
        """The files with weights; the format that is safe to open comes first."""
        for index in sorted(self.path.glob("*.index.json")):
            _check_index(index)
        for pattern in (_SAFETENSORS, _BIN):
            found = tuple(sorted(path for path in self.path.glob(pattern) if path.is_file()))
            if found:
                return found
        return ()

    def require_weights(self) -> tuple[Path, ...]:
        if self.weight_files:
            check_files(self.weight_files, self._indexed_files())
            return self.weight_files
        others = sorted(path.name for path in self.path.glob("*") if path.suffix in (".h5", ".msgpack", ".gguf"))
        also = f"; {', '.join(others)} cannot be read here" if others else ""
        raise ModelFileError(
            f"`{self.path}` has no weights{also}",
            hint="a model folder holds model.safetensors; fetch the whole model, or `git lfs pull` it",
        )

    def _indexed_files(self) -> set[str]:
        """The files that the index of the weights names, where there is one for their format."""
        suffix = self.weight_files[0].suffix
        named: set[str] = set()
        for index in self.path.glob("*.index.json"):
            named |= {name for name in read_object(index)["weight_map"].values() if name.endswith(suffix)}
        return named

    def content_files(self, *, code: bool) -> dict[str, Path]:
        """The files that an export depends on, by name."""
        named = [CONFIG, "generation_config.json"]
        found = [self.path / name for name in named if (self.path / name).is_file()]
        found += [*self.require_weights(), *self.path.glob("*.index.json")]
        found += sorted(self.path.rglob("*.py")) if code else []
        return {path.relative_to(self.path).as_posix(): path for path in found}

    def processor_files(self) -> dict[str, Path]:
        """The small files that define how inputs are made and outputs are named; every artifact includes them."""
        found = {
            path.name: path
            for path in sorted(self.path.iterdir())
            if path.is_file()
            and path.name.endswith(_PROCESSOR_ENDINGS)
            and path.name not in _NO_PROCESSOR
            and not path.name.endswith(".index.json")
        }
        pooling = self.path / POOLING
        return {**found, POOLING: pooling} if pooling.is_file() else found

    def weights(self) -> Weights:
        """What the headers of the weight files hold."""
        files = self.require_weights()
        size = sum(path.stat().st_size for path in files)
        if files[0].suffix != ".safetensors":
            return Weights(None, {}, size)
        types: dict[str, int] = {}
        for path in files:
            for kind, count in _header(path):
                types[kind] = types.get(kind, 0) + count
        return Weights(sum(types.values()), types, size)

    def image_size(self) -> tuple[int, int]:
        """Height and width that the processor gives, or that the config names."""
        named = self.processor_image_size()
        if named is not None:
            return named
        parts = (self.config.get("vision_config"), self.config.get("encoder"))
        vision = next((part for part in parts if isinstance(part, dict) and part), self.config)
        return self._size(vision.get("image_size"), CONFIG) or (224, 224)

    def processor_image_size(self) -> tuple[int, int] | None:
        """Height and width that the processor gives; None without one, and where they depend on the image."""
        for name in ("preprocessor_config.json", "processor_config.json"):
            if (self.path / name).is_file():
                value = read_object(self.path / name)
                inner = value.get("image_processor", value)
                value = inner if isinstance(inner, dict) else value
                found = self._size(value.get("crop_size") if value.get("do_center_crop") else None, name)
                found = found or self._size(value.get("size"), name)
                if found:
                    return found
        return None

    def _size(self, value: Any, name: str) -> tuple[int, int] | None:
        found = _size(value)
        if found is not None and not all(type(edge) is int and 0 < edge <= _LONGEST_EDGE for edge in found):
            raise ModelFileError(f"`{self.path / name}` has an invalid image size: {value!r:.80}")
        return found


def _check_index(path: Path) -> None:
    """Raise when an index names weights that are not beside it: the library would open whatever it names."""
    value = read_object(path)
    try:
        index = read(_Index, value, "index", strict=False)
    except RequestError as error:
        raise ModelFileError(f"`{path}`: {error.message}", hint="fetch it again; it may be damaged") from error
    for name in index.weight_map.values():
        if not _PLAIN_NAME.fullmatch(name):
            raise ModelFileError(
                f"`{path}` names `{name}`, which is not a weights file beside it",
                hint="the weights of a model must be in its folder; do not use a model that names other files",
            )


def _size(value: Any) -> tuple[Any, Any] | None:
    """A size as processors and configs write it; None for one that depends on the image."""
    if isinstance(value, int):
        return value, value
    if isinstance(value, list) and len(value) == 2:
        return value[0], value[1]
    if isinstance(value, dict) and {"height", "width"} <= set(value):
        return value["height"], value["width"]
    return _size(value["shortest_edge"]) if isinstance(value, dict) and set(value) == {"shortest_edge"} else None


def _header(path: Path) -> list[tuple[str, int]]:
    """Type and number of elements of every tensor in a safetensors file."""
    try:
        with path.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > MAX_BYTES:
                raise ValueError("its header is too large")
            header = parse_json(stream.read(length), lenient=True)
        return [
            (str(tensor["dtype"]), _count(tensor["shape"])) for name, tensor in header.items() if name != "__metadata__"
        ]
    except (struct.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelFileError(
            f"`{path}` is not a safetensors file: {error}", hint="fetch it again; it may be a Git LFS pointer"
        ) from error


def _count(shape: Any) -> int:
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError("a shape is a list of sizes")
    count = math.prod(shape)
    if count >= _MOST_ELEMENTS:
        raise ValueError("a tensor is too large")
    return count

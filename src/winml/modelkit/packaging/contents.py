"""The files of a package: models with what they name, each content once, and what a model takes and gives."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import ModelFileError
from winml.modelkit.core.json_text import JSONError, parse_json
from winml.modelkit.graph import files, walk
from winml.modelkit.graph.sizes import INPUTS_KEY
from winml.modelkit.packaging.manifest import Port
from winml.modelkit.store import digest

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto

FOLDER = "models"
_BATCH = "batch"
_TYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string", 9: "bool",
    10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 16: "bfloat16",
}  # fmt: skip
_SHORT = 16


@dataclass(frozen=True, kw_only=True)
class PackedModel:
    """A model as it goes into a package: bytes that are written, and files that are copied."""

    name: str
    raw: bytes
    beside: Mapping[str, Path]
    """Files that it names, by their name in the package."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *sorted(self.beside))


def pack_model(path: Path, name: str) -> PackedModel:
    """A model with its files under names made from their content, so that two models share what is equal.

    A model with nothing beside it is taken byte by byte. In one with external data or context binaries only their names
    change: with the names put back it is compared with the original.
    """
    model = files.load(path, weights=False)
    beside = files.external_files(path, model)
    if not beside:
        return PackedModel(name=f"{FOLDER}/{name}.onnx", raw=path.read_bytes(), beside={})
    places = {file.relative_to(path.parent).as_posix(): file for file in beside}
    named = {old: _content_name(file) for old, file in places.items()}
    original = model.SerializeToString(deterministic=True)
    _rename(model, named)
    raw = model.SerializeToString(deterministic=True)
    _rename(model, {new: old for old, new in named.items()})
    if len(set(named.values())) == len(named) and model.SerializeToString(deterministic=True) != original:
        raise ModelFileError(f"`{path}` names its files in a way that cannot be packaged")
    return PackedModel(
        name=f"{FOLDER}/{name}.onnx",
        raw=raw,
        beside={f"{FOLDER}/{named[old]}": file for old, file in places.items()},
    )


def _content_name(file: Path) -> str:
    return f"{digest.of_file(file).removeprefix(digest.PREFIX)[:_SHORT]}{'.bin' if file.suffix == '.bin' else '.data'}"


def _rename(model: ModelProto, names: Mapping[str, str]) -> None:
    for tensor in walk.tensors(model):
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = names[Path(entry.value).as_posix()]
    for node in walk.nodes(model):
        if node.op_type == "EPContext" and walk.attribute_value(node, "embed_mode", 1) == 0:
            for attribute in node.attribute:
                old = attribute.s.decode("utf-8", "replace") if attribute.name == "ep_cache_context" else ""
                if old in names:
                    attribute.s = names[old].encode()


def read_ports(path: Path) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
    """Inputs and outputs of a model, with a shape each input can be tried with where all its sizes are known."""
    model = files.load(path, weights=False)
    sizes, ranges = _known_inputs(model)
    weights = {one.name for one in model.graph.initializer}
    inputs = [one for one in model.graph.input if one.name not in weights]
    return (
        tuple(_port(one, sizes, ranges) for one in inputs),
        tuple(_port(one, {}, {}) for one in model.graph.output),
    )


def _known_inputs(model: ModelProto) -> tuple[dict[str, int], dict[str, Sequence[int]]]:
    text = next((entry.value for entry in model.metadata_props if entry.key == INPUTS_KEY), None)
    try:
        value = {} if text is None else parse_json(text)
        sizes = {str(k): int(v) for k, v in value.get("sizes", {}).items()}
        ranges = {str(k): [int(end) for end in v] for k, v in value.get("ranges", {}).items()}
    except (JSONError, AttributeError, TypeError, ValueError):
        return {}, {}  # metadata of others: what is not known is left open
    return sizes, {k: v for k, v in ranges.items() if len(v) == 2}


def _port(one: ValueInfoProto, sizes: Mapping[str, int], ranges: Mapping[str, Sequence[int]]) -> Port:
    tensor = one.type.tensor_type
    shape: list[int | str] = []
    for position, dim in enumerate(tensor.shape.dim):
        shape.append(dim.dim_value if dim.HasField("dim_value") else dim.dim_param or f"{one.name}[{position}]")
    tried = [_size(dim, position, sizes) for position, dim in enumerate(shape)]
    whole = _TYPES.get(tensor.elem_type, f"type {tensor.elem_type}")
    known = tuple(size for size in tried if size is not None)
    return Port(
        name=one.name,
        type=whole,
        shape=tuple(shape),
        size=known if len(known) == len(tried) else None,
        below=ranges[one.name][1] + 1 if one.name in ranges else None,
    )


def _size(dim: int | str, position: int, sizes: Mapping[str, int]) -> int | None:
    if isinstance(dim, int):
        return dim
    return sizes.get(dim, 1 if _BATCH in dim.lower() or position == 0 else None)


def describe_ports(ports: Sequence[Port]) -> str:
    """Names and types in a form that can be compared."""
    return json.dumps([[port.name, port.type] for port in ports])

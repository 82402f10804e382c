"""Worker operation: everything that is known about a model file without running it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onnx import ModelProto

from winml.modelkit.core.errors import RequestError
from winml.modelkit.graph import files
from winml.modelkit.graph.description import ModelDescription, ModelFile
from winml.modelkit.graph.facts import facts
from winml.modelkit.graph.fingerprint import fingerprint
from winml.modelkit.graph.implied import infer_sizes
from winml.modelkit.graph.macs import simple_inputs
from winml.modelkit.graph.sizes import is_batch, match_sizes, metadata_sizes, open_dims

FINGERPRINT_LIMIT_BYTES = 2 * 2**30
"""External data past this size is read for the fingerprint only when requested."""


def describe(args: dict[str, Any], context: object) -> ModelDescription:
    """The model file `args["path"]`.

    `dims` gives sizes of dynamic axes, `fingerprint` true forces and false skips the fingerprint.
    """
    path = Path(_path(args))
    model = files.load(path, weights=False)
    known = facts(model, path, dims=_sizes(model, path, _dims(args) or {}))
    belonging = files.external_files(path, model)
    sizes = [(file, file.stat().st_size) for file in (path, *belonging)]
    reason = _reason_against(args.get("fingerprint"), external_bytes=sum(size for _, size in sizes[1:]))
    if files.context_files(path, model):
        reason = "the compiled part is in a file of its own, which the graph does not cover"
    whole = files.load(path) if known.external_data and reason is None else model
    return ModelDescription(
        facts=known,
        files=tuple(ModelFile(path=str(file), bytes=size) for file, size in sizes),
        fingerprint=fingerprint(whole) if reason is None else None,
        fingerprint_reason=reason,
    )


def _path(args: dict[str, Any]) -> str:
    path = args.get("path")
    if not isinstance(path, str) or not path:
        raise RequestError(f"`path` must be the path of a model file but got {path!r}")
    return path


def _dims(args: dict[str, Any]) -> dict[str, int] | None:
    dims = args.get("dims")
    if dims is None:
        return None
    if not isinstance(dims, dict) or not all(type(size) is int for size in dims.values()):
        raise RequestError(f"`dims` must map axis names to whole numbers but got {dims!r}")
    return dims


def _sizes(model: ModelProto, path: Path, given: Mapping[str, int]) -> dict[str, int]:
    """Sizes of open dimensions: as given, as the file says it was made for, as the graph fixes them."""
    inputs = simple_inputs(model)
    sizes = match_sizes(inputs, given)
    missing = {name for name, places in open_dims(inputs).items() if not is_batch(name, places)} - set(sizes)
    if not missing:
        return sizes
    found = {name: size.size for name, size in infer_sizes(model, path).items()}
    found |= metadata_sizes({entry.key: entry.value for entry in model.metadata_props})
    return {**{name: found[name] for name in missing if name in found}, **sizes}


def _reason_against(wanted: bool | None, *, external_bytes: int) -> str | None:
    """Why there is no fingerprint, or None when there is one."""
    if wanted is False:
        return "not requested"
    if wanted is None and external_bytes > FINGERPRINT_LIMIT_BYTES:
        return f"the external data has {external_bytes:,} bytes, more than {FINGERPRINT_LIMIT_BYTES:,}"
    return None

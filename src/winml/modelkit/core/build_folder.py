"""What the files of a build folder are called, and which model they were made from."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import ModelFileError, RequestError
from winml.modelkit.core.inside import stays_inside
from winml.modelkit.core.json_text import read_json
from winml.modelkit.core.values import AtLeast, Digest, read

MODEL = "model.onnx"
CONFIG = "build_config.json"
MANIFEST = "build_manifest.json"
ANALYSIS = "analyze_result.json"
EXPORT = "export_metadata.json"
PACKAGE = "package.json"
"""The manifest of a package for applications (`packaging/manifest.py`)."""
PARTS = "parts.json"
"""What the parts of a composite model are, and how they run together."""

_BUILDS_OF_BUILDS = 8


@dataclass(frozen=True, kw_only=True)
class PartEntry:
    """A part of a composite model: a build folder and the model in it."""

    folder: str
    file: str
    digest: Digest
    sizes: Mapping[str, Annotated[int, AtLeast(1)]] = field(default_factory=dict)
    """Sizes of open dimensions that it is used with."""
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Least and greatest whole number that an input takes."""


@dataclass(frozen=True, kw_only=True)
class PartsFile:
    """What the parts of a composite model are, for running them together."""

    schema: Literal["winml/parts/1"] = "winml/parts/1"
    model: str
    target: str
    parts: Mapping[str, PartEntry]


def kind_of_parts(parts: Collection[str]) -> Literal["decoder", "pair"] | None:
    """What parts of these names generate text as: a decoder, or an encoder with a decoder; None where they do not."""
    if not {"prefill", "decode"} <= set(parts):
        return None
    return "pair" if "encoder" in parts else "decoder"


def load_parts(folder: Path) -> PartsFile:
    """What the folder of a composite model says of its parts, all of which are inside it."""
    try:
        value = read_json(folder / PARTS)
    except (OSError, ValueError) as error:
        raise ModelFileError(
            f"`{folder}` is not a composite model: {error}", hint="`winml build -m MODEL -o DIR` creates one"
        ) from error
    try:
        found = read(PartsFile, value, strict=False)
    except RequestError as error:
        raise ModelFileError(f"`{folder / PARTS}`: {error.message}", hint="build the model again") from error
    for name in (name for entry in found.parts.values() for name in (entry.folder, entry.file)):
        if not stays_inside(name):
            raise ModelFileError(f"`{folder / PARTS}` names `{name}`, which is outside its folder")
    return found


def source_name(folder: Path) -> str | None:
    """The name of the model that a build folder was made from: an id of a hub, or the stem of its file.

    None for a folder that is no build. A build of a build is called as the first one's source is.
    """
    name: str | None = None
    for _ in range(_BUILDS_OF_BUILDS):
        source = _source(folder)
        if source is None:
            return name
        path = Path(source)
        is_file = path.suffix.lower() == ".onnx"
        name = path.stem if is_file else path.name if path.is_absolute() else source
        if path.name != MODEL:
            return name
        folder = path.parent
    return name


def _source(folder: Path) -> str | None:
    """Where the model of a build came from, as its manifest says; ValueError when the manifest does not say."""
    for file, keys in ((MANIFEST, ("source", "path")), (PARTS, ("model",))):
        try:
            value: Any = read_json(folder / file)
            for key in keys:
                value = value[key]
        except OSError:
            continue
        except (KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"`{folder / file}` does not name its source") from error
        return str(value)
    return None

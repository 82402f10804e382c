"""Which family of architectures a model is of: what documents beside it say, and what its graph looks like."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

from winml.modelkit.core.build_folder import EXPORT, MANIFEST
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.json_text import read_json
from winml.modelkit.core.values import Names, Text
from winml.modelkit.graph.description import RepeatedBlock
from winml.modelkit.knowledge import catalog, files

BLOCKS = Path(__file__).with_name("blocks.json")
LEAST_SHARE = 0.4
"""A block that is less of its network does not tell what it is."""
_CONFIG = "config.json"
_BUILDS_OF_BUILDS = 8
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,79}")

FamilySource = Literal["config", "export", "graph", "unknown"]


@dataclass(frozen=True, kw_only=True)
class FamilyBlock:
    """A block, and the families of the catalog that repeat it."""

    marks: Text
    kinds: str
    families: Names


@dataclass(frozen=True, kw_only=True)
class BlocksFile:
    """All blocks; written by `scripts/make_blocks.py`."""

    schema: Literal["winml/blocks-file/1"] = "winml/blocks-file/1"
    blocks: tuple[FamilyBlock, ...]


@dataclass(frozen=True, kw_only=True)
class ModelFamily:
    """The families that a model may be of."""

    names: tuple[str, ...] = ()
    """`model_type` of transformers; several where their graphs look alike, none where it is unknown."""
    source: FamilySource = "unknown"
    """What says so: config.json, the record of an export, or the graph."""
    reason: str

    @property
    def known(self) -> str | None:
        """The family, where it is one."""
        return self.names[0] if len(self.names) == 1 else None


UNKNOWN = ModelFamily(reason="no document names the model's family and its graph is like none of the catalog's")


@cache
def load_blocks(path: Path = BLOCKS) -> tuple[FamilyBlock, ...]:
    """The blocks of the families of the catalog."""
    return files.load(path, BlocksFile).blocks


def find_family(
    folders: Iterable[Path], block: RepeatedBlock | None, blocks: Iterable[FamilyBlock] | None = None
) -> ModelFamily:
    """The family of a model that lies in the first of some folders; a build names the folder it was made from.

    What a document says stands unless the graph repeats the block of other families and not one of that family's own.
    """
    known = load_blocks() if blocks is None else tuple(blocks)
    seen = _recognise(block, known)
    for folder in folders:
        for place in _sources(folder):
            said = _read_folder(place)
            if said is None:
                continue
            (name,) = said.names
            if seen.names and name not in seen.names and any(name in one.families for one in known):
                reason = f"{said.reason}, but {seen.reason}"
                return ModelFamily(reason=reason)
            return said
    return seen


def _recognise(block: RepeatedBlock | None, known: Iterable[FamilyBlock]) -> ModelFamily:
    """The families whose graphs repeat the same block."""
    if block is None or block.share < LEAST_SHARE:
        return UNKNOWN
    found = {name for one in known if (one.marks, one.kinds) == (block.marks, block.kinds) for name in one.families}
    if not found:
        return UNKNOWN
    names = tuple(sorted(found))
    return ModelFamily(names=names, source="graph", reason=f"its graph repeats the block of {', '.join(names)}")


def _sources(folder: Path) -> Iterator[Path]:
    """A folder, and those that its model was built from."""
    for _ in range(_BUILDS_OF_BUILDS):
        yield folder
        source = _field(folder / MANIFEST, "source", "path")
        if source is None:
            return
        path = Path(source)
        folder = path.parent if path.suffix.lower() == ".onnx" else path
        if not path.is_absolute() or not folder.is_dir():
            return


def _read_folder(folder: Path) -> ModelFamily | None:
    """The family that the config of transformers or the record of an export in a folder names."""
    name = _field(folder / _CONFIG, "model_type")
    if name is not None:
        return ModelFamily(names=(name,), source="config", reason=f"its {_CONFIG} says `{name}`")
    architecture = _field(folder / EXPORT, "architecture")
    name = None if architecture is None else _family_of(architecture)
    if name is None:
        return None
    return ModelFamily(names=(name,), source="export", reason=f"it was exported from the class `{architecture}`")


@cache
def _family_of(architecture: str) -> str | None:
    """The family of a class of transformers: the one with the longest common name of its classes."""
    found = {one.model: one.name for one in catalog.load_architectures().architectures if one.model is not None}
    if architecture in found:
        return found[architecture]
    stem = architecture.partition("For")[0].removesuffix("Model").lower()
    stems = {model.partition("For")[0].removesuffix("Model").lower(): name for model, name in found.items()}
    return stems.get(stem)


def _field(path: Path, *keys: str) -> str | None:
    """A name or a path in a JSON file; None where it is not there. Documents are data: a broken one says nothing."""
    try:
        value: Any = read_json(path) if path.is_file() else None
    except (OSError, ValueError, RecursionError):
        return None
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    if not isinstance(value, str) or not value:
        return None
    return value if keys[-1] == "path" or _NAME.fullmatch(value) else None

"""`build_manifest.json`: where the files of a build folder come from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from winml.modelkit.building.pipeline.artifact import Artifact
from winml.modelkit.building.proof.proof import Proof
from winml.modelkit.building.result import Fallback, FilesBy
from winml.modelkit.core import values
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.json_text import read_json
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import Digest, key
from winml.modelkit.store.stage_cache import CacheAnswer

SCHEMA: Literal["winml/build-manifest/1"] = "winml/build-manifest/1"


@dataclass(frozen=True, kw_only=True)
class BuildSource:
    """The model that a build started from."""

    path: str
    artifact: Artifact = key(inline=True)


@dataclass(frozen=True, kw_only=True)
class ManifestArtifact:
    """The model of the folder."""

    file: str
    digest: Digest


@dataclass(frozen=True, kw_only=True)
class StageRecord:
    """A stage with everything its result depends on."""

    stage: str
    cache: CacheAnswer
    reason: str
    stage_key: Digest = key("key")
    parent: Digest
    artifact: Artifact = key(inline=True)
    seconds: float
    version: int
    libraries: Mapping[str, str]
    calibration: Digest | None
    report: Mapping[str, Any]
    """The report of the stage, in a form of its own."""


@dataclass(frozen=True, kw_only=True)
class BuildManifest:
    """What a build folder holds and how that was made."""

    schema: Literal["winml/build-manifest/1"] = SCHEMA
    winml: str
    identity: Digest
    """The digest of the whole config and of the model's content."""
    target: Target = key(inline=True)
    precision: str
    source: BuildSource
    artifact: ManifestArtifact
    stages: tuple[StageRecord, ...]
    skipped: tuple[str, ...]
    calibration: DataSection | None
    placement: Mapping[str, int | str] | None
    """Where the nodes of the analyzed model went."""
    seconds: float
    files_by: FilesBy
    folder: tuple[str, ...]
    """The files of the folder besides this one."""
    objects: Mapping[str, Digest]
    """Those among them that are in the cache."""
    proof: Proof | None = None
    fallbacks: tuple[Fallback, ...] = ()
    warnings: tuple[str, ...]


def load_manifest(file: Path) -> BuildManifest | None:
    """The manifest in a file; None where there is none of ours, and an error where it is damaged."""
    try:
        value = read_json(file)
    except (OSError, ValueError):
        return None
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        return None
    return values.read(BuildManifest, value, strict=False, error=DataError)

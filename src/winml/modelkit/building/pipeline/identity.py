"""What a build is known by: the content of its model and its whole config, the session section included."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from winml.modelkit.building.manifest import BuildManifest, load_manifest
from winml.modelkit.core.errors import DataError
from winml.modelkit.store import digest


def identity_of(config: Mapping[str, Any], source_digest: str) -> str:
    """The digest of a config as JSON, with the contents of model and data in place of their paths."""
    value = {**config, "model": source_digest}
    quantize = value.get("quantize")
    if quantize is not None:
        data = quantize["calibration"]
        value["quantize"] = {**quantize, "calibration": None if data is None else data["digest"]}
    return digest.of_json(value)


def find_changed_file(manifest: Path) -> str | None:
    """A file of a build that is used with its model and is not the one that was built; None where none is known.

    All of them are hashed every time: 100 MB take less than a tenth of a second, opening them takes longer.
    """
    try:
        stated = load_manifest(manifest)
    except DataError:
        return manifest.name
    if stated is None:
        return None
    for name, built in _find_used_files(stated).items():
        file = manifest.parent / name
        outside = ".." in Path(name).parts or Path(name).is_absolute()
        if outside or (file.is_file() and digest.of_file(file) != built):
            return name
    return None


def _find_used_files(stated: BuildManifest) -> dict[str, str]:
    """Digests of the model, of what it names and of what makes its inputs; without what earlier stages left."""
    unused: set[str] = set()
    if stated.stages:
        last = stated.stages[-1].artifact
        before = {name for stage in stated.stages[:-1] for name in stage.artifact.files}
        unused = before - set(last.files) | {last.main}
    return {name: built for name, built in stated.objects.items() if name not in unused}


def matches(manifest: Path, config: Mapping[str, Any]) -> bool | None:
    """Whether a config, as JSON, is the one that a build was made with; None where there is no manifest."""
    try:
        stated = load_manifest(manifest)
        return None if stated is None else identity_of(config, stated.source.artifact.digest) == stated.identity
    except (DataError, KeyError, TypeError, ValueError):
        return False

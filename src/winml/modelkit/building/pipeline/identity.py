"""What a build is known by: the content of its model and its whole config, the session section included."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from winml.modelkit.core.json_text import read_json
from winml.modelkit.store import digest

MANIFEST_SCHEMA = "winml/build-manifest/1"


def identity_of(config: Mapping[str, Any], source_digest: str) -> str:
    """The digest of a config as JSON, with the contents of model and data in place of where they lie."""
    value = {**config, "model": source_digest}
    quantize = value.get("quantize")
    if quantize is not None:
        data = quantize["calibration"]
        value["quantize"] = {**quantize, "calibration": None if data is None else data["digest"]}
    return digest.of_json(value)


def _stated(manifest: Path) -> dict[str, Any] | None:
    """What a manifest states; None where there is none that can be read."""
    try:
        stated = read_json(manifest)
    except (OSError, ValueError):
        return None
    return stated if isinstance(stated, dict) and stated.get("schema") == MANIFEST_SCHEMA else None


def changed_file(manifest: Path) -> str | None:
    """A file of a build that is used with its model and is not the one that was built; None where none is known.

    All of them are hashed every time: 100 MB take less than a tenth of a second, opening them takes longer.
    """
    stated = _stated(manifest)
    if stated is None:
        return None
    try:
        for name, built in _used_files(stated).items():
            file = manifest.parent / name
            outside = ".." in Path(name).parts or Path(name).is_absolute()
            if outside or (file.is_file() and digest.of_file(file) != built):
                return name
    except (AttributeError, KeyError, TypeError):
        return manifest.name
    return None


def _used_files(stated: Mapping[str, Any]) -> dict[str, str]:
    """Digests of the model, of what it names and of what makes its inputs; without what earlier stages left."""
    stages = stated["stages"]
    last = stages[-1] if stages else {"file": "", "files": {}}
    unused = {name for stage in stages[:-1] for name in stage["files"]} - set(last["files"]) | {last["file"]}
    return {name: built for name, built in stated["objects"].items() if name not in unused}


def matches(manifest: Path, config: Mapping[str, Any]) -> bool | None:
    """Whether a config, as JSON, is the one that a build was made with; None where no manifest can tell."""
    stated = _stated(manifest)
    if stated is None:
        return None
    try:
        return bool(identity_of(config, stated["source"]["digest"]) == stated["identity"])
    except (KeyError, TypeError, ValueError):
        return False

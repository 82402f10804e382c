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


def matches(manifest: Path, config: Mapping[str, Any]) -> bool | None:
    """Whether a config, as JSON, is the one that a build was made with; None where no manifest can tell."""
    try:
        stated = read_json(manifest)
    except (OSError, ValueError):
        return None
    if not isinstance(stated, dict) or stated.get("schema") != MANIFEST_SCHEMA:
        return None
    try:
        return bool(identity_of(config, stated["source"]["digest"]) == stated["identity"])
    except (KeyError, TypeError, ValueError):
        return False

"""The folder that says how a model's inputs are made: tokenizer, image processor, names of its classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from winml.modelkit.core import json_text
from winml.modelkit.core.errors import DataError

PREPROCESSOR, WHOLE = "preprocessor_config.json", "processor_config.json"
"""Where an image processor or a feature extractor is written: alone, or with the tokenizer's settings in one file."""
IMAGES, SOUND = "image_processor", "feature_extractor"
"""Parts of such a file."""
_ONNX = "onnx"
"""Folder that published models keep their ONNX files in, below the one with the tokenizer."""


def find(folder: Path | None, name: str) -> Path | None:
    """A file of the folder, or of the one above when the folder is the `onnx` part of a published model.

    For a preprocessor_config.json that is missing, the processor_config.json that holds it.
    """
    if folder is None:
        return None
    places = (folder, folder.parent) if folder.name == _ONNX else (folder,)
    found = next((place / name for place in places if (place / name).is_file()), None)
    if found is None and name == PREPROCESSOR:
        whole = find(folder, WHOLE)
        return whole if whole is not None and {IMAGES, SOUND} & set(read_object(whole)) else None
    return found


def read_part(path: Path, part: str) -> dict[str, Any]:
    """The settings of an image processor or a feature extractor in a file that `find` found."""
    settings = read_object(path)
    if path.name != WHOLE:
        return settings
    found = settings.get(part)
    if not isinstance(found, dict):
        raise DataError(f"`{path}` has no `{part}`")
    return found


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file."""
    return json_text.read_object(path, lenient=True)

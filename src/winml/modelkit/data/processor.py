"""The folder that says how a model's inputs are made: tokenizer, image processor, names of its classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from winml.modelkit.core import json_text

_ONNX = "onnx"
"""Folder that published models keep their ONNX files in, below the one with the tokenizer."""


def find(folder: Path | None, name: str) -> Path | None:
    """A file of the folder, or of the one above when the folder is the `onnx` part of a published model."""
    if folder is None:
        return None
    places = (folder, folder.parent) if folder.name == _ONNX else (folder,)
    return next((place / name for place in places if (place / name).is_file()), None)


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file."""
    return json_text.read_object(path, lenient=True)

"""Checks of a model path that need nothing but the file system."""

from __future__ import annotations

import os
from pathlib import Path

from winml.modelkit.core.build_folder import PARTS
from winml.modelkit.core.errors import ModelFileError, UnavailableError
from winml.modelkit.core.json_text import read_json
from winml.modelkit.core.suggest import near_path


def require_model_file(path: str | os.PathLike[str]) -> Path:
    """The absolute path of a readable, non-empty file, or an error that says what is wrong with it."""
    if not os.fspath(path):
        raise ModelFileError("the path of the model is empty", hint="`-m` takes the path of an .onnx file")
    file = Path(path)
    try:
        if (file / PARTS).is_file():
            parts = part_names(file)
            listed = ", ".join(parts) or "no part"
            raise ModelFileError(
                f"model `{path}` is a composite of several: {listed}",
                hint=f"name one of them: `-m {file / parts[-1]}`" if parts else "build the model again",
            )
        if file.is_dir():
            raise ModelFileError(
                f"model `{path}` is a directory",
                hint="name the .onnx file, a folder with model.onnx, or one with config.json and weights",
            )
        if not file.exists():
            raise ModelFileError(
                f"model file not found: `{path}`",
                hint=near_path(
                    file, "`-m` takes an .onnx file, a folder, or a model of the Hugging Face hub as ORG/NAME"
                ),
            )
        if not file.is_file():
            raise ModelFileError(f"model `{path}` is not a regular file", hint="save the model to a file first")
        with file.open("rb") as stream:
            empty = not stream.read(1)
    except PermissionError as error:
        raise UnavailableError(f"model file cannot be read: `{path}`: {error.strerror}") from error
    except (OSError, ValueError) as error:  # a name too long for the file system, a NUL in it
        raise ModelFileError(f"model path cannot be used: `{path}`: {error}") from error
    if empty:
        raise ModelFileError(f"model file is empty: `{path}`", hint="the download or export did not finish")
    # Not resolved: in a Hugging Face cache the model is a link, and its external data lies beside the link.
    return file.absolute()


def part_names(folder: Path) -> list[str]:
    """The parts of the composite model in a folder, by what its manifest says; none when it says nothing readable."""
    try:
        value = read_json(folder / PARTS)
        return [str(name) for name in value["parts"]]
    except (OSError, ValueError, TypeError, KeyError):
        return []

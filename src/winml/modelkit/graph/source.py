"""What a build asks about the model it starts from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from winml.modelkit.graph import files
from winml.modelkit.graph.macs import name_axes


def list_external_files(args: dict[str, Any], context: Any) -> tuple[Path, ...]:
    """Worker operation: the other files of the model at `path`."""
    return files.external_files(args["path"], files.load(args["path"], weights=False))


def save_as(args: dict[str, Any], context: Any) -> tuple[Path, ...]:
    """Worker operation: write the model at `path` to `output`, with external data that is named after it."""
    model = files.load(args["path"], weights=False)
    return files.save(model, args["output"], external_data="always", source=args["path"])


def name_dims(args: dict[str, Any], context: Any) -> Path:
    """Worker operation: a copy of the model at `path` in `folder` whose open dimensions all have a name.

    The runtime fixes dimensions by name alone when a session is opened.
    """
    path = Path(args["path"])
    model = files.load(path)
    name_axes(model.graph)
    return files.save(model, Path(args["folder"]) / path.name, overwrite=True)[0]

"""What a build asks about the model it starts from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from winml.modelkit.graph import files
from winml.modelkit.graph.macs import dynamic_axes, name_axes, runtime_inputs


def source(args: dict[str, Any], context: Any) -> dict[str, Any]:
    """Worker operation: the other files of the model at `path`, and the open dimensions of its inputs."""
    model = files.load(args["path"], weights=False)
    symbols = dict.fromkeys(name for value in runtime_inputs(model.graph) for _, name in dynamic_axes(value))
    return {
        "files": [str(file) for file in files.external_files(args["path"], model)],
        "symbols": list(symbols),
    }


def name_dims(args: dict[str, Any], context: Any) -> dict[str, Any]:
    """Worker operation: a copy of the model at `path` in `folder` whose open dimensions all have a name.

    The runtime fixes dimensions by name alone when a session is opened.
    """
    path = Path(args["path"])
    model = files.load(path)
    name_axes(model.graph)
    return {"path": str(files.save(model, Path(args["folder"]) / path.name, overwrite=True)[0])}

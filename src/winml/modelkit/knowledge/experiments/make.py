"""Worker operation: writes the model of an experiment's arm."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.graph import files
from winml.modelkit.knowledge.experiments.table import BUILDERS


def make(args: dict[str, Any], context: object) -> dict[str, Any]:
    """Write the model of `builder` with its `parameters` to `path`."""
    module, _, name = BUILDERS[args["builder"]].partition(":")
    builder = getattr(import_module(module), name)
    known = inspect.signature(builder).parameters
    for parameter in args["parameters"]:
        if parameter not in known:
            raise RequestError(
                f"model `{args['builder']}` has no parameter `{parameter}`", hint=did_you_mean(parameter, known)
            )
    files.save(builder(**args["parameters"]), args["path"])
    return {"path": args["path"]}

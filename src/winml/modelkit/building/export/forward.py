"""Worker operation: what a class of the library takes, for a model whose inputs are not in the tables."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from winml.modelkit.building.export import signature
from winml.modelkit.building.export.folder import ModelFolder
from winml.modelkit.building.export.loading import library
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.values import Names, key, to_json

TO_FILL: dict[str, Any] = {"dtype": "float32", "shape": ["batch"], "low": -1.0, "high": 1.0}
"""The placeholder of an input until more is known."""

_NO_DATA = (
    "labels",
    "label",
    "start_positions",
    "end_positions",
    "head_mask",
    "embeds",
    "encoder_outputs",
    "past_key_values",
    "cache_position",
    "position_ids",
)
"""Ends of names of what a training, a cache or another part of the model gives."""
_DATA = ("input_labels",)
"""Names with such an end that are data all the same: whether a point lies on an object."""


@dataclass(frozen=True, kw_only=True)
class ProposedInputs:
    """Input specs as far as they can be proposed."""

    class_name: str | None = key("class")
    """Null when the class could not be asked."""
    inputs: Mapping[str, Mapping[str, Any]]
    to_fill: Names
    """Those whose type and shape are not known."""
    others: Names
    """Further inputs, which are optional."""


def forward(args: dict[str, Any], context: object) -> ProposedInputs:
    """Inputs of the class that saved the model in `args["folder"]`.

    Nothing is loaded, and code that comes with a model is not run.
    """
    folder = ModelFolder(Path(args["folder"]))
    found = _class(folder.architecture or "")
    inputs: dict[str, Any] = {}
    to_fill, others = [], []
    for parameter in list_tensors(found):
        usual = signature.usual(folder, parameter.name)
        needed = parameter.default is parameter.empty or parameter.name == getattr(found, "main_input_name", None)
        if usual is not None:
            inputs[parameter.name] = {k: v for k, v in to_json(usual).items() if k != "name"}
        elif needed:
            inputs[parameter.name] = dict(TO_FILL)
            to_fill.append(parameter.name)
        else:
            others.append(parameter.name)
    return ProposedInputs(class_name=found.__name__, inputs=inputs, to_fill=tuple(to_fill), others=tuple(others))


def _class(name: str) -> type:
    """The library's class of a model; what a config names may be anything."""
    try:
        found = getattr(library(), name, None)
    except (ImportError, RuntimeError) as error:  # a class that needs another package is imported when it is named
        raise RequestError(f"the library cannot give its class `{name}`: {error}") from error
    if not inspect.isclass(found) or not hasattr(found, "forward"):
        raise RequestError(f"the library has no model `{name}`, so its inputs are unknown")
    return found


def list_tensors(model: type) -> Iterator[inspect.Parameter]:
    """The parameters of `forward` that hold tensors of data."""
    parameters = list(inspect.signature(model.forward).parameters.values())[1:]  # type: ignore[attr-defined]
    for parameter in parameters:
        named = parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        tensor = parameter.annotation is parameter.empty or "Tensor" in str(parameter.annotation)
        needed = parameter.default is parameter.empty or parameter.name in _DATA
        if named and tensor and (needed or not parameter.name.endswith(_NO_DATA)):
            yield parameter

"""Activations that ONNX Runtime writes into an attribute of a fused operator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from winml.modelkit.building.optimize.rewrites.editing import Editor

_PARAMETERS: dict[str, tuple[str, ...]] = {
    "Relu": (),
    "Sigmoid": (),
    "Tanh": (),
    "LeakyRelu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "Clip": ("min", "max"),
}
"""Activations and what their parameters are called, in order."""


def is_known(name: str, parameters: Sequence[float]) -> bool:
    return name in _PARAMETERS and len(parameters) >= len(_PARAMETERS[name])


def node(editor: Editor, name: str, parameters: Sequence[float], value: ir.Value, like: ir.Value) -> ir.Node:
    """The activation as a node of its own."""
    named = dict(zip(_PARAMETERS[name], parameters, strict=False))
    if name != "Clip":
        return editor.node(name, [value], like, named)
    limits = [editor.constant(np.array(limit, np.float32), like.name, key) for key, limit in named.items()]
    return editor.node(name, [value, *limits], like)

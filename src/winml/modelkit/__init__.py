"""Takes a model to the fastest accurate artifact for every ONNX Runtime execution provider, and proves it."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from winml.modelkit.building.compile.command import compile_multiple_onnx as compile_multiple_onnx

__version__ = "0.1.0"

_API = {"compile_multiple_onnx": "winml.modelkit.building.compile.command"}
"""Public functions with the module of each, imported on first use."""


def __getattr__(name: str) -> Any:
    if name not in _API:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_API[name]), name)

"""Packages that only some data needs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from winml.modelkit.core.errors import UnavailableError


def extra(module: str, *, name: str, what: str) -> Any:
    """The module; an error names the extra of ours that installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise UnavailableError(
            f"{what} needs the Python package `{module.partition('.')[0]}`",
            hint=f"install it with `pip install winml-modelkit[{name}]`",
        ) from error

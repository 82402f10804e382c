"""Packages that only some data needs."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from winml.modelkit.core.errors import UnavailableError
from winml.modelkit.ep.environments import read_environment


def extra(module: str, *, name: str, what: str) -> Any:
    """The module; an error names the extra of ours that installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        private = read_environment(Path(sys.prefix))
        again = (
            "" if private is None else f", then `winml ep install {private.ep} --rebuild`: it runs in an environment"
        )
        raise UnavailableError(
            f"{what} needs the Python package `{module.partition('.')[0]}`",
            hint=f"install it with `pip install winml-modelkit[{name}]`{again}",
        ) from error

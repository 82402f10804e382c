"""The text of `winml init`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from winml.modelkit.render.table import table

if TYPE_CHECKING:
    from winml.modelkit.building.init_command import InitResult


def init_text(result: InitResult) -> str:
    """What was written, and what each file is for."""
    roles = {config.file: f"build config for {config.target}, {config.precision}" for config in result.configs}
    roles[result.workflow] = "build, check and compare in CI"
    rows = [(name, roles.get(name, "copied from the sample")) for name in result.files]
    return f"{result.model} in {result.folder}\n{table(rows, indent='  ')}"

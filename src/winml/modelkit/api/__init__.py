"""The functions of `import winml.modelkit as wk`: each makes the request of a command and returns its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from winml.modelkit.core.result import set_display

if TYPE_CHECKING:
    from winml.modelkit.core.result import Display


def _load_display() -> Display:
    from winml.modelkit.api import display

    return display


set_display(_load_display)

"""The text of `winml completion --install`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from winml.modelkit.cli.completion.scripts import CompletionResult

_START_FILES = {"zsh": "~/.zshrc", "powershell": "$PROFILE"}


def installed_text(result: CompletionResult) -> str:
    """The files that were written, and the lines that are left to add."""
    lines = [f"written: {file}" for file in result.files]
    if result.steps:
        lines += [f"add to {_START_FILES[result.shell]}:", *(f"  {step}" for step in result.steps)]
    return "\n".join([*lines, "open a new terminal to use it"])

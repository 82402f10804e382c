"""What every result of a command has besides its fields: a text, HTML for a notebook, JSON and a table.

Texts are made above this layer (`render`), so whoever gives results to people says how they are shown: `set_display`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from winml.modelkit.core.values import fields_json


class Display(Protocol):
    """How results are shown."""

    def text(self, result: CommandResult) -> str: ...
    def html(self, result: CommandResult) -> str: ...
    def dataframe(self, result: CommandResult) -> Any: ...


_load: Callable[[], Display] | None = None


def set_display(load: Callable[[], Display]) -> None:
    """Show results by what `load` returns, which is called when the first one is shown."""
    global _load
    _load = load


def _display() -> Display:
    if _load is None:
        raise RuntimeError("results are shown by `winml.modelkit.api`, which is not imported")
    return _load()


class CommandResult:
    """A value that a command returns; `print` shows the text of the command."""

    written_by_fields = True
    """`to_json` is for users: `core/values.py` writes a result by its fields, also inside of another one."""

    def __str__(self) -> str:
        return repr(self) if _load is None else _display().text(self)

    def __repr__(self) -> str:
        """The class and the first line of the text: all fields would be thousands of lines of samples."""
        name = type(self).__name__
        return f"<{name}>" if _load is None else f"<{name}: {_display().text(self).partition(chr(10))[0].strip()}>"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return _display().html(self)

    def to_json(self) -> dict[str, Any]:
        """The object that the command writes with `--json`, in types that `json.dumps` takes."""
        return fields_json(self)

    def to_dataframe(self) -> Any:
        """The rows of the result as a `pandas.DataFrame`; pandas has to be installed."""
        return _display().dataframe(self)

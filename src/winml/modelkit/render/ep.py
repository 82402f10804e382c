"""The text of `winml ep`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from winml.modelkit.render.table import table
from winml.modelkit.render.units import size

if TYPE_CHECKING:
    from winml.modelkit.ep.ep_command import EnvironmentsResult
    from winml.modelkit.ep.options_command import EPOptionsResult, OptionInfo

_SET_BY = {"document": "config or command line", "command_line": "command line only", "nobody": "not settable"}


def _values(option: OptionInfo) -> str:
    if option.choices:
        return " | ".join(option.choices)
    ends = ["" if end is None else str(end) for end in (option.low, option.high)]
    return option.type + (f" {ends[0]}…{ends[1]}" if any(ends) else "")


def options_text(result: EPOptionsResult) -> str:
    """One line per provider option."""
    blocks = []
    for entry in result.eps:
        rows = [(entry.ep, "set by", "values")]
        rows += [(o.name, _SET_BY[o.set_by], o.reason or _values(o)) for o in entry.options]
        blocks.append(table(rows, head=True, below=2) if entry.options else f"{entry.ep} takes no options")
    return "\n\n".join(blocks)


def environments_text(result: EnvironmentsResult) -> str:
    """One line per private environment."""
    ready = result.windows_ml
    if ready is not None:
        return f"{ready.ep} {ready.version or 'of an unknown version'} from Windows ML ({ready.certification})"
    if not result.environments:
        return "no execution provider has a private environment"
    rows = [("ep", "package", "version", "size", "folder")]
    rows += [(e.ep, e.distribution, e.version, size(e.bytes), e.folder) for e in result.environments]
    return table(rows, right=frozenset({3}), head=True, below=4)

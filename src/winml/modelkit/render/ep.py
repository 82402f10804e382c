"""The text of `winml ep`."""

from __future__ import annotations

from typing import Any

from winml.modelkit.render.table import table
from winml.modelkit.render.units import size


def _values(option: dict[str, Any]) -> str:
    if option["choices"]:
        return " | ".join(option["choices"])
    ends = ["" if option[end] is None else str(option[end]) for end in ("low", "high")]
    return str(option["type"]) + (f" {ends[0]}…{ends[1]}" if any(ends) else "")


_SET_BY = {"document": "anyone", "command_line": "command line only", "nobody": "nobody"}


def _options(entry: dict[str, Any]) -> str:
    """The options of one EP."""
    if not entry["options"]:
        return f"{entry['ep']} takes no options"
    rows = [(entry["ep"], "set by", "values")]
    rows += [(o["name"], _SET_BY[o["set_by"]], o["reason"] or _values(o)) for o in entry["options"]]
    return table(rows)


def environments_text(result: dict[str, Any]) -> str:
    """One line per private environment, or the options of providers."""
    if result["action"] == "options":
        return "\n\n".join(_options(entry) for entry in result["eps"])
    ready = result["windows_ml"]
    if ready is not None:
        return f"{ready['ep']} {ready['version'] or 'of an unknown version'} from Windows ML ({ready['certification']})"
    if not result["environments"]:
        return "no execution provider has an environment of its own"
    rows = [("ep", "package", "version", "size", "folder")]
    rows += [(e["ep"], e["distribution"], e["version"], size(e["bytes"]), e["folder"]) for e in result["environments"]]
    return table(rows, right=frozenset({3}))

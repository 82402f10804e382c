"""The text of `winml cache` and `winml ep`."""

from __future__ import annotations

from typing import Any

from winml.modelkit.render.table import table
from winml.modelkit.render.units import size


def _list(result: dict[str, Any]) -> str:
    if not result["entries"]:
        return f"{result['folder']} holds no stage results"
    rows = [("stage", "artifact", "size", "files")]
    rows += [
        (e["stage"], e["artifact"][:19], size(e["bytes"]), ", ".join(sorted(e["files"]))) for e in result["entries"]
    ]
    return table(rows, right=frozenset({2}))


def _gc(result: dict[str, Any]) -> str:
    verb = "would remove" if result["dry_run"] else "removed"
    in_use = f"; {result['in_use']} objects are open in other programs and stay" if result["in_use"] else ""
    return (
        f"{verb} {result['objects']} objects ({size(result['bytes'])}), {result['entries']} stage results, "
        f"{result['builds']} builds and "
        f"{result['temporaries']} left-over files; {size(result['kept_bytes'])} kept{in_use}"
    )


def cache_text(result: dict[str, Any]) -> str:
    """The answer to one of the actions."""
    if result["action"] == "list":
        return _list(result)
    if result["action"] == "gc":
        return _gc(result)
    if result["action"] == "verify":
        return f"{result['objects']} objects verified, none damaged"
    return (
        f"{result['folder']}  {size(result['bytes'])} in {result['objects']} objects, {result['entries']} stage results"
    )


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

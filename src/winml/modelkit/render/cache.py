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
    return (
        f"{verb} {result['objects']} objects ({size(result['bytes'])}), {result['entries']} stage results, "
        f"{result['builds']} builds and "
        f"{result['temporaries']} left-over files; {size(result['kept_bytes'])} kept"
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


def environments_text(result: dict[str, Any]) -> str:
    """One line per private environment."""
    if not result["environments"]:
        return "no execution provider has an environment of its own"
    rows = [("ep", "package", "version", "size", "folder")]
    rows += [(e["ep"], e["distribution"], e["version"], size(e["bytes"]), e["folder"]) for e in result["environments"]]
    return table(rows, right=frozenset({3}))

"""Names of files that a document gives: they stay below its folder on every system."""

from __future__ import annotations

from pathlib import PurePosixPath, PureWindowsPath


def stays_inside(location: str) -> bool:
    """Whether a relative path cannot leave its folder on any system."""
    ways = (PurePosixPath(location), PureWindowsPath(location))
    return "\0" not in location and not any(way.anchor or ".." in way.parts for way in ways)

"""Names of files that a document gives: they stay below its folder on every system."""

from __future__ import annotations

import sys
from pathlib import PurePosixPath, PureWindowsPath

from winml.modelkit.core.file_names import is_device


def stays_inside(location: str) -> bool:
    """Whether a relative path cannot leave its folder on any system."""
    if sys.platform == "win32" and any(is_device(part) for part in PureWindowsPath(location).parts):
        return False  # `folder\\con` is the console, whose reader waits for the keyboard
    ways = (PurePosixPath(location), PureWindowsPath(location))
    return "\0" not in location and not any(way.anchor or ".." in way.parts for way in ways)

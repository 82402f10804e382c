"""Names and paths that Windows does not allow: characters, devices, ends, lengths."""

from __future__ import annotations

import functools
import os
import re
import sys
from pathlib import Path

FOLDER_LIMIT = 247
"""Windows keeps 13 of its 260 characters for a short name in a folder and the end of a text."""
FILE_LIMIT = 259
LONG_PATHS_HINT = (
    "use a folder with a shorter path, or let Windows allow long ones: `LongPathsEnabled` = 1 below "
    r"`HKLM\SYSTEM\CurrentControlSet\Control\FileSystem`"
)
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f<>:"|?*\\/]')
_DEVICE = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])( *\..*)?", re.IGNORECASE)


def is_device(name: str) -> bool:
    """Whether Windows takes a name, in any folder, for a device."""
    return bool(_DEVICE.fullmatch(name))


def unfit_name(name: str) -> str | None:
    """Why some system cannot have a file of this name; None when all can."""
    if _FORBIDDEN.search(name):
        return "it has a character that is not allowed in names on some systems"
    if name[-1:] in (".", " ") or is_device(name):
        return "Windows does not allow such a name"
    return None


def fit_name(name: str) -> str:
    """The name, or one made of it that every system can have; characters are the caller's concern."""
    name = name.rstrip(". ") or "model"
    return f"model-{name}" if is_device(name) else name


def unfit_path(path: Path) -> str | None:
    """The part of a path that this system would take for something else than a name, and why; None when there is none.

    Windows writes `NUL` to nowhere, `a.` to `a`, and `a:b` to a hidden stream of `a`.
    """
    if sys.platform != "win32":
        return None
    for part in path.parts[1:] if path.anchor else path.parts:
        if part not in (".", "..") and (why := unfit_name(part)):
            return f"`{part}`: {why}"
    return None


def too_long(path: str | os.PathLike[str], *, folder: bool = False, limited: bool | None = None) -> str | None:
    """Why Windows rejects a path for its length; None when it does not, and on other systems.

    `limited` says whether there is a limit, by default what Windows reports to this process.
    """
    if not (_is_limited() if limited is None else limited):
        return None
    text = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 - no question to the disk
    count = len(text) + sum(letter > "\uffff" for letter in text)  # Windows counts UTF-16 units
    limit = FOLDER_LIMIT if folder else FILE_LIMIT
    if count <= limit or text.startswith("\\\\?\\"):
        return None
    return f"the path has {count} characters, and Windows allows {limit} here"


@functools.cache
def _is_limited() -> bool:
    """Whether this process may not use long paths: the system's setting and the program's manifest decide."""
    if sys.platform != "win32":
        return False
    import ctypes

    try:
        return not ctypes.WinDLL("ntdll").RtlAreLongPathsEnabled() & 0xFF
    except AttributeError:  # Windows before version 1607 has no long paths
        return True

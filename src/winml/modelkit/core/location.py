"""Where the cache and the user's own knowledge lie."""

from __future__ import annotations

import os
import sys
from pathlib import Path

VARIABLE = "WINML_CACHE"
KNOWLEDGE_VARIABLE = "WINML_KNOWLEDGE"
JOB_VARIABLE = "WINML_JOB"
"""The process of the job on a node that a command is part of: what that was ended over is removed under its number."""


def cache_root() -> Path:
    """`$WINML_CACHE`, or the platform's folder for caches."""
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given).expanduser().absolute()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        return Path(base) / "winml" if base else Path.home() / "AppData" / "Local" / "winml"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "winml"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "winml"


def work_owner() -> int:
    """The number of the process that work folders in the cache are named after."""
    given = os.environ.get(JOB_VARIABLE, "")
    return int(given) if given.isdecimal() else os.getpid()


def knowledge_root() -> Path:
    """`$WINML_KNOWLEDGE`, or the platform's folder for data: findings and outcomes outlive a cache."""
    given = os.environ.get(KNOWLEDGE_VARIABLE)
    if given:
        return Path(given).expanduser().absolute()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        return (Path(base) if base else Path.home() / "AppData" / "Local") / "winml" / "knowledge"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "winml" / "knowledge"
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "winml" / "knowledge"

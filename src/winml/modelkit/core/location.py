"""Where the cache and the user's own knowledge lie."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from winml.modelkit.core.errors import RequestError, UnavailableError

VARIABLE = "WINML_CACHE"
KNOWLEDGE_VARIABLE = "WINML_KNOWLEDGE"
JOB_VARIABLE = "WINML_JOB"
"""The process of the job on a node that a command is part of: what that was ended over is removed under its number."""


def home(variable: str | None = None) -> Path:
    """The user's folder; a process without `HOME` whose user has no entry has none, and says which variable helps."""
    try:
        return Path.home()
    except RuntimeError as error:
        raise UnavailableError(
            "this user has no home folder",
            hint=f"set `HOME`, or name a folder with `{variable}`" if variable else "set `HOME`",
        ) from error


def expand(path: str | os.PathLike[str]) -> Path:
    """A path with `~` and `~name` for folders of users, absolute."""
    try:
        return Path(path).expanduser().absolute()
    except RuntimeError as error:
        raise RequestError(f"`{path}` is not the folder of a known user", hint="write the path out") from error


def cache_root() -> Path:
    """`$WINML_CACHE`, or the platform's folder for caches."""
    given = os.environ.get(VARIABLE)
    if given:
        return expand(given)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        return (Path(base) if base else home(VARIABLE) / "AppData" / "Local") / "winml" / "cache"
    if sys.platform == "darwin":
        return home(VARIABLE) / "Library" / "Caches" / "winml"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else home(VARIABLE) / ".cache") / "winml"


def work_owner() -> int:
    """The number of the process that work folders in the cache are named after."""
    given = os.environ.get(JOB_VARIABLE, "")
    return int(given) if given.isdecimal() else os.getpid()


def knowledge_root() -> Path:
    """`$WINML_KNOWLEDGE`, or the platform's folder for data: findings and outcomes outlive a cache."""
    given = os.environ.get(KNOWLEDGE_VARIABLE)
    if given:
        return expand(given)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        return (Path(base) if base else home(KNOWLEDGE_VARIABLE) / "AppData" / "Local") / "winml" / "knowledge"
    if sys.platform == "darwin":
        return home(KNOWLEDGE_VARIABLE) / "Library" / "Application Support" / "winml" / "knowledge"
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else home(KNOWLEDGE_VARIABLE) / ".local" / "share") / "winml" / "knowledge"

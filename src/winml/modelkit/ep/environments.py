"""Private environments for bundled EPs, which cannot share one with the plain onnxruntime.

Each is a folder with a virtual environment and `environment.json`, which is written last: without it the folder is not
an environment yet.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.json_text import read_json
from winml.modelkit.core.location import cache_root
from winml.modelkit.core.values import read

MANIFEST = "environment.json"


@dataclass(frozen=True, kw_only=True)
class EnvironmentManifest:
    """What `environment.json` holds."""

    schema: Literal["winml/environment/1"] = "winml/environment/1"
    ep: str
    distribution: str
    version: str
    tracer: str | None = None
    """What traces its operators, with its version; null where nothing does or an older winml made it."""


@dataclass(frozen=True)
class PrivateEnvironment:
    """A private environment that holds one EP."""

    ep: str
    distribution: str
    version: str
    folder: Path
    tracer: str | None = None

    @property
    def python(self) -> Path:
        return python_in(self.folder)


def python_in(folder: Path) -> Path:
    """The interpreter of a virtual environment."""
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def environments_root() -> Path:
    return cache_root() / "environments"


def read_environment(folder: Path) -> PrivateEnvironment | None:
    """The environment in a folder, or None when there is no finished one."""
    try:
        found = read(EnvironmentManifest, read_json(folder / MANIFEST), strict=False)
    except (OSError, ValueError, RequestError):
        return None
    if not python_in(folder).exists():
        return None
    return PrivateEnvironment(found.ep, found.distribution, found.version, folder, found.tracer)


def environments_in(root: Path) -> Iterator[PrivateEnvironment]:
    """All finished environments under a folder."""
    if root.is_dir():
        for folder in sorted(root.iterdir()):
            found = None if folder.name.startswith(".") else read_environment(folder)
            if found is not None:
                yield found

"""Programs of this machine, by their whole path."""

from __future__ import annotations

import os
from pathlib import Path


def find_program(name: str, *, outside: Path | None = None) -> Path | None:
    """A program on the search path; none of the working directory, and none below a folder that came from others."""
    ending = f"{name}.exe" if os.name == "nt" else name
    for word in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = Path(word) / ending
        if not Path(word).is_absolute() or not path.is_file() or not os.access(path, os.X_OK):
            continue
        if outside is None or not path.resolve().is_relative_to(outside):
            return path
    return None

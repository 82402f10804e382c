"""Which OpenVINO an EP package was built with: the `openvino` package that traces beside it must be the same."""

from __future__ import annotations

import re
from pathlib import Path

_NAMED = re.compile(r"libopenvino\.so\.(?P<version>20\d\d\.\d+\.\d+)")
_INSIDE = re.compile(rb"(?P<version>20\d\d\.\d+\.\d+)-\d+-")
_LIBRARIES = ("openvino.dll", "libopenvino.so")


def openvino_inside(package: Path) -> str | None:
    """The version of the OpenVINO libraries in a package's folder; None when there are none."""
    for path in sorted(package.rglob("libopenvino.so.*")):
        named = _NAMED.fullmatch(path.name)
        if named:
            return named["version"]
    for name in _LIBRARIES:
        for path in sorted(package.rglob(name)):
            inside = _INSIDE.search(path.read_bytes())
            if inside:
                return inside["version"].decode()
    return None

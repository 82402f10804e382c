"""The text of `winml --version`: the versions that matter in a report about the program."""

from __future__ import annotations

import platform
import sys

from winml.modelkit import __version__
from winml.modelkit.core.errors import ModelkitError
from winml.modelkit.core.plain_text import one_line
from winml.modelkit.ep import catalog
from winml.modelkit.ep.environments import PrivateEnvironment, environments_in, environments_root
from winml.modelkit.ep.packages import list_distributions


def version_text(program: str) -> str:
    """The program with its version, then what it runs on; read from metadata, nothing is imported for it."""
    installed: dict[str, str] = {}
    for found in list_distributions(sys.path):
        installed.setdefault(found.name, found.version)
    packages = dict.fromkeys(("onnxruntime", "onnx", *(p.distribution for i in catalog.TABLE for p in i.packages)))
    rows = [("winml-modelkit", __version__), ("Python", platform.python_version())]
    rows += [(name, installed[name]) for name in packages if name in installed]
    rows += [(e.distribution, f"{e.version} (own environment)") for e in _private_environments()]
    rows.append(("platform", f"{platform.system()} {platform.release()} {platform.machine()}"))
    width = max(len(name) for name, _ in rows)
    lines = [f"{program} {__version__}", *(one_line(f"{name:{width}}  {value}") for name, value in rows)]
    return "\n".join(lines) + "\n"


def _private_environments() -> list[PrivateEnvironment]:
    try:
        return list(environments_in(environments_root()))
    except (ModelkitError, OSError):
        return []  # without a home folder, or one that cannot be read, the version is still told

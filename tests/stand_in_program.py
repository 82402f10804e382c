"""Programs that stand in for those of others, written in Python and started as any program is."""

from __future__ import annotations

import io
import sys
import zipfile
from importlib import resources
from importlib.util import find_spec
from pathlib import Path


def make_program(path: Path, code: str) -> None:
    """Make a program of some code; on Windows its name ends with `.exe`, and it is one.

    That one is what pip makes of a script: a launcher, the interpreter it starts and a zip with the code, in one file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if sys.platform != "win32":
        path.write_text(f"#!{sys.executable}\n{code}", encoding="utf-8")
        path.chmod(0o755)
        return
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as stream:
        stream.writestr("__main__.py", code)
    path.write_bytes(_launcher() + f"#!{sys.executable}\r\n".encode() + packed.getvalue())


def _launcher() -> bytes:
    package = "distlib" if find_spec("distlib") else "pip._vendor.distlib"
    return (resources.files(package) / "t64.exe").read_bytes()

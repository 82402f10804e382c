"""What a machine is, as every result that was made on it says."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version

from winml.modelkit import __version__


def describe_environment() -> dict[str, str | int | None]:
    """Versions and system of this machine."""
    return {
        "winml": __version__,
        "python": platform.python_version(),
        "onnxruntime": version("onnxruntime"),
        "onnx": version("onnx"),
        "system": platform.system(),
        "release": platform.release(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
    }

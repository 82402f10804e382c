"""The key of the stage covers the libraries that write its result."""

from __future__ import annotations

import subprocess
import sys

import pytest

from winml.modelkit.building.quantize.stage import WITHOUT_DATA
from winml.modelkit.building.quantize.table import LIBRARIES

WRITERS = ("numpy", "onnx", "onnx_ir", "onnxruntime", "onnxscript")
"""Packages that make or write tensors, as they are imported."""


@pytest.mark.parametrize("module", [*WITHOUT_DATA.values(), "winml.modelkit.building.quantize.static"])
def test_every_library_that_a_mode_imports_to_write_tensors_is_listed(module: str) -> None:
    code = f"import sys, {module}; print(*(name for name in {WRITERS!r} if name in sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert {name.replace("_", "-") for name in result.stdout.split()} <= set(LIBRARIES)

"""sympy is loaded when onnx-ir computes with a symbolic dimension, and not before."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from winml.modelkit.building.optimize.library import ir
print("sympy.core" in sys.modules, (ir.SymbolicDim("n") + 1).value, "sympy.core" in sys.modules)
"""


def test_a_symbolic_dimension_loads_what_it_is_computed_with() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout == "False n + 1 True\n"

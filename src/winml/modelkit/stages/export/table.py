"""What the cache has to know about the export stage."""

from __future__ import annotations

STAGE_VERSION = 1
LIBRARIES: tuple[str, ...] = ("torch", "transformers", "onnxscript", "onnx", "onnx-ir")
OPSETS = (17, 24)
DEFAULT_OPSET = 20
"""The newest that the execution providers of the table take whole: 23 has an attention operator that QNN leaves."""

"""What the result of quantizing depends on besides the section, the model and the data; imports nothing."""

from __future__ import annotations

STAGE_VERSION = 8
"""Raised when the same section gives another model."""

LIBRARIES: tuple[str, ...] = ("numpy", "onnx", "onnx-ir", "onnxruntime")
"""Distributions whose versions may change the bytes of a quantized model."""

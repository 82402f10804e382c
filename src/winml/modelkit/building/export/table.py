"""What the cache has to know about the export stage."""

from __future__ import annotations

from winml.modelkit.core.generation import find_genai

STAGE_VERSION = 5
DERIVE_VERSION = 4
"""Of what the inputs of an architecture in no table are derived by."""
LIBRARIES: tuple[str, ...] = ("torch", "transformers", "onnxscript", "onnx", "onnx-ir")
OPSETS = (17, 24)
DEFAULT_OPSET = 20
NPU_OPSET = 22
"""The newest for an NPU: from 23 on there are operators, such as Attention, that QNN leaves on the CPU."""


def libraries_of(exporter: str) -> tuple[str, ...]:
    """Distributions whose versions change what an exporter writes."""
    found = find_genai() if exporter == "genai" else None
    return LIBRARIES if found is None else (*LIBRARIES, found[0])

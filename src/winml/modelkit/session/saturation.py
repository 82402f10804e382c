"""Whether 8-bit kernels of this processor saturate, by asking the runtime for a product that is known.

x86-64 without VNNI adds pairs of products of uint8 and int8 in 16 bits: 2 x 255 x 127 does not fit. Which kernels the
runtime chooses is up to the runtime, so instruction sets are not looked at.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from winml.modelkit.core.target import Target
from winml.modelkit.graph.outline import has_matrix_of_type

ACTIVATION, WEIGHT, TERMS = 255, 127, 4
REDUCED = 64
"""The largest weight of the reduced range: 2 x 255 x 64 fits 16 bits."""

_INT8 = 3
"""int8 in onnx.proto."""

MODEL = b"".join(
    (
        b'\x08\x08:\x94\x01\n\x18\n\x01x\n\x01w\x12\x01y"\rMatMulInteger\x12\x01g*K\x08\x04\x08\x10\x10\x03B\x01wJ@',
        bytes([WEIGHT]) * 64,
        b"Z\x13\n\x01x\x12\x0e\n\x0c\x08\x02\x12\x08\n\x02\x08\x02\n\x02\x08\x04b\x13\n",
        b"\x01y\x12\x0e\n\x0c\x08\x06\x12\x08\n\x02\x08\x02\n\x02\x08\x10B\x04\n\x00\x10\r",
    )
)
"""MatMulInteger of uint8 `x` [2, 4] with int8 weights [4, 16], all of them 127; importing onnx would take longer."""


@functools.cache
def saturates() -> bool:
    """Whether the runtime gets a product of uint8 activations with int8 weights wrong on this processor."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # a pool of threads takes longer to end than the product
    session = onnxruntime.InferenceSession(MODEL, options, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"x": np.full((2, TERMS), ACTIVATION, np.uint8)})
    return bool((found != TERMS * ACTIVATION * WEIGHT).any())


def ask(args: dict[str, Any], context: object) -> bool:
    """Worker operation: the answer of `saturates`."""
    return saturates()


def weights_at_risk(path: Path, target: Target) -> int:
    """How many weights of a model have so large int8 numbers that this processor may add them up wrongly.

    None where another EP than `cpu` runs it, whose kernels are its own.
    """
    # First what takes least: `import onnx` costs more than a whole measurement of a small model.
    if target.ep != "cpu" or not has_matrix_of_type(path, _INT8) or not saturates():
        return 0
    from winml.modelkit.graph import files

    return full_range_weights(files.load(path))


def full_range_weights(model: Any) -> int:
    """Tensors of int8 with two dimensions or more that go beyond the reduced range."""
    from onnx import TensorProto, numpy_helper

    from winml.modelkit.graph import walk

    tensors = (t for t in walk.initializers(model) if t.data_type == TensorProto.INT8 and len(t.dims) > 1)
    return sum(bool(np.abs(numpy_helper.to_array(t).astype(np.int16)).max(initial=0) > REDUCED) for t in tensors)

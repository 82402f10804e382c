"""Tensors of an ONNX file: element types, sizes from their shape, bytes in one canonical form."""

from __future__ import annotations

import math
import re

import numpy as np
from onnx import TensorProto

from winml.modelkit.core.errors import ModelFileError

_TYPES: dict[int, str] = {number: name for name, number in TensorProto.DataType.items()}
_PLAIN_NAMES = {"FLOAT": "float32", "DOUBLE": "float64"}
_PLAIN_BITS = {"FLOAT": 32, "DOUBLE": 64, "BOOL": 8}

_TYPED_FIELDS = {
    "FLOAT": ("float_data", "<f4"),
    "COMPLEX64": ("float_data", "<f4"),
    "DOUBLE": ("double_data", "<f8"),
    "COMPLEX128": ("double_data", "<f8"),
    "INT32": ("int32_data", "<i4"),
    "INT64": ("int64_data", "<i8"),
    "UINT32": ("uint64_data", "<u4"),
    "UINT64": ("uint64_data", "<u8"),
}
"""Where values are kept that are not in `raw_data`, and their type there; all others are in `int32_data`."""


def dtype_name(data_type: int) -> str:
    """The element type as people write it: `float32`, `int8`, `bfloat16`; `undefined` when ONNX has no such type."""
    name = _TYPES.get(data_type, "UNDEFINED")
    return _PLAIN_NAMES.get(name, name.lower())


def element_bits(data_type: int) -> int | None:
    """Bits of one element, or None where that is not fixed (strings, undefined types)."""
    name = _TYPES.get(data_type, "UNDEFINED")
    digits = re.match(r"[A-Z]+(\d+)", name)
    return _PLAIN_BITS.get(name) or (int(digits[1]) if digits else None)


def element_count(tensor: TensorProto) -> int:
    """Number of elements by the shape, whether or not the data is loaded."""
    if any(size < 0 for size in tensor.dims):
        raise ModelFileError(
            f"tensor `{tensor.name}` has the negative shape {list(tensor.dims)}",
            hint="export the model again",
        )
    return math.prod(tensor.dims)


def byte_count(tensor: TensorProto) -> int:
    """Bytes of the tensor's data by its shape, whether or not the data is loaded."""
    bits = element_bits(tensor.data_type)
    if bits is None:
        return sum(len(text) for text in tensor.string_data)
    return (element_count(tensor) * bits + 7) // 8


def is_external(tensor: TensorProto) -> bool:
    """Whether the data is in another file and was not loaded."""
    return bool(tensor.data_location == TensorProto.EXTERNAL)


def content(tensor: TensorProto) -> bytes:
    """The tensor's data as little-endian bytes, equal for `raw_data` and the typed fields."""
    if is_external(tensor):
        raise ModelFileError(
            f"the data of tensor `{tensor.name}` is in another file and was not loaded",
            hint="load the model with its weights",
        )
    if tensor.data_type == TensorProto.STRING:
        return b"".join(len(text).to_bytes(8, "little") + text for text in tensor.string_data)
    data = bytes(tensor.raw_data) if tensor.HasField("raw_data") else _content_of_fields(tensor)
    if len(data) != byte_count(tensor):
        raise ModelFileError(
            f"tensor `{tensor.name}` has {len(data)} bytes of data, its shape {list(tensor.dims)} "
            f"of {dtype_name(tensor.data_type)} needs {byte_count(tensor)}",
            hint="the file is damaged; export or download the model again",
        )
    return data


def _content_of_fields(tensor: TensorProto) -> bytes:
    field, storage = _TYPED_FIELDS.get(_TYPES.get(tensor.data_type, ""), ("int32_data", ""))
    values = getattr(tensor, field)
    if storage:
        return np.fromiter(values, dtype=storage, count=len(values)).tobytes()
    bits = element_bits(tensor.data_type)
    narrow = "<u2" if bits == 16 else "u1"  # types below 8 bits are packed: one entry is one byte
    return np.fromiter(values, dtype="<i4", count=len(values)).astype(narrow).tobytes()

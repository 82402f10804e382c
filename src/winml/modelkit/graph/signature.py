"""The inputs and outputs of a model file and its metadata, read off the protobuf: no onnx, no numpy, no weights.

Field numbers are those of onnx.proto.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import ModelFileError
from winml.modelkit.graph.sizes import Shape, name_dims
from winml.modelkit.graph.wire import fields_of, text_of, varint

_MODEL_GRAPH, _MODEL_METADATA = 7, 14
_GRAPH_INITIALIZER, _GRAPH_INPUT, _GRAPH_OUTPUT, _GRAPH_SPARSE = 5, 11, 12, 15
_TENSOR_NAME, _SPARSE_VALUES = 8, 1
_VALUE_NAME, _VALUE_TYPE = 1, 2
_TYPE_TENSOR = 1
_TENSOR_ELEMENT, _TENSOR_SHAPE = 1, 2
_SHAPE_DIM, _DIM_VALUE, _DIM_PARAM = 1, 1, 2
_WHOLE = frozenset({2, 3, 4, 5, 6, 7, 12, 13})
"""Element types that are whole numbers."""
_ENTRY_KEY, _ENTRY_VALUE = 1, 2


@dataclass(frozen=True)
class SignatureInput:
    """An input that a caller must give, or an output."""

    name: str
    shape: Shape
    """Sizes and names of open dimensions; one without a name goes by its place, as `x[2]`."""
    unnamed: bool
    """Whether the file leaves a dimension open without a name."""
    whole: bool
    """Whether its values are whole numbers."""


@dataclass(frozen=True)
class Signature:
    """What a model file says of its inputs and outputs."""

    inputs: tuple[SignatureInput, ...]
    metadata: dict[str, str]
    outputs: tuple[SignatureInput, ...] = ()

    @property
    def is_open(self) -> bool:
        return any(isinstance(dim, str) for value in self.inputs for dim in value.shape)

    @property
    def unnamed(self) -> bool:
        return any(value.unnamed for value in self.inputs)


def read_signature(path: Path) -> Signature:
    """The inputs and the metadata of the model in `path`."""
    try:
        with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            metadata: dict[str, str] = {}
            inputs: list[SignatureInput] = []
            outputs: list[SignatureInput] = []
            given: set[str] = set()
            for number, begin, end in fields_of(data, 0, len(data)):
                if number == _MODEL_METADATA:
                    entry = {n: text_of(data, s, e) for n, s, e in fields_of(data, begin, end)}
                    metadata[entry.get(_ENTRY_KEY, "")] = entry.get(_ENTRY_VALUE, "")
                elif number == _MODEL_GRAPH:
                    inputs += _values(data, begin, end, _GRAPH_INPUT)
                    outputs += _values(data, begin, end, _GRAPH_OUTPUT)
                    given |= set(_initializers(data, begin, end))
    except (ValueError, IndexError, OSError) as error:
        raise ModelFileError(
            f"`{path}` is not an ONNX model, or it is truncated: {error}",
            hint="check that the download or export finished",
        ) from error
    return Signature(tuple(value for value in inputs if value.name not in given), metadata, tuple(outputs))


def _values(data: mmap.mmap, begin: int, end: int, field: int) -> Iterator[SignatureInput]:
    for number, start, stop in fields_of(data, begin, end):
        if number == field:
            yield _value(data, start, stop)


def _initializers(data: mmap.mmap, begin: int, end: int) -> Iterator[str]:
    for number, start, stop in fields_of(data, begin, end):
        tensors = [(start, stop)] if number == _GRAPH_INITIALIZER else []
        if number == _GRAPH_SPARSE:
            tensors = [(s, e) for n, s, e in fields_of(data, start, stop) if n == _SPARSE_VALUES]
        for first, last in tensors:
            yield from (text_of(data, s, e) for n, s, e in fields_of(data, first, last) if n == _TENSOR_NAME)


def _value(data: mmap.mmap, begin: int, end: int) -> SignatureInput:
    name, element = "", 0
    shape: list[int | str | None] = []
    for number, start, stop in fields_of(data, begin, end):
        if number == _VALUE_NAME:
            name = text_of(data, start, stop)
        elif number == _VALUE_TYPE:
            tensors = [(s, e) for n, s, e in fields_of(data, start, stop) if n == _TYPE_TENSOR]
            for field, s, e in (field for tensor in tensors for field in fields_of(data, *tensor)):
                if field == _TENSOR_ELEMENT:
                    element = varint(data, s)[0]
                elif field == _TENSOR_SHAPE:
                    shape = [_dim(data, *dim[1:]) for dim in fields_of(data, s, e) if dim[0] == _SHAPE_DIM]
    return SignatureInput(name, name_dims(name, shape), None in shape, element in _WHOLE)


def _dim(data: mmap.mmap, begin: int, end: int) -> int | str | None:
    """A size, a name, or None for a dimension with neither."""
    for number, start, stop in fields_of(data, begin, end):
        if number == _DIM_PARAM and stop > start:
            return text_of(data, start, stop)
        if number == _DIM_VALUE:
            value = varint(data, start)[0]
            return value if value < 1 << 63 else None  # negative numbers mean open, too
    return None

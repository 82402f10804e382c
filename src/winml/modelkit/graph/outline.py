"""The nodes of a model file: names, types and edges, and the sizes of its weights without their content.

Read off the protobuf directly: it takes milliseconds for gigabytes of weights, and works in environments that have no
onnx. Field numbers are those of onnx.proto.
"""

from __future__ import annotations

import mmap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from math import prod
from pathlib import Path

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import ModelFileError
from winml.modelkit.graph.wire import BYTES, FIXED64, VARINT, fields_of, text_of, varint

_MODEL_GRAPH = 7
_GRAPH_NODE, _GRAPH_INITIALIZER = 1, 5
_NODE_INPUT, _NODE_OUTPUT, _NODE_NAME, _NODE_TYPE, _NODE_ATTRIBUTE, _NODE_DOMAIN = 1, 2, 3, 4, 5, 7
_ATTRIBUTE_NAME, _ATTRIBUTE_INT, _ATTRIBUTE_TEXT = 1, 3, 4
_ATTRIBUTE_TENSOR, _ATTRIBUTE_GRAPH, _ATTRIBUTE_GRAPHS = 5, 6, 11
_TENSOR_DIMS, _TENSOR_TYPE, _TENSOR_NAME = 1, 2, 8
_MODEL_FUNCTIONS, _FUNCTION_NODE = 25, 7

_BITS = {
    1: 32, 2: 8, 3: 8, 4: 16, 5: 16, 6: 32, 7: 64, 9: 8, 10: 16, 11: 64, 12: 32, 13: 64, 14: 64, 15: 128, 16: 16,
    17: 8, 18: 8, 19: 8, 20: 8, 21: 4, 22: 4, 23: 4, 24: 8, 25: 2, 26: 2,
}  # fmt: skip
"""Bits of an element by the number of its data type in onnx.proto."""


@dataclass(frozen=True)
class OutlineNode:
    """A node of the model; nodes of subgraphs have no index."""

    label: str
    """Its name; `OpType_index`, as the runtime writes it, for a node without one or with another's."""
    name: str
    op_type: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    index: int | None


@dataclass(frozen=True)
class Outline:
    """The nodes of a model in file order, and the names of its weights."""

    nodes: tuple[OutlineNode, ...]
    weights: frozenset[str]
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Dimensions of the weights, those of Constant nodes among them."""
    weight_bytes: int = 0
    """What the weights take, wherever they are stored."""

    @property
    def compiled(self) -> bool:
        """Whether parts of it were compiled for an EP and hold nodes this file does not show."""
        return any(node.op_type == "EPContext" for node in self.nodes)


@dataclass(frozen=True)
class _Raw:
    name: str
    op_type: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    graphs: tuple[tuple[int, int], ...]
    constants: tuple[tuple[int, ...], ...] = ()
    """Dimensions of the tensors among its attributes."""


@dataclass(frozen=True)
class _Weight:
    name: str
    dims: tuple[int, ...]
    data_type: int


def _numbers(data: mmap.mmap, begin: int, end: int, tag: int) -> Iterator[int]:
    """A repeated number, written one by one or packed."""
    at = begin
    while at < end:
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, at = varint(data, at)
            if number == tag:
                yield value
        elif kind == BYTES:
            length, at = varint(data, at)
            stop = at + length
            while number == tag and at < stop:
                value, at = varint(data, at)
                yield value
            at = stop
        else:
            at += 8 if kind == FIXED64 else 4


def _tensor(data: mmap.mmap, begin: int, end: int) -> _Weight:
    names = [text_of(data, s, e) for n, s, e in fields_of(data, begin, end) if n == _TENSOR_NAME]
    kind = next(_numbers(data, begin, end, _TENSOR_TYPE), 0)
    return _Weight(names[-1] if names else "", tuple(_numbers(data, begin, end, _TENSOR_DIMS)), kind)


def _node(data: mmap.mmap, begin: int, end: int) -> _Raw:
    texts: dict[int, list[str]] = {}
    graphs: list[tuple[int, int]] = []
    constants: list[tuple[int, ...]] = []
    for number, start, stop in fields_of(data, begin, end):
        if number == _NODE_ATTRIBUTE:
            parts = list(fields_of(data, start, stop))
            graphs += [(s, e) for n, s, e in parts if n in (_ATTRIBUTE_GRAPH, _ATTRIBUTE_GRAPHS)]
            constants += [_tensor(data, s, e).dims for n, s, e in parts if n == _ATTRIBUTE_TENSOR]
        elif number in (_NODE_INPUT, _NODE_OUTPUT, _NODE_NAME, _NODE_TYPE, _NODE_DOMAIN):
            texts.setdefault(number, []).append(text_of(data, start, stop))
    one = {number: values[-1] for number, values in texts.items()}
    return _Raw(
        one.get(_NODE_NAME, ""),
        one.get(_NODE_TYPE, ""),
        one.get(_NODE_DOMAIN, ""),
        tuple(texts.get(_NODE_INPUT, ())),
        tuple(texts.get(_NODE_OUTPUT, ())),
        tuple(graphs),
        tuple(constants),
    )


def _graph(data: mmap.mmap, begin: int, end: int, *, top: bool) -> Iterator[tuple[_Raw, int | None] | _Weight]:
    """Nodes with their index, those of subgraphs without one, and weights."""
    index = 0
    for number, start, stop in fields_of(data, begin, end):
        if number == _GRAPH_NODE:
            raw = _node(data, start, stop)
            yield raw, index if top else None
            index += 1
            for inner in raw.graphs:
                yield from _graph(data, *inner, top=False)
        elif number == _GRAPH_INITIALIZER:
            yield _tensor(data, start, stop)


def _label_nodes(found: list[tuple[_Raw, int | None]]) -> tuple[OutlineNode, ...]:
    uses = Counter(raw.name for raw, _ in found)
    nodes = []
    for position, (raw, index) in enumerate(found):
        number = position if index is None else index
        label = raw.name if raw.name and uses[raw.name] == 1 else f"{raw.name or raw.op_type}_{number}"
        nodes.append(OutlineNode(label, raw.name, raw.op_type, raw.domain, raw.inputs, raw.outputs, index))
    return tuple(nodes)


def _context_names(data: mmap.mmap, begin: int, end: int) -> Iterator[str]:
    """The files that a node names if it is an EPContext that does not hold its data itself.

    An attribute that is there twice counts twice: runtimes may take either one.
    """
    op_type, names, modes = "", list[tuple[int, int]](), list[int]()
    for number, start, stop in fields_of(data, begin, end):
        if number == _NODE_TYPE:
            op_type = text_of(data, start, stop)
        elif number == _NODE_ATTRIBUTE:
            found = {n: (s, e) for n, s, e in fields_of(data, start, stop)}
            name = text_of(data, *found.get(_ATTRIBUTE_NAME, (0, 0)))
            if name == "embed_mode":
                modes.append(varint(data, found[_ATTRIBUTE_INT][0])[0] if _ATTRIBUTE_INT in found else 0)
            elif name == "ep_cache_context" and _ATTRIBUTE_TEXT in found:
                names.append(found[_ATTRIBUTE_TEXT])
    if op_type == "EPContext" and any(mode != 1 for mode in modes):
        yield from (text_of(data, *extent) for extent in names)


def _node_extents(data: mmap.mmap, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Every node of a graph, those of subgraphs included."""
    for number, start, stop in fields_of(data, begin, end):
        if number == _GRAPH_NODE:
            yield start, stop
            for inner in _node(data, start, stop).graphs:
                yield from _node_extents(data, *inner)


def _all_nodes(data: mmap.mmap) -> Iterator[tuple[int, int]]:
    for number, start, stop in fields_of(data, 0, len(data)):
        if number == _MODEL_GRAPH:
            yield from _node_extents(data, start, stop)
        elif number == _MODEL_FUNCTIONS:
            yield from ((s, e) for n, s, e in fields_of(data, start, stop) if n == _FUNCTION_NODE)


def context_file_names(path: Path) -> tuple[str, ...]:
    """The files that EPContext nodes of a model name, as they are written there."""
    try:
        with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if data.find(b"EPContext") < 0:  # nearly all models, and found out at the speed of memory
                return ()
            found = [name for extent in _all_nodes(data) for name in _context_names(data, *extent)]
    except (ValueError, IndexError, OSError, RecursionError) as error:
        raise ModelFileError(f"the nodes of `{path}` cannot be read: {error}") from error
    return tuple(dict.fromkeys(found))


def _subgraphs_of_functions(data: mmap.mmap, begin: int, end: int) -> Iterator[tuple[int, int]]:
    for number, start, stop in fields_of(data, begin, end):
        if number == _FUNCTION_NODE:
            yield from _node(data, start, stop).graphs


def has_matrix_of_type(path: Path, data_type: int) -> bool:
    """Whether a weight with two dimensions or more has this data type, by its number in onnx.proto."""
    try:
        with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            for number, start, stop in fields_of(data, 0, len(data)):
                graphs: Iterable[tuple[int, int]] = ()
                if number == _MODEL_GRAPH:
                    graphs = ((start, stop),)
                elif number == _MODEL_FUNCTIONS:
                    graphs = _subgraphs_of_functions(data, start, stop)
                for extent in graphs:
                    for item in _graph(data, *extent, top=False):
                        if isinstance(item, _Weight) and item.data_type == data_type and len(item.dims) > 1:
                            return True
    except (ValueError, IndexError, OSError, RecursionError) as error:
        raise ModelFileError(f"the nodes of `{path}` cannot be read: {error}") from error
    return False


def outline(path: Path) -> Outline:
    """The nodes of the model in `path`."""
    try:
        with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            graphs = [(s, e) for number, s, e in fields_of(data, 0, len(data)) if number == _MODEL_GRAPH]
            items = [item for begin, end in graphs for item in _graph(data, begin, end, top=True)]
    except (ValueError, IndexError, OSError) as error:
        raise ModelFileError(f"the nodes of `{path}` cannot be read: {error}") from error
    found = [item for item in items if not isinstance(item, _Weight)]
    weights = [item for item in items if isinstance(item, _Weight)]
    shapes = {w.name: w.dims for w in weights}
    for raw, _ in found:
        if raw.op_type == "Constant" and raw.constants:
            shapes |= dict.fromkeys(raw.outputs[:1], raw.constants[0])
    size = sum(prod(w.dims) * _BITS.get(w.data_type, 32) for w in weights) // 8
    return Outline(_label_nodes(found), frozenset(w.name for w in weights), shapes, size)

"""Sizes of open dimensions that the graph itself fixes, because another size would not run.

Only what is certain: a dimension of an input reaches an operator as it is (onnx follows names through the graph), and
the operator takes it in one size alone. Two answers are none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from onnx import ModelProto, NodeProto, numpy_helper

from winml.modelkit.graph import files, walk
from winml.modelkit.graph.macs import dynamic_axes, infer_structure, runtime_inputs
from winml.modelkit.graph.sizes import Size

Shape = tuple[int | str | None, ...]
Pair = tuple[int | str | None, int | str | None]
"""A dimension, and what it must equal."""

_BROADCAST = frozenset(
    {"Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum", "Mean", "Where", "Equal", "Greater", "Less", "And", "Or"}
    | {"PRelu", "Mod", "Xor"}
)
_CONVOLUTIONS = ("Conv", "ConvInteger")
_PRODUCTS = ("MatMul", "MatMulInteger")
_RECURRENT = ("LSTM", "GRU", "RNN")
_NORMALIZATIONS = ("LayerNormalization", "RMSNormalization")
_PER_CHANNEL = ("BatchNormalization", "InstanceNormalization")


def infer(args: dict[str, Any], context: object) -> dict[str, Size]:
    """Worker operation: the sizes that the graph of the model file `args["path"]` fixes."""
    path = Path(args["path"])
    return infer_sizes(files.load(path, weights=False), path)


def infer_sizes(model: ModelProto, path: Path | None = None) -> dict[str, Size]:
    """The sizes that the graph fixes, with the node that does; `path` is where small external tensors lie."""
    structure = infer_structure(model, None if path is None else partial(files.read_external, path=path))
    symbols = {name for value in runtime_inputs(model.graph) for _, name in dynamic_axes(value)}
    shapes = _shapes(structure)
    constants = {tensor.name: tensor for tensor in structure.graph.initializer}
    found: dict[str, Size] = {}
    wrong: set[str] = set()
    for node in structure.graph.node:
        for name, size in _equal(node, shapes, constants):
            if name in symbols and found.setdefault(name, _size(node, size)).size != size:
                wrong.add(name)
    return {name: size for name, size in found.items() if name not in wrong}


def _size(node: NodeProto, size: int) -> Size:
    return Size(size, "graph", f"required by {node.op_type} `{node.name or next(iter(node.output), '')}`")


def _shapes(model: ModelProto) -> dict[str, Shape]:
    graph = model.graph
    found: dict[str, Shape] = {
        value.name: tuple(_dim(dim) for dim in value.type.tensor_type.shape.dim)
        for value in (*graph.value_info, *graph.output, *graph.input)
        if value.type.tensor_type.HasField("shape")
    }
    return found | {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}


def _dim(dim: Any) -> int | str | None:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    return str(dim.dim_param) or None


def _equal(node: NodeProto, shapes: Mapping[str, Shape], constants: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Names with the size that a node forces on them."""
    known = [shapes.get(name) for name in node.input]
    pairs: list[Pair] = []
    rule = _RULES.get(node.op_type)
    if rule is not None and node.domain in ("", "ai.onnx"):
        pairs = list(rule(node, known))
    elif node.op_type == "Reshape" and known and known[0] is not None:
        pairs = list(_reshape(node, known[0], constants))
    for left, right in pairs:
        for name, size in ((left, right), (right, left)):
            if isinstance(name, str) and isinstance(size, int) and size > 0:
                yield name, size


def _at(shape: Shape | None, index: int) -> int | str | None:
    return shape[index] if shape is not None and -len(shape) <= index < len(shape) else None


def _operand(known: list[Shape | None], index: int) -> Shape | None:
    return known[index] if index < len(known) else None


def _broadcast(node: NodeProto, known: list[Shape | None]) -> Iterator[Pair]:
    """A size above 1 that meets a name: the name could be 1 only if the model repeated its whole input."""
    shapes = [shape for shape in known if shape is not None]
    for back in range(1, max((len(shape) for shape in shapes), default=0) + 1):
        dims = {_at(shape, -back) for shape in shapes if len(shape) >= back}
        sizes = {dim for dim in dims if isinstance(dim, int) and dim > 1}
        if len(sizes) == 1:
            size = sizes.pop()
            yield from ((dim, size) for dim in dims if isinstance(dim, str))


def _convolution(node: NodeProto, known: list[Shape | None]) -> Iterator[Pair]:
    channels = _at(_operand(known, 1), 1)
    if isinstance(channels, int):
        yield _at(_operand(known, 0), 1), channels * walk.attribute_value(node, "group", 1)


def _product(node: NodeProto, known: list[Shape | None]) -> Iterator[Pair]:
    left, right = _operand(known, 0), _operand(known, 1)
    if left and right:
        yield left[-1], right[-2] if len(right) > 1 else right[0]


def _gemm(node: NodeProto, known: list[Shape | None]) -> Iterator[Pair]:
    across, down = (walk.attribute_value(node, name, 0) for name in ("transA", "transB"))
    yield _at(_operand(known, 0), 0 if across else 1), _at(_operand(known, 1), 1 if down else 0)


def _recurrent(node: NodeProto, known: list[Shape | None]) -> Iterator[Pair]:
    weights, recurrence = _operand(known, 1), _operand(known, 2)
    if walk.attribute_value(node, "layout", 0):
        return
    yield _at(_operand(known, 0), 2), _at(weights, 2)
    for state in (_operand(known, 5), _operand(known, 6)):
        yield _at(state, 0), _at(recurrence, 0)
        yield _at(state, 2), _at(recurrence, 2)


def _normalization(node: NodeProto, known: list[Shape | None]) -> Iterator[Pair]:
    data, scale = _operand(known, 0), _operand(known, 1)
    for back in range(1, len(scale or ()) + 1):
        size = _at(scale, -back)
        if isinstance(size, int) and size > 1:
            yield _at(data, -back), size


def _per_channel(node: NodeProto, known: list[Shape | None]) -> Iterator[Pair]:
    yield _at(_operand(known, 0), 1), _at(_operand(known, 1), 0)


def _concat(node: NodeProto, known: list[Shape | None]) -> Iterator[Pair]:
    shapes = [shape for shape in known if shape]
    rank = len(shapes[0]) if shapes else 0
    joined = walk.attribute_value(node, "axis", 0) % rank if rank else 0
    for index in range(rank):
        dims = {_at(shape, index) for shape in shapes}
        sizes = [dim for dim in dims if isinstance(dim, int)]
        if index != joined and len(sizes) == 1:
            yield from ((dim, sizes[0]) for dim in dims if isinstance(dim, str))


def _reshape(node: NodeProto, data: Shape, constants: Mapping[str, Any]) -> Iterator[Pair]:
    """The one open dimension of a tensor whose elements are counted by the shape it gets."""
    wanted = constants.get(node.input[1]) if len(node.input) > 1 else None
    if wanted is None or not wanted.raw_data:
        return
    sizes = [int(size) for size in numpy_helper.to_array(wanted)]
    names = [dim for dim in data if not isinstance(dim, int)]
    rest = math.prod(dim for dim in data if isinstance(dim, int))
    total = math.prod(sizes)
    if len(names) == 1 and all(size > 0 for size in sizes) and rest and total % rest == 0:
        yield names[0], total // rest


_RULES: dict[str, Callable[[NodeProto, list[Shape | None]], Iterator[Pair]]] = {
    **dict.fromkeys(_BROADCAST, _broadcast),
    **dict.fromkeys(_CONVOLUTIONS, _convolution),
    **dict.fromkeys(_PRODUCTS, _product),
    **dict.fromkeys(_RECURRENT, _recurrent),
    **dict.fromkeys(_NORMALIZATIONS, _normalization),
    **dict.fromkeys(_PER_CHANNEL, _per_channel),
    "Gemm": _gemm,
    "Concat": _concat,
}

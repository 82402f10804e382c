"""An estimate of the multiply-accumulate operations of one run of a model, from shapes alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import onnx.checker
import onnx.inliner
from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.graph import walk
from winml.modelkit.graph.description import MACs
from winml.modelkit.graph.shapes import infer_shapes
from winml.modelkit.graph.sizes import is_batch, open_dims
from winml.modelkit.graph.tensors import byte_count, content, is_external

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from onnx import ValueInfoProto

Shape = tuple[int | None, ...]
"""A shape whose unknown sizes are None."""

SMALL_BYTES = 1024
"""Tensors up to this size may hold a shape, axes or scales, which shape inference reads; larger ones are weights."""

_KERNELS = {"Conv": 1, "ConvInteger": 1, "QLinearConv": 3, "ConvTranspose": 1}
"""Convolutions and where their weights are among the inputs."""

_MATRIX_PRODUCTS = ("MatMul", "MatMulInteger", "QLinearMatMul")

_OPAQUE_ONNX = ("Attention", "DeformConv", "Einsum", "GRU", "LSTM", "RNN")
_OPAQUE_WORDS = ("Attention", "Conv", "EPContext", "GRU", "Gemm", "LSTM", "MatMul", "MoE")
"""Operators of ONNX, and words in the names of ONNX Runtime's own, that multiply in a way not counted here."""


_REFUSALS = (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, ValueError, RuntimeError)
"""What onnx raises for a model it cannot work on; the last two for unknown element types and its own assertions."""


@dataclass(frozen=True)
class _StandIn:
    """The ONNX operator with the same output shape, and which inputs it takes from the one it stands for."""

    op_type: str
    inputs: tuple[int, ...] = (0,)
    without: tuple[str, ...] = ()
    """Attributes that the ONNX operator does not have; a true one changes the shape, so nothing is stood in then."""


_FLOAT_ACTIVATIONS = ("BiasGelu", "FastGelu", "Gelu", "QuickGelu")
_NORMALIZATIONS = ("SimplifiedLayerNormalization", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
_QUANTIZED_ACTIVATIONS = ("QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax")

_STAND_INS = {
    "DynamicQuantizeMatMul": _StandIn("MatMul", (0, 1)),
    "FusedConv": _StandIn("Conv", (0, 1, 2)),
    "FusedGemm": _StandIn("Gemm", (0, 1, 2)),
    "FusedMatMul": _StandIn("MatMul", (0, 1), ("transA", "transB", "transBatchA", "transBatchB")),
    "MatMulIntegerToFloat": _StandIn("MatMul", (0, 1)),
    "QGemm": _StandIn("Gemm", (0, 3)),
    "QLinearAdd": _StandIn("Add", (0, 3)),
    "QLinearAveragePool": _StandIn("AveragePool", (0,), ("channels_last",)),
    "QLinearGlobalAveragePool": _StandIn("GlobalAveragePool", (0,), ("channels_last",)),
    "QLinearMul": _StandIn("Mul", (0, 3)),
    **dict.fromkeys((*_FLOAT_ACTIVATIONS, *_NORMALIZATIONS, *_QUANTIZED_ACTIVATIONS), _StandIn("Identity")),
}
"""Operators of ONNX Runtime, for which onnx infers no shape. A model saved by ONNX Runtime declares none either."""


@dataclass(frozen=True)
class _Count:
    macs: int = 0
    counted: int = 0
    unknown: int = 0

    def __add__(self, other: _Count) -> _Count:
        return _Count(self.macs + other.macs, self.counted + other.counted, self.unknown + other.unknown)


def estimate_macs(
    model: ModelProto,
    *,
    dims: Mapping[str, int] | None = None,
    read: Callable[[TensorProto], bytes] | None = None,
) -> MACs:
    """The MACs of one run with the dynamic axes at their size in `dims`; a batch without one has 1.

    What depends on an axis without a size is unknown. Of the branches of an If the larger one counts. Nodes in a Loop
    or Scan count as unknown: how often they run is not in the graph. `read` gets the bytes of small tensors whose data
    is in another file.
    """
    sizes = _axis_sizes(model, dims or {})
    structure, reason, unshaped = _structure(model, sizes, read)
    count = _count(structure.graph, {}, _opaque_functions(structure))
    macs = count.macs if count.counted or not count.unknown else None
    return MACs(macs, count.unknown, sizes, reason or unshaped)


def infer_structure(model: ModelProto, read: Callable[[TensorProto], bytes] | None = None) -> ModelProto:
    """The model without its weights, with the shapes that onnx infers; open dimensions keep their names."""
    return _structure(model, None, read)[0]


def _structure(
    model: ModelProto, sizes: Mapping[str, int] | None, read: Callable[[TensorProto], bytes] | None
) -> tuple[ModelProto, str | None, str | None]:
    """The model without weights and with shapes, and what onnx rejected on the way: functions, shapes."""
    structure = walk.copy_model(model, lambda source, target, _: _copy_small(source, target, read))
    reason = None
    if structure.functions:
        structure, reason = _ask_onnx(onnx.inliner.inline_local_functions, structure)
    _prepare(structure, sizes)
    structure, unshaped = _ask_onnx(infer_shapes, structure)
    return structure, reason, unshaped


def axis_name(value: ValueInfoProto, index: int) -> str | None:
    """What a dynamic axis is called: its symbol, or `x[0]` without one; None when its size is fixed."""
    dim = value.type.tensor_type.shape.dim[index]
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return None
    return dim.dim_param or f"{value.name}[{index}]"


def dynamic_axes(value: ValueInfoProto) -> Iterator[tuple[int, str]]:
    """Index and name of every dynamic axis of a tensor."""
    for index in range(len(value.type.tensor_type.shape.dim)):
        name = axis_name(value, index)
        if name is not None:
            yield index, name


def runtime_inputs(graph: GraphProto) -> list[ValueInfoProto]:
    """The inputs that a caller must give: those without an initializer."""
    given = {tensor.name for tensor in graph.initializer}
    given |= {sparse.values.name for sparse in graph.sparse_initializer}
    return [value for value in graph.input if value.name not in given]


def _axis_sizes(model: ModelProto, dims: Mapping[str, int]) -> dict[str, int]:
    axes = [name for value in runtime_inputs(model.graph) for _, name in dynamic_axes(value)]
    for name, size in dims.items():
        if name not in axes:
            found = ", ".join(f"`{axis}`" for axis in dict.fromkeys(axes)) or "none"
            raise RequestError(f"`{name}` is not a dynamic axis of the model's inputs; found: {found}")
        if size < 1:
            raise RequestError(f"the size of axis `{name}` must be at least 1 but got {size}")
    opened = open_dims(simple_inputs(model))
    return {**{name: 1 for name, places in opened.items() if is_batch(name, places)}, **dims}


@dataclass(frozen=True)
class SimpleInput:
    """An input by name and shape alone."""

    name: str
    shape: tuple[int | str, ...]


def _shape(value: ValueInfoProto) -> tuple[int | str, ...]:
    dims = value.type.tensor_type.shape.dim
    return tuple(axis_name(value, index) or dim.dim_value for index, dim in enumerate(dims))


def simple_inputs(model: ModelProto) -> list[SimpleInput]:
    """The inputs that a caller must give, with a name for every open dimension."""
    return [SimpleInput(value.name, _shape(value)) for value in runtime_inputs(model.graph)]


def _copy_small(source: TensorProto, target: TensorProto, read: Callable[[TensorProto], bytes] | None) -> None:
    """Copy a tensor, with its data only where shape inference may need it."""
    target.name = source.name
    target.data_type = source.data_type
    target.dims.extend(source.dims)
    if source.data_type == TensorProto.STRING or byte_count(source) > SMALL_BYTES:
        return
    if not is_external(source):
        target.raw_data = content(source)
    elif read is not None:
        target.raw_data = read(source)


def _ask_onnx(step: Callable[[ModelProto], ModelProto], model: ModelProto) -> tuple[ModelProto, str | None]:
    """The result of a step of onnx, or the unchanged model and why onnx rejected it."""
    try:
        return step(model), None
    except _REFUSALS as error:  # the shapes that the file declares are still there to count with
        return model, f"onnx could not infer shapes: {str(error).strip().partition(chr(10))[0]}"


def _prepare(model: ModelProto, sizes: Mapping[str, int] | None) -> None:
    for graph in walk.graphs(model):
        for node in graph.node:
            _stand_in(node, model.graph)
        if isinstance(graph, GraphProto) and sizes is not None:
            for value in (*graph.input, *graph.value_info, *graph.output):
                _fix_axes(value, sizes)
    if sizes is None:
        name_axes(model.graph)


def name_axes(graph: GraphProto) -> None:
    """Give every open dimension of an input a name: one without its own gets its place, as `x[2]`."""
    for value in runtime_inputs(graph):
        for index, name in list(dynamic_axes(value)):
            value.type.tensor_type.shape.dim[index].dim_param = name


def _stand_in(node: NodeProto, graph: GraphProto) -> None:
    if node.domain != "com.microsoft" and node.op_type != "SimplifiedLayerNormalization":
        return
    if node.op_type == "MatMulNBits":
        _stand_in_weights(node, graph)
    stand_in = _STAND_INS.get(node.op_type)
    if stand_in is None or any(walk.attribute_value(node, name, 0) for name in stand_in.without):
        return
    inputs = [node.input[index] for index in stand_in.inputs if index < len(node.input)]
    del node.input[:]
    node.input.extend(inputs)
    node.op_type = stand_in.op_type
    node.domain = ""


def _stand_in_weights(node: NodeProto, graph: GraphProto) -> None:
    """Turn MatMulNBits into a MatMul by a matrix of the shape that the packed weights have."""
    shape = (walk.attribute_value(node, "K", 0), walk.attribute_value(node, "N", 0))
    name = f"winml:weights:{len(graph.initializer)}"
    graph.initializer.add(name=name, data_type=TensorProto.FLOAT, dims=shape)
    inputs = [*node.input[:1], name]
    del node.input[:]
    node.input.extend(inputs)
    node.op_type, node.domain = "MatMul", ""


def _fix_axes(value: ValueInfoProto, sizes: Mapping[str, int]) -> None:
    """Give the dynamic axes their size; one that is not an axis of an input is left to inference."""
    for index, name in list(dynamic_axes(value)):
        dim = value.type.tensor_type.shape.dim[index]
        dim.Clear()
        if name in sizes:
            dim.dim_value = sizes[name]


def _opaque_functions(model: ModelProto) -> set[str]:
    """Functions that could not be inlined and multiply."""
    return {
        f"{function.domain}:{function.name}"
        for function in model.functions
        if any(_is_counted(node) or _is_opaque(node) for node in function.node)
    }


def _count(graph: GraphProto, outer: Mapping[str, Shape], opaque: set[str]) -> _Count:
    shapes = {**outer, **_shapes_of(graph)}
    total = _Count()
    for node in graph.node:
        branches = [_count(inner, shapes, opaque) for inner in walk.subgraphs(node)]
        if branches and node.op_type == "If":
            largest = max(branches, key=lambda branch: branch.macs)
            total += _Count(largest.macs, largest.counted, sum(branch.unknown for branch in branches))
        elif branches:  # how often the body of a loop runs is unknown
            total += _Count(unknown=sum(body.counted + body.unknown for body in branches))
        elif _is_counted(node):
            macs = _node_macs(node, shapes)
            total += _Count(unknown=1) if macs is None else _Count(macs, counted=1)
        elif _is_opaque(node) or walk.op_key(node) in opaque:
            total += _Count(unknown=1)
    return total


def _is_counted(node: NodeProto) -> bool:
    return walk.domain_of(node.domain) == "" and (
        node.op_type in _KERNELS or node.op_type in _MATRIX_PRODUCTS or node.op_type == "Gemm"
    )


def _is_opaque(node: NodeProto) -> bool:
    """Whether a node multiplies, or may do so, in a way not counted here."""
    if node.domain in walk.ONNX_DOMAINS:
        return node.op_type in _OPAQUE_ONNX
    return not node.domain.startswith("com.microsoft") or any(word in node.op_type for word in _OPAQUE_WORDS)


def _shapes_of(graph: GraphProto) -> dict[str, Shape]:
    shapes: dict[str, Shape] = {}
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.HasField("shape"):
            dims = value.type.tensor_type.shape.dim
            # inference gives -1 where a kernel does not fit into an axis that was taken as 1
            shapes[value.name] = tuple(
                dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else None for dim in dims
            )
    shapes.update((tensor.name, tuple(tensor.dims)) for tensor in graph.initializer)
    return shapes


def _node_macs(node: NodeProto, shapes: Mapping[str, Shape]) -> int | None:
    """The MACs of one node, or None when a shape that it takes is not known."""
    known = [shapes.get(name) for name in node.input]
    output = shapes.get(node.output[0]) if node.output else None
    if node.op_type in _KERNELS:
        swept = known[0] if node.op_type == "ConvTranspose" and known else output
        kernel = known[_KERNELS[node.op_type]] if _KERNELS[node.op_type] < len(known) else None
        return _product(swept, kernel[1:] if kernel else None)
    left = known[0] if known else None
    if node.op_type == "Gemm":
        columns = _axis(known[1] if len(known) > 1 else None, 0 if walk.attribute_value(node, "transB", 0) else -1)
        return _product(left, columns)
    return _product(output, _axis(left, -1))


def _axis(shape: Shape | None, index: int) -> Shape | None:
    return (shape[index],) if shape else None


def _product(*shapes: Shape | None) -> int | None:
    sizes: list[int] = []
    for shape in shapes:
        if shape is None:
            return None
        for size in shape:
            if size is None:
                return None
            sizes.append(size)
    return math.prod(sizes)

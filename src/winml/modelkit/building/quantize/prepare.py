"""Makes a model ready for the quantizers of ONNX Runtime, which fail on much that is valid ONNX.

They confuse nodes without names, loop indefinitely on a bias that is also read as a value, miss weights in Constant
nodes, and trust stale types. Nothing here changes what the model computes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx.checker
import onnx.inliner
import onnx.shape_inference
from google.protobuf.message import EncodeError  # type: ignore[import-untyped]  # ships no types
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.graph import files, walk
from winml.modelkit.graph.opset import convert
from winml.modelkit.graph.quantization import quantization_of
from winml.modelkit.graph.tensors import byte_count
from winml.modelkit.graph.value_names import free_name

STREAMED_BYTES = 2**20
"""Smaller weights are read at once."""
FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16)

_REFUSALS = (
    onnx.checker.ValidationError,
    onnx.shape_inference.InferenceError,
    EncodeError,
    RuntimeError,
    ValueError,
)
"""What onnx raises for a model it cannot inline; the last three for models past 2 GB and its assertions."""

CHANNELS = "scales per channel"
"""The reason of an opset that only scales per channel need."""
_INT4_IR = 10
"""The first IR version with 4-bit tensors."""

_BIAS_INDEX = {
    "BatchNormalization": 2,
    "Conv": 2,
    "ConvTranspose": 2,
    "Gemm": 2,
    "InstanceNormalization": 2,
    "LayerNormalization": 2,
}
_WEIGHT_INDEX = {"Conv": 1, "ConvTranspose": 1, "MatMul": 1}


@dataclass(frozen=True)
class Prepared:
    """A model that can be quantized, and how it was prepared."""

    model: ModelProto
    notes: tuple[str, ...]
    contrib_pairs: bool = False
    """Its opset has no 16-bit and 4-bit pairs, so those of ONNX Runtime's own domain are written."""
    one_scale: str | None = None
    """Why its weights can have one scale per tensor only; None where they can have one per channel."""

    @property
    def opset(self) -> int:
        return _opset(self.model)


def load(path: Path, *, streamed: bool = False) -> ModelProto:
    """The model at `path`; an error when it cannot be quantized at all.

    With `streamed` the large weights of products and tables stay in their file: nothing here looks into them.
    """
    model = files.load(path, weights=False)
    files.read_weights(model, path, besides=_find_streamed(model) if streamed else ())
    kind = quantization_of(model).kind
    if kind != "none":
        raise RequestError(
            f"`{path.name}` is quantized already ({kind})",
            hint="start from the float model; quantizing twice adds up the errors",
        )
    for node in walk.nodes(model):
        if node.op_type == "EPContext":
            raise RequestError(f"`{path.name}` is already compiled", hint="start from the model it was compiled from")
        if node.domain not in walk.ONNX_DOMAINS and any(walk.subgraphs(node)):
            raise RequestError(
                f"`{path.name}` has {walk.op_key(node)}, an operator of ONNX Runtime that holds graphs; quantizers "
                "cannot rewrite it",
                hint="quantize the graphs before they are put into that operator",
            )
    return model


def _find_streamed(model: ModelProto) -> set[str]:
    """Large initializers that are read as the weight of a MatMul or the table of a Gather, and as nothing else."""
    large = {tensor.name for tensor in model.graph.initializer if byte_count(tensor) >= STREAMED_BYTES}
    places = {("MatMul", 1), ("Gather", 0)}
    others = find_captured(model) | {value.name for value in (*model.graph.input, *model.graph.output)}
    for node in model.graph.node:
        others.update(name for index, name in enumerate(node.input) if (node.op_type, index) not in places)
    return large - others


def prepare(
    model: ModelProto,
    *,
    opset: int,
    reason: str = "quantized operators",
    contrib_from: int | None = None,
    one_scale_from: int | None = None,
) -> Prepared:
    """The model with at least `opset`, every node named, every weight where a quantizer finds it.

    `reason` says what needs that opset. A model that cannot be converted may stay below it: with the pairs of ONNX
    Runtime's own domain if it has `contrib_from` at least, with one scale per tensor if it has `one_scale_from`.
    """
    notes: list[str] = []
    model = _inline(model, notes)
    del model.graph.value_info[:]  # a fused model's may be stale; the runtime is asked instead
    contrib_pairs, one_scale = False, None
    try:
        model = _raise_opset(model, opset, reason, notes)
    except RequestError as error:
        present = _opset(model)
        if contrib_from is not None and present >= contrib_from:
            contrib_pairs = True
            model.ir_version = max(model.ir_version, _INT4_IR)
            notes.append(
                f"{error.message}; QuantizeLinear and DequantizeLinear are written in the domain com.microsoft"
            )
        elif one_scale_from is not None and present >= one_scale_from:
            one_scale = f"scales per channel need opset {opset}, and {error.message}"
        else:
            raise RequestError(
                f"{reason} need opset {opset}, and {error.message}",
                hint=f"export the model again with opset {opset} or newer"
                + (", or quantize it with `--per-tensor`" if reason == CHANNELS else ""),
            ) from error
    _lift_constants(model.graph)
    _fix_default_inputs(model.graph, notes)
    name_nodes(model)
    _part_initializers(model)
    _row_biases(model.graph)
    return Prepared(model, tuple(notes), contrib_pairs, one_scale)


def find_captured(model: ModelProto) -> set[str]:
    """Names of outer values that are read inside the bodies of If, Loop and Scan."""
    return {name for node in model.graph.node for name in _read_inside(node)}


def _read_inside(node: NodeProto) -> Iterator[str]:
    for graph in walk.subgraphs(node):
        yield from (value.name for value in graph.output)
        for inner in graph.node:
            yield from (name for name in inner.input if name)
            yield from _read_inside(inner)


def reads(node: NodeProto) -> set[str]:
    """Every value a node needs, inside its bodies too."""
    return {name for name in node.input if name}.union(_read_inside(node))


def _opset(model: ModelProto) -> int:
    return max((entry.version for entry in model.opset_import if walk.domain_of(entry.domain) == ""), default=1)


def _inline(model: ModelProto, notes: list[str]) -> ModelProto:
    if not model.functions:
        return model
    try:
        inlined: ModelProto = onnx.inliner.inline_local_functions(model)
    except _REFUSALS as error:
        raise RequestError(f"the model's functions cannot be inlined: {_short(error)}") from error
    notes.append(f"{len(model.functions)} local functions were inlined")
    return inlined


def _raise_opset(model: ModelProto, opset: int, reason: str, notes: list[str]) -> ModelProto:
    """The model with an opset that has the operators a quantizer writes."""
    present = _opset(model)
    if present >= opset:
        return model
    if not any(walk.domain_of(entry.domain) == "" for entry in model.opset_import):
        model.opset_import.add(domain="", version=opset)  # none of its operators is there to convert
        return model
    try:
        raised = convert(model, opset)
    except EncodeError as error:
        raise RequestError(f"the model cannot be converted from opset {present} to {opset}: {_short(error)}") from error
    notes.append(f"the opset was raised from {present} to {opset}: {reason} need it")
    return raised


def _short(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:200] if lines else type(error).__name__


def _constant(node: NodeProto) -> TensorProto | None:
    """The float tensor of a Constant node."""
    if node.op_type != "Constant" or walk.domain_of(node.domain):
        return None
    for attribute in node.attribute:
        if attribute.name == "value" and attribute.t.data_type in FLOATS:
            tensor: TensorProto = attribute.t
            return tensor
    return None


def _lift_constants(graph: GraphProto) -> None:
    """Make the float tensors of Constant nodes initializers; quantizers see weights nowhere else."""
    outputs = {value.name for value in graph.output}
    kept = []
    for node in graph.node:
        tensor = _constant(node)
        if tensor is None or node.output[0] in outputs:
            kept.append(node)
        else:
            lifted = graph.initializer.add()
            lifted.CopyFrom(tensor)
            lifted.name = node.output[0]
    if len(kept) < len(graph.node):
        copies = [NodeProto.FromString(node.SerializeToString()) for node in kept]
        del graph.node[:]
        graph.node.extend(copies)


def _fix_default_inputs(graph: GraphProto, notes: list[str]) -> None:
    """Take initializers out of the inputs: a weight that a caller may replace cannot be quantized."""
    weights = {tensor.name for tensor in graph.initializer}
    optional = [value for value in graph.input if value.name in weights]
    for value in optional:
        graph.input.remove(value)
    if optional:
        notes.append(f"{len(optional)} inputs with a default value became constants")


def name_nodes(model: ModelProto) -> bool:
    """Give every node a name of its own, the same one in every run; whether any had none."""
    used: set[str] = {node.name for node in walk.nodes(model)}
    seen: set[str] = set()
    changed = False
    for number, node in enumerate(walk.nodes(model)):
        if not node.name or node.name in seen:
            node.name = free_name(f"{node.op_type}_{number}", used)
            changed = True
        seen.add(node.name)
    return changed


def _role(node: NodeProto, index: int) -> tuple[str, ...]:
    """How a quantizer treats an input: uses with the same role may share one quantized tensor."""
    if _BIAS_INDEX.get(node.op_type) == index:
        return ("bias", node.name)  # its scale comes from the other inputs of this very node
    if node.op_type == "Gemm" and index == 1:
        return ("weight", node.name)  # a quantizer may transpose it, for every node that has it
    if _WEIGHT_INDEX.get(node.op_type) == index:
        return ("weight", node.op_type)
    return ("value",)


def _part_initializers(model: ModelProto) -> None:
    """Give every role of a shared float initializer a copy of its own."""
    graph = model.graph
    weights = {tensor.name: tensor for tensor in graph.initializer if tensor.data_type in FLOATS}
    inside = find_captured(model) | {value.name for value in graph.output}
    names: dict[tuple[str, tuple[str, ...]], str] = {}
    # What a body reads keeps its name and stays as it is.
    taken = {name: True for name in weights if name in inside}
    used = {name for node in walk.nodes(model) for name in (*node.input, *node.output)} | set(weights)
    for node in graph.node:
        for index, name in enumerate(node.input):
            if name not in weights:
                continue
            key = name, _role(node, index)
            if key not in names:
                names[key] = free_name(name, used) if taken.get(name) else name
                taken[name] = True
                if names[key] != name:
                    copy = graph.initializer.add()
                    copy.CopyFrom(weights[name])
                    copy.name = names[key]
            node.input[index] = names[key]


def _row_biases(graph: GraphProto) -> None:
    """Write the bias of a Gemm as one number per channel where it means that: quantizers index it so."""
    weights = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type != "Gemm" or len(node.input) < 3:
            continue
        weight, bias = weights.get(node.input[1]), weights.get(node.input[2])
        if weight is None or bias is None:
            continue
        transposed = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
        channels = weight.dims[0 if transposed else 1]
        if list(bias.dims) in ([], [1], [1, 1], [1, channels]):
            row = np.broadcast_to(numpy_helper.to_array(bias).ravel(), (channels,))
            bias.CopyFrom(numpy_helper.from_array(row.copy(), bias.name))

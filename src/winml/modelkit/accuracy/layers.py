"""Layers: what lies between two values that both models have, and models of layers by themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from winml.modelkit.accuracy.matching import Matched
from winml.modelkit.accuracy.slices import DEQUANTIZE, QUANTIZE, Graph, Slice
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.graph import walk

Array = npt.NDArray[Any]

_LIMITS: dict[int, tuple[int, int]] = {
    TensorProto.UINT8: (0, 255), TensorProto.INT8: (-128, 127), TensorProto.UINT16: (0, 65535),
    TensorProto.INT16: (-32768, 32767), TensorProto.UINT4: (0, 15), TensorProto.INT4: (-8, 7),
}  # fmt: skip


@dataclass(frozen=True)
class Layer:
    """What computes a value in both models, from values that both have."""

    value: str
    """Its name in the reference."""
    own: Slice
    """In the candidate, with the pair of the value itself."""
    seen: str
    """The value in the candidate as its readers see it."""
    reference: Slice
    inputs: Mapping[str, str]
    """Values that the candidate reads, by their names there: names in the reference."""


def find_layers(reference: Graph, candidate: Graph, matched: Matched, floats: Iterable[str]) -> list[Layer]:
    """Layers in the order of the reference; an input that the candidate quantizes is one, too.

    A value that the candidate leaves in float between two quantized operators, as between a convolution and its Relu,
    ends no layer: an EP takes both as one.
    """
    usable = set(floats)
    ends = {}
    for name, other in matched.values.items():
        open_pair = candidate.reads_pairs(candidate.makers[other]) and candidate.seen(other) == other
        if name in usable and (not open_pair or other in candidate.outputs):
            ends[name] = other
    back = {other: name for name, other in ends.items()}
    found = [
        Layer(name, candidate.cut(candidate.seen(name), {name}), candidate.seen(name), Slice((), (name,)), {name: name})
        for name in reference.inputs
        if candidate.seen(name) != name
    ]
    for name, other in ends.items():
        seen = candidate.seen(other)
        own = candidate.cut(seen, back.keys() - {other})
        before = reference.cut(name, ends.keys() - {name})
        inputs = {value: back.get(value, value) for value in own.inputs}
        found.append(Layer(name, own, seen, before, inputs))
    return found


def expose(model: ModelProto, values: Iterable[str]) -> ModelProto:
    """The model with more outputs."""
    copy = ModelProto()
    copy.CopyFrom(model)
    known = {value.name for value in copy.graph.output}
    for name in values:
        if name not in known:
            copy.graph.output.append(onnx.ValueInfoProto(name=name))
    return copy


PREFIX = "winml-layer"
"""Names of joined models begin with it, so that none is a name of the models they come from."""


def expected_name(index: int, value: str) -> str:
    """The input of a layer by itself in the model of references."""
    return f"{PREFIX}/{index}/{value}"


def output_name(index: int) -> str:
    return f"{PREFIX}/{index}"


def join_candidates(
    candidate: Graph, layers: Sequence[tuple[int, Layer]], samples: Mapping[str, Array], types: Mapping[str, int]
) -> ModelProto:
    """One model in which every layer stands by itself: it reads values of the reference, by their names there."""
    joined = _Joined(candidate.model)
    for index, layer in layers:
        names = dict(layer.inputs)
        for value, name in names.items():
            kind = types.get(value, helper.np_dtype_to_tensor_dtype(samples[name].dtype))
            joined.add_input(name, kind, samples[name].shape)
        joined.add_layer(index, candidate, layer.own, names, layer.seen)
    return joined.model


def join_references(reference: Graph, layers: Sequence[tuple[int, Layer]], samples: Mapping[str, Array]) -> ModelProto:
    """The same layers as the reference has them, each with inputs of its own."""
    joined = _Joined(reference.model)
    for index, layer in layers:
        names = {value: expected_name(index, value) for value in layer.reference.inputs}
        for value, name in names.items():
            kind = helper.np_dtype_to_tensor_dtype(samples[value].dtype)
            joined.add_input(name, kind, samples[value].shape)
        joined.add_layer(index, reference, layer.reference, names, layer.value)
    return joined.model


class _Joined:
    """A model that layers are added to; names inside a layer are its own."""

    def __init__(self, source: ModelProto) -> None:
        self.model = ModelProto()
        self.model.ir_version = source.ir_version
        self.model.opset_import.extend(source.opset_import)
        self.model.functions.extend(source.functions)
        self.model.graph.name = "layers"
        self._tensors = {tensor.name: tensor for tensor in source.graph.initializer}
        self._inputs: set[str] = set()

    def add_input(self, name: str, kind: int, shape: Sequence[int]) -> None:
        if name not in self._inputs:
            self._inputs.add(name)
            self.model.graph.input.append(helper.make_tensor_value_info(name, kind, list(shape)))

    def add_layer(self, index: int, graph: Graph, part: Slice, inputs: Mapping[str, str], value: str) -> None:
        made = {name for position in part.nodes for name in graph.nodes[position].output if name}
        names = {**{name: f"{PREFIX}/{index}/{name}" for name in made}, **inputs}
        for position in part.nodes:
            node = self.model.graph.node.add()
            node.CopyFrom(graph.nodes[position])
            node.name = f"{PREFIX}/{index}/{node.name or position}"
            self._rename(node, names, index)
        self.model.graph.node.append(helper.make_node("Identity", [names[value]], [output_name(index)]))
        self.model.graph.output.append(onnx.ValueInfoProto(name=output_name(index)))

    def _rename(self, node: NodeProto, names: dict[str, str], index: int) -> None:
        for values in (node.input, node.output):
            for place, name in enumerate(values):
                if name and name not in names:
                    names[name] = self._add_constant(name, index)
                if name:
                    values[place] = names[name]
        for inner in walk.subgraphs(node):
            own = {value.name: value.name for value in inner.input}
            own |= {tensor.name: tensor.name for tensor in inner.initializer}
            own |= {name: name for one in inner.node for name in one.output if name}
            scoped = {**names, **own}
            for one in inner.node:
                self._rename(one, scoped, index)
            for value in inner.output:
                value.name = scoped.get(value.name, value.name)

    def _add_constant(self, name: str, index: int) -> str:
        """The name of a constant in a layer; what is none is a value of a graph inside, which keeps its name."""
        tensor = self._tensors.get(name)
        if tensor is None:
            return name
        copy = self.model.graph.initializer.add()
        copy.CopyFrom(tensor)
        made = f"{PREFIX}/{index}/{name}"
        copy.name = made
        return made


@dataclass(frozen=True)
class Pair:
    """How a value is quantized and dequantized."""

    scale: Array
    zero_point: Array
    axis: int
    least: int
    most: int

    def apply(self, value: Array) -> Array:
        """The value as its readers see it."""
        scale, zero = self._spread(value)
        steps = np.clip(np.rint(value.astype(np.float32) / scale) + zero, self.least, self.most)
        return np.asarray((steps - zero) * scale, value.dtype)

    def clipped(self, value: Array) -> int:
        """How many numbers lie beyond the range by more than a step."""
        scale, zero = self._spread(value)
        steps = value.astype(np.float32) / scale + zero
        return int(((steps < self.least - 1) | (steps > self.most + 1)).sum())

    def _spread(self, value: Array) -> tuple[Array, Array]:
        """Scale and zero point in a shape that goes with the value."""
        scale, zero = self.scale.astype(np.float32), self.zero_point.astype(np.float32)
        if scale.ndim == 1 and scale.size > 1:
            shape = [1] * value.ndim
            shape[self.axis] = scale.size
            return scale.reshape(shape), zero.reshape(shape)
        return scale.reshape(()), zero.reshape(())


def input_pairs(candidate: Graph, layer: Layer) -> dict[str, Pair]:
    """How a layer quantizes what it reads, by names in the reference; nothing for what it reads in float."""
    constants = {tensor.name: tensor for tensor in candidate.model.graph.initializer}
    found: dict[str, Pair] = {}
    inside = set(layer.own.nodes)
    if not layer.reference.nodes:
        return {}  # an input of the model: the pair is what the layer does
    for value, name in layer.inputs.items():
        readers = [candidate.nodes[index] for index in candidate.readers.get(value, ()) if index in inside]
        pairs = [node for node in readers if node.op_type == QUANTIZE and node.input[0] == value]
        if len(pairs) != len(readers) or not pairs:
            continue
        pair = _read_pair(pairs[0], constants)
        if pair is not None:
            found[name] = pair
    return found


def output_pair(candidate: Graph, layer: Layer) -> Pair | None:
    """How a layer quantizes what it gives; None where it stays in float."""
    constants = {tensor.name: tensor for tensor in candidate.model.graph.initializer}
    last = candidate.nodes[candidate.makers[layer.seen]] if layer.seen in candidate.makers else None
    if last is None or last.op_type != DEQUANTIZE or last.input[0] not in candidate.makers:
        return None
    first = candidate.nodes[candidate.makers[last.input[0]]]
    return _read_pair(first, constants) if first.op_type == QUANTIZE else None


def _read_pair(node: NodeProto, constants: Mapping[str, TensorProto]) -> Pair | None:
    """What a QuantizeLinear with constant numbers does; None for any other, as with blocks."""
    scale = constants.get(node.input[1])
    if scale is None or walk.attribute_value(node, "block_size", 0):
        return None
    zero = constants.get(node.input[2]) if len(node.input) > 2 and node.input[2] else None
    kind = zero.data_type if zero is not None else walk.attribute_value(node, "output_dtype", 0) or TensorProto.UINT8
    if kind not in _LIMITS or (zero is None and len(node.input) > 2 and node.input[2]):
        return None
    numbers = numpy_helper.to_array(scale)
    offsets = np.zeros(numbers.shape) if zero is None else numpy_helper.to_array(zero).astype(np.int64)
    least, most = _LIMITS[kind]
    return Pair(numbers, offsets, walk.attribute_value(node, "axis", 1), least, most)


def noise_name(value: str) -> str:
    """The input that is added to a value."""
    return f"{PREFIX}/noise/{value}"


def add_noise(model: ModelProto, values: Mapping[str, int]) -> ModelProto:
    """The model with an input for each of these values, by their types, that is added to it."""
    copy = ModelProto()
    copy.CopyFrom(model)
    plain = {value: f"{PREFIX}/plain/{value}" for value in values}
    makers = {name for node in copy.graph.node for name in node.output}
    given = [value for value in values if value not in makers]
    nodes = [helper.make_node("Add", [value, noise_name(value)], [plain[value]]) for value in given]
    for node in copy.graph.node:
        # Readers of an input of the model get the sum, those of a value its name.
        _rename_reads(node, {name: plain[name] for name in given})
        made = [name for name in node.output if name in plain]
        for place, name in enumerate(node.output):
            if name in plain:
                node.output[place] = plain[name]
        nodes.append(node)
        nodes += [helper.make_node("Add", [plain[name], noise_name(name)], [name]) for name in made]
    graph = copy.graph
    kept = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(kept)
    graph.input.extend(helper.make_tensor_value_info(noise_name(name), kind, None) for name, kind in values.items())
    return copy


def _rename_reads(node: NodeProto, names: Mapping[str, str]) -> None:
    """Let a node read values by other names, also inside its bodies, where a name that they define hides ours."""
    for place, name in enumerate(node.input):
        node.input[place] = names.get(name, name)
    for inner in walk.subgraphs(node):
        own = {value.name for value in inner.input} | {tensor.name for tensor in inner.initializer}
        own |= {name for one in inner.node for name in one.output}
        seen = {name: other for name, other in names.items() if name not in own}
        for one in inner.node:
            _rename_reads(one, seen)
        for value in inner.output:
            value.name = seen.get(value.name, value.name)


def describe_nodes(graph: Graph, part: Slice) -> list[tuple[str, str]]:
    """Name and operator of the nodes of a slice that compute something."""
    quiet = (QUANTIZE, DEQUANTIZE, "Constant", "Identity")
    return [
        (node.name or f"{node.op_type} #{index}", walk.op_key(node))
        for index in part.nodes
        for node in (graph.nodes[index],)
        if node.op_type not in quiet
    ]

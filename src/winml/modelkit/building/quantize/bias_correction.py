"""The mean error of products on calibration data, put into their bias.

Rounding weights to 8 bits shifts the mean of what a product gives, and cut-off activations do, too; layers behind it
get the shift of every sample. A bias costs nothing and can take it back. Every product is computed again beside
the float model with the pairs of the quantized one, on the float model's own values: the difference is what this
product does, and not what those before it did. One pass over the samples has all of them. Noise of the layers before
shifts means, too (a Relu makes a positive shift of it), so that up to 16 products, the last one among them, are then
corrected one after the other by what reaches them in the quantized model itself.

It is measured behind the Relu or Clip and the rounding that follow, since what these cut off needs no correction; a
shift of the bias reaches only the share of the values that they let through, so it is divided by that.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from winml.modelkit.building.quantize.finish import drop_unused_initializers, sort_nodes
from winml.modelkit.building.quantize.passes import Passes, Progress, Samples
from winml.modelkit.building.quantize.prepare import FLOATS, find_captured, reads
from winml.modelkit.building.quantize.runnable import Runnable
from winml.modelkit.building.quantize.select import NodeSelection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.graph import walk
from winml.modelkit.graph.value_names import free_name

SAMPLES = 64
"""Samples whose mean is taken: that of a channel is over all its values in them."""
IN_SEQUENCE = 16
"""Products that are corrected by all that reaches them; each takes a run of the model up to it."""
SAMPLES_IN_SEQUENCE = 32
PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
FOLLOWERS = ("QuantizeLinear", "DequantizeLinear", "Relu", "Clip")
LEAST_SHARE = 0.1
"""Of values that a Relu lets through; a channel with fewer is not corrected by more than ten times its mean error."""
NO_BIAS = "nothing adds a constant to it that could take its error"
NO_PAIRS = "its inputs are not quantized"
PREFIX = "winml.bias."
_PAIRS = ("QuantizeLinear", "DequantizeLinear")

Floats = npt.NDArray[np.float64]
Errors = Mapping[str, Floats]
"""What to subtract from the bias of each product, by its name."""


@dataclass(frozen=True)
class _Layer:
    """A product with the node that has its bias, in the float model."""

    product: NodeProto
    holder: NodeProto
    """The product itself, or the Add behind a MatMul."""
    index: int
    """Which input of the holder the bias is, or would be."""
    channels: int


@dataclass(frozen=True)
class Corrections:
    """The corrections of products, and how many have none, by reason."""

    by_layer: Errors
    left: Mapping[str, int]


def find_layers(model: ModelProto, selection: NodeSelection) -> tuple[list[_Layer], Counter[str]]:
    """The products that will be quantized and have a bias or may have one; the others by reason."""
    weights = {t.name: list(t.dims) for t in model.graph.initializer if t.data_type in FLOATS}
    seen = {value.name for value in model.graph.output} | find_captured(model)
    readers: dict[str, list[NodeProto]] = {}
    for node in model.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    found: list[_Layer] = []
    left: Counter[str] = Counter()
    for node in model.graph.node:
        if node.name not in selection.chosen or node.op_type not in PRODUCTS or walk.domain_of(node.domain):
            continue
        dims = weights.get(node.input[1]) if len(node.input) > 1 else None
        channels = None if dims is None else _channels(node, dims)
        layer = None
        if channels is not None and node.op_type != "MatMul":
            layer = _with_own_bias(node, channels, weights)
        elif channels is not None and node.output[0] not in seen:
            layer = _with_add(node, channels, weights, readers.get(node.output[0], []))
        if layer is None:
            left[NO_BIAS] += 1
        else:
            found.append(layer)
    return found, left


def _channels(node: NodeProto, dims: list[int]) -> int | None:
    if node.op_type == "Conv":
        return dims[0]
    if node.op_type == "ConvTranspose":
        return dims[1] * int(walk.attribute_value(node, "group", 1))
    if len(dims) != 2:
        return None
    return dims[0] if node.op_type == "Gemm" and walk.attribute_value(node, "transB", 0) else dims[1]


def _with_own_bias(node: NodeProto, channels: int, weights: Mapping[str, list[int]]) -> _Layer | None:
    bias = node.input[2] if len(node.input) > 2 else ""
    if bias and weights.get(bias) != [channels]:
        return None
    if node.op_type == "Gemm" and any(a.name == "beta" and a.f == 0.0 for a in node.attribute):
        return None
    return _Layer(node, node, 2, channels)


def _with_add(
    node: NodeProto, channels: int, weights: Mapping[str, list[int]], readers: list[NodeProto]
) -> _Layer | None:
    """A MatMul whose result goes into an Add with a constant row, and nowhere else."""
    if len(readers) != 1 or readers[0].op_type != "Add" or walk.domain_of(readers[0].domain):
        return None
    add = readers[0]
    index = next((i for i, name in enumerate(add.input) if weights.get(name) == [channels]), None)
    return None if index is None else _Layer(node, add, index, channels)


@dataclass(frozen=True)
class Tools:
    """What mean errors are measured with."""

    runnable: Runnable
    """The float model."""
    outputs: Sequence[str]
    samples: Samples
    progress: Progress
    folder: Path
    """For models that are run."""


def measure(
    model: ModelProto, first: ModelProto, selection: NodeSelection, tools: Tools, again: Callable[[Errors], ModelProto]
) -> Corrections:
    """What to subtract from the bias of every product that has pairs.

    `model` is the float one, `first` the quantized one without corrections; `again` quantizes with some.
    """
    layers, left = find_layers(model, selection)
    values = {name for node in model.graph.node for name in node.output} | {value.name for value in model.graph.input}
    copies = _Copies(first, values)
    outputs: dict[str, tuple[str, str]] = {}
    means: dict[str, str] = {}
    for layer in layers:
        made = copies.compute(layer.product)
        if made is None:
            left[NO_PAIRS] += 1
        else:
            outputs[layer.product.name] = copies.compare(layer.product, *made)
            means[layer.product.name] = copies.means(layer.product, made[1])
    if not outputs:
        return Corrections({}, dict(left))
    passes = Passes(tools.runnable, tools.outputs, tools.samples, tools.progress)
    names = [name for pair in outputs.values() for name in pair]
    found = _average(passes, [*names, *means.values()], copies.nodes, SAMPLES)
    shares = {name: np.maximum(found[share], LEAST_SHARE) for name, (_, share) in outputs.items()}
    errors = {name: found[error] / shares[name] for name, (error, _) in outputs.items()}
    some = _spread([layer for layer in layers if layer.product.name in outputs])
    if not some:
        return Corrections(errors, dict(left))
    few = _average(passes, [means[layer.product.name] for layer in some], copies.nodes, SAMPLES_IN_SEQUENCE)
    for number, layer in enumerate(some):
        name = layer.product.name
        quantized = again(errors)
        reached = _measure_mean(quantized, layer.product, values, tools, number)
        if reached is not None:
            errors[name] = errors[name] + (reached - few[means[name]]) / shares[name]
    return Corrections(errors, dict(left))


def _spread(layers: list[_Layer]) -> list[_Layer]:
    """As many of the layers as are corrected in sequence, evenly from first to last, with the last."""
    count = min(IN_SEQUENCE, len(layers))
    places = {round((number + 1) * len(layers) / count) - 1 for number in range(count)}
    return [layer for place, layer in enumerate(layers) if place in places]


def _average(passes: Passes, names: Sequence[str], nodes: Sequence[NodeProto], limit: int) -> dict[str, Floats]:
    """The mean of every value over the runs."""
    totals: dict[str, Floats] = {}
    runs = 0
    # Pairs are computed in float: kernels of this processor may saturate, those of the target may not.
    for found in passes.go(names, nodes, limit=limit, level="disable"):
        runs += 1
        for name in names:
            value = found[name].astype(np.float64)
            totals[name] = totals[name] + value if name in totals else value
    return {name: total / runs for name, total in totals.items()}


def _measure_mean(
    quantized: ModelProto, product: NodeProto, values: set[str], tools: Tools, number: int
) -> Floats | None:
    """The mean of what a product gives in the quantized model; None where it has no pairs there."""
    copies = _Copies(quantized, values)
    path, _ = copies.path(product)
    if not path:
        return None
    mean = copies.means(product, path[-1].output[0])
    folder = tools.folder / f"bias-{number}"
    folder.mkdir()
    runnable = Runnable(_up_to(quantized, path[-1].output[0]), folder)
    found = _average(Passes(runnable, [], tools.samples, tools.progress), [mean], copies.nodes, SAMPLES_IN_SEQUENCE)
    shutil.rmtree(folder, ignore_errors=True)
    return found[mean]


def _up_to(model: ModelProto, value: str) -> ModelProto:
    """The part of a model that a value is computed with."""
    part = ModelProto()
    part.CopyFrom(model)
    sort_nodes(part)
    wanted, kept = {value}, []
    for node in reversed(part.graph.node):
        if wanted.intersection(node.output):
            wanted |= reads(node)
            kept.append(NodeProto.FromString(node.SerializeToString()))
    del part.graph.node[:], part.graph.output[:]
    part.graph.node.extend(reversed(kept))
    part.graph.output.append(ValueInfoProto(name=value))
    drop_unused_initializers(part)
    return part


def apply(model: ModelProto, selection: NodeSelection, errors: Errors) -> int:
    """Subtract the mean errors from the biases of a float model; returns for how many products."""
    layers, _ = find_layers(model, selection)
    weights = {t.name: t for t in model.graph.initializer}
    used = set(weights) | {name for node in walk.nodes(model) for name in (*node.input, *node.output)}
    done = 0
    for layer in layers:
        error = errors.get(layer.product.name)
        if error is None or not np.isfinite(error).all():
            continue
        kind = numpy_helper.to_array(weights[layer.product.input[1]]).dtype
        holder, index = layer.holder, layer.index
        bias = holder.input[index] if len(holder.input) > index else ""
        before = numpy_helper.to_array(weights[bias]).astype(np.float64) if bias else np.zeros(layer.channels)
        beta = next((a.f for a in holder.attribute if a.name == "beta"), 1.0) if holder.op_type == "Gemm" else 1.0
        name = free_name(bias or f"{layer.product.name}_bias", used)
        tensor = numpy_helper.from_array((before - error / beta).astype(kind), name)
        model.graph.initializer.append(tensor)
        weights[name] = tensor
        if len(holder.input) > index:
            holder.input[index] = name
        else:
            holder.input.append(name)
        done += 1
    return done


class _Copies:
    """Nodes that compute products of a quantized model from the values of its float model."""

    def __init__(self, quantized: ModelProto, values: set[str]) -> None:
        self._values = values
        self._constants = {t.name: t for t in quantized.graph.initializer}
        self._producers = {name: node for node in quantized.graph.node for name in node.output}
        self._nodes = {node.name: node for node in quantized.graph.node}
        self._outputs = {value.name for value in quantized.graph.output}
        self._readers: dict[str, list[NodeProto]] = {}
        for node in quantized.graph.node:
            for name in node.input:
                self._readers.setdefault(name, []).append(node)
        self._made: dict[str, str] = {}
        opset = max((o.version for o in quantized.opset_import if walk.domain_of(o.domain) == ""), default=1)
        self._has_axes_input = opset >= 18
        self.nodes: list[NodeProto] = []

    def compute(self, product: NodeProto) -> tuple[str, str] | None:
        """What a product and what follows it give in the quantized model, and the float value that this stands for.

        None where the product reads nothing that is quantized.
        """
        path, stands_for = self.path(product)
        if not path:
            return None
        made: str | None = None
        for node in path:
            values = [self._value(name) if name else "" for name in node.input]
            inputs = values if made is None else [made, *values[1:]]
            if any(name is None for name in inputs):
                return None
            made = self._copy(node, [str(name) for name in inputs])
        return str(made), stands_for

    def path(self, product: NodeProto) -> tuple[list[NodeProto], str]:
        """A product of the quantized model with what follows it, and the float value that comes of it.

        The path is empty where the product reads nothing that is quantized.
        """
        node = self._nodes.get(product.name)
        if node is None or not any(self._is_pair(name) for name in node.input[:2]):
            return [], ""
        path, stands_for = [node], str(product.output[0])
        found = list(path)
        while (reader := self._only_reader(str(path[-1].output[0]))) is not None:
            path.append(reader)
            value = str(reader.output[0])
            # The quantizer takes a Relu out by letting the product give the Relu's value.
            name = next((one for one in (value, self._source(value)) if one in self._values), None)
            if name is not None:
                found, stands_for = list(path), name
        return found, stands_for

    def _only_reader(self, value: str) -> NodeProto | None:
        """The node behind a product that changes its values one by one, where nothing else reads them."""
        readers = self._readers.get(value, [])
        follows = len(readers) == 1 and readers[0].op_type in FOLLOWERS and readers[0].input[0] == value
        return readers[0] if follows and value not in self._outputs else None

    def _source(self, value: str) -> str:
        """The value that a pair is a rounded form of."""
        while self._is_pair(value):
            value = self._producers[value].input[0]
        return value.removesuffix("_QuantizeLinear_Input")

    def compare(self, product: NodeProto, made: str, expected: str) -> tuple[str, str]:
        """Names of the mean of `made` less `expected` for every channel, and of the share that a bias can shift."""
        wide = [self._node("Cast", [name], to=TensorProto.FLOAT) for name in (made, expected)]
        error = self.means(product, self._node("Sub", wide))
        passed = self._node("Equal", [expected, product.output[0]])
        return error, self.means(product, passed)

    def means(self, product: NodeProto, value: str) -> str:
        """The name of the mean of a value that comes of a product, for every channel."""
        return self._channel_means(product, self._node("Cast", [value], to=TensorProto.FLOAT))

    def _channel_means(self, product: NodeProto, value: str) -> str:
        if product.op_type in ("Gemm", "MatMul"):
            # Flattened to rows of channels, so that activations of any rank have one axis to reduce.
            return self._mean(self._node("Flatten", [value], axis=-1), [0])
        # Samples and channels first, then one axis for all places.
        flat = self._node("Constant", [], value=numpy_helper.from_array(np.array([0, 0, -1], np.int64)))
        return self._mean(self._node("Reshape", [value, flat]), [0, 2])

    def _mean(self, value: str, axes: list[int]) -> str:
        if not self._has_axes_input:
            return self._node("ReduceMean", [value], axes=axes, keepdims=0)
        constant = self._node("Constant", [], value=numpy_helper.from_array(np.array(axes, np.int64)))
        return self._node("ReduceMean", [value, constant], keepdims=0)

    def _is_pair(self, name: str) -> bool:
        return name in self._producers and self._producers[name].op_type in _PAIRS

    def _value(self, name: str) -> str | None:
        """A value of the quantized model, made of values of the float one and of constants; None where it cannot be."""
        if name in self._made:
            return self._made[name]
        if name in self._constants:
            made: str | None = self._node("Constant", [], value=self._constants[name])
        elif self._is_pair(name):
            node = self._producers[name]
            inputs = [self._value(one) for one in node.input]
            made = None if any(one is None for one in inputs) else self._copy(node, [str(one) for one in inputs])
        else:
            made = name if name in self._values else None
        if made is not None:
            self._made[name] = made
        return made

    def _copy(self, node: NodeProto, inputs: list[str]) -> str:
        copy = NodeProto()
        copy.CopyFrom(node)
        copy.name = f"{PREFIX}{len(self.nodes)}"
        del copy.input[:], copy.output[:]
        copy.input.extend(inputs)
        copy.output.append(copy.name)
        self.nodes.append(copy)
        return str(copy.name)

    def _node(self, op: str, inputs: list[str], **attributes: Any) -> str:
        name = f"{PREFIX}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

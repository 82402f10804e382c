"""Ranges of activations moved into the weights of the products that read them (SmoothQuant).

In transformers a few channels of an activation reach many times as far as the others, so that one scale for all leaves
these others a few of the 256 steps. Dividing every channel by a factor and multiplying the row of the weights that
it meets by the same one computes the same numbers, with activations that share a range.

The factors go into the LayerNormalization, or the Mul and Add with constants, that made the activation. Where something
else reads it too, the products get a scaled copy of that node. Other activations get a Mul, where their channels differ
much; it stays in float, because quantizing what it reads would lose what it is there to keep.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, helper, numpy_helper

from winml.modelkit.building.quantize.finish import drop_unused_initializers, sort_nodes
from winml.modelkit.building.quantize.passes import Passes
from winml.modelkit.building.quantize.prepare import FLOATS, find_captured
from winml.modelkit.building.quantize.result import Adjustment
from winml.modelkit.building.quantize.select import NodeSelection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.graph import walk
from winml.modelkit.graph.value_names import free_name

UNEVEN = 8.0
"""How many times as far as the median channel the farthest must reach where a Mul is added for it."""
ADDED = "smoothing added it; quantizing what it reads would lose what it keeps"
NO_WEIGHT = "it has no constant weight of two dimensions"
EVEN = "its channels reach about equally far"
ALONE = "no node before it can take the factors, and a Mul is not worth it"
FLATTEN_OPSET = 11
"""From here on ONNX can flatten all but the last axis of any value."""
PREFIX = "winml.reach."

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Product:
    """A product whose weight is a constant matrix."""

    node: NodeProto
    axis: int
    """Of the weight, that the channels of the activation lie on."""


@dataclass(frozen=True)
class Smoothed:
    """What was done to a model."""

    adjustment: Adjustment
    added: Mapping[str, str]
    """Nodes that have to stay in float, with the reason."""


def groups(model: ModelProto, selection: NodeSelection) -> tuple[dict[str, list[_Product]], Counter[str]]:
    """Products that will be quantized, by the activation they read; and how many can not be smoothed, by reason."""
    weights = {t.name for t in model.graph.initializer if t.data_type in FLOATS and len(t.dims) == 2}
    found: dict[str, list[_Product]] = {}
    left: Counter[str] = Counter()
    for node in model.graph.node:
        if node.name not in selection.chosen or node.op_type not in ("MatMul", "Gemm"):
            continue
        transposed = node.op_type == "Gemm" and bool(walk.attribute_value(node, "transA", 0))
        if node.input[0] in weights or node.input[1] not in weights or transposed:
            left[NO_WEIGHT] += 1
            continue
        axis = 1 if node.op_type == "Gemm" and walk.attribute_value(node, "transB", 0) else 0
        found.setdefault(node.input[0], []).append(_Product(node, axis))
    return found, left


def smooth(model: ModelProto, selection: NodeSelection, passes: Passes, alpha: float) -> Smoothed:
    """Smooth what the chosen products read, in the model itself."""
    if (opset := _opset(model)) < FLATTEN_OPSET:
        raise RequestError(
            f"smoothing needs opset {FLATTEN_OPSET}; the model has {opset} and cannot be converted",
            hint="quantize it without `--smooth`",
        )
    found, left = groups(model, selection)
    reaches = _reaches(passes, list(found), opset)
    graph = _Graph(model)
    layers = 0
    for tensor, products in found.items():
        reach = reaches[tensor]
        factors = _factors(reach, [graph.reach_of_rows(product) for product in products], alpha)
        if factors is None:
            left[EVEN] += len(products)
        elif graph.fold(tensor, products, factors):
            layers += len(products)
        elif _is_uneven(reach):
            graph.insert(tensor, products, factors)
            layers += len(products)
        else:
            left[ALONE] += len(products)
    drop_unused_initializers(model)
    sort_nodes(model)
    adjustment = Adjustment(name="smoothing", layers=layers, left=dict(left), added_nodes=graph.added_nodes)
    return Smoothed(adjustment, dict.fromkeys(graph.inserted, ADDED))


def _opset(model: ModelProto) -> int:
    return max((o.version for o in model.opset_import if walk.domain_of(o.domain) == ""), default=1)


def _reaches(passes: Passes, tensors: Sequence[str], opset: int) -> dict[str, Floats]:
    """How far every channel (the last axis) of the tensors reaches over all samples."""
    if not tensors:
        return {}
    nodes = []
    for number, tensor in enumerate(tensors):
        flat, size = f"{PREFIX}flat.{number}", f"{PREFIX}size.{number}"
        nodes.append(helper.make_node("Abs", [tensor], [size]))
        # Flattened to rows, so that activations of any rank have one axis to reduce.
        nodes.append(helper.make_node("Flatten", [size], [flat], axis=-1))
        if opset >= 18:
            axes = f"{PREFIX}axes.{number}"
            nodes.append(
                helper.make_node("Constant", [], [axes], value=numpy_helper.from_array(np.array([0], np.int64)))
            )
            nodes.append(helper.make_node("ReduceMax", [flat, axes], [f"{PREFIX}{number}"], keepdims=0))
        else:
            nodes.append(helper.make_node("ReduceMax", [flat], [f"{PREFIX}{number}"], axes=[0], keepdims=0))
    names = [f"{PREFIX}{number}" for number in range(len(tensors))]
    reached: dict[str, Floats] = {}
    for found in passes.go(names, nodes):
        for tensor, name in zip(tensors, names, strict=True):
            value = found[name].astype(np.float64)
            reached[tensor] = np.maximum(reached[tensor], value) if tensor in reached else value
    return reached


def _factors(reach: Floats, rows: Sequence[Floats], alpha: float) -> Floats | None:
    """What every channel is divided by; None where that changes nothing or is not possible."""
    weights = np.max(np.stack(rows), axis=0)
    usable = (reach > 0) & (weights > 0) & np.isfinite(reach)
    if weights.shape != reach.shape or not usable.any() or not np.isfinite(reach).all():
        return None
    factors = np.ones_like(reach)
    factors[usable] = reach[usable] ** alpha / weights[usable] ** (1.0 - alpha)
    # Only what channels are to one another matters; around 1 the numbers keep their size.
    factors[usable] /= np.exp(np.log(factors[usable]).mean())
    factors = np.clip(factors, 1e-4, 1e4)
    return None if np.ptp(np.log(factors)) < 1e-3 else factors


def _is_uneven(reach: Floats) -> bool:
    return bool(reach.max() > UNEVEN * max(float(np.median(reach)), 1e-12))


class _Graph:
    """The main graph of a model, whose weights are scaled."""

    def __init__(self, model: ModelProto) -> None:
        self._graph = model.graph
        self._weights = {t.name: t for t in model.graph.initializer if t.data_type in FLOATS}
        self._producers = {name: node for node in model.graph.node for name in node.output if name}
        self._readers: dict[str, list[NodeProto]] = {}
        for node in model.graph.node:
            for name in dict.fromkeys(node.input):
                self._readers.setdefault(name, []).append(node)
        self._seen = {value.name for value in model.graph.output} | find_captured(model)
        self._used = {name for node in walk.nodes(model) for name in (*node.input, *node.output, node.name)}
        self._used |= self._weights.keys()
        self.inserted: list[str] = []
        self.added_nodes = 0

    def reach_of_rows(self, product: _Product) -> Floats:
        """How far the weights go that each channel of the activation meets."""
        values = np.abs(self._values(product.node.input[1]))
        return np.asarray(values.max(axis=1 - product.axis, initial=0.0))

    def fold(self, tensor: str, products: Sequence[_Product], factors: Floats) -> bool:
        """Scale the node that makes the activation, or a copy of it; False where there is none that can be."""
        chain = self._chain(tensor, factors.size)
        if not chain:
            return False
        others = {node.name for node in self._readers[tensor]} - {product.node.name for product in products}
        if others or tensor in self._seen:
            chain = self._copy(chain)
            self._feed(products, chain[-1].output[0])
        for node in chain:
            for index in self._scaled_inputs(node):
                self._scale(node, index, 1.0 / factors)
        self._scale_rows(products, factors)
        return True

    def insert(self, tensor: str, products: Sequence[_Product], factors: Floats) -> None:
        """Let the products read the activation through a Mul."""
        name = free_name("smoothing", self._used)
        kind = numpy_helper.to_array(self._weights[products[0].node.input[1]]).dtype
        self._add_weight(f"{name}_factors", (1.0 / factors).astype(kind))
        self._graph.node.append(helper.make_node("Mul", [tensor, f"{name}_factors"], [f"{name}_value"], name=name))
        self._feed(products, f"{name}_value")
        self.inserted.append(name)
        self.added_nodes += 1
        self._scale_rows(products, factors)

    def _chain(self, tensor: str, channels: int) -> list[NodeProto]:
        """The nodes that have to be scaled so that the activation is, first to last."""
        node = self._producers.get(tensor)
        if node is None or walk.domain_of(node.domain):
            return []
        if node.op_type == "LayerNormalization" and walk.attribute_value(node, "axis", -1) == -1:
            known = all(self._is_row(name, channels) for name in node.input[1:] if name)
            return [node] if known and len(node.input) > 1 and len([o for o in node.output if o]) == 1 else []
        if node.op_type == "Mul":
            return [node] if self._constant_index(node, channels) is not None else []
        if node.op_type != "Add" or (index := self._constant_index(node, channels)) is None:
            return []
        value = node.input[1 - index]
        before = self._producers.get(value)
        alone = len(self._readers.get(value, ())) == 1 and value not in self._seen
        if before is None or before.op_type != "Mul" or not alone or self._constant_index(before, channels) is None:
            return []
        return [before, node]

    def _constant_index(self, node: NodeProto, channels: int) -> int | None:
        """Which input of a Mul or Add is a constant with one number per channel."""
        return next((i for i, name in enumerate(node.input) if self._is_row(name, channels)), None)

    def _is_row(self, name: str, channels: int) -> bool:
        weight = self._weights.get(name)
        return weight is not None and list(weight.dims) == [channels]

    def _scaled_inputs(self, node: NodeProto) -> list[int]:
        if node.op_type == "LayerNormalization":
            return [index for index in (1, 2) if len(node.input) > index and node.input[index]]
        return [index for index, name in enumerate(node.input) if name in self._weights]

    def _copy(self, chain: Sequence[NodeProto]) -> list[NodeProto]:
        """The nodes once more, each under another name."""
        copies: list[NodeProto] = []
        for node in chain:
            copy = NodeProto()
            copy.CopyFrom(node)
            copy.name = free_name(f"{node.name}_smoothed", self._used)
            renamed = {old.output[0]: new.output[0] for old, new in zip(chain, copies, strict=False)}
            for index, name in enumerate(copy.input):
                copy.input[index] = renamed.get(name, name)
            copy.output[0] = free_name(f"{node.output[0]}_smoothed", self._used)
            self._graph.node.append(copy)
            copies.append(self._graph.node[-1])
        self.added_nodes += len(copies)
        return copies

    def _feed(self, products: Sequence[_Product], value: str) -> None:
        for product in products:
            product.node.input[0] = value

    def _scale_rows(self, products: Sequence[_Product], factors: Floats) -> None:
        for product in products:
            shape = (-1, 1) if product.axis == 0 else (1, -1)
            self._scale(product.node, 1, factors.reshape(shape))

    def _scale(self, node: NodeProto, index: int, factors: Floats) -> None:
        """Give a node a scaled copy of a constant; another node may read the constant as it is."""
        weight = self._weights[node.input[index]]
        name = free_name(f"{node.input[index]}_smoothed", self._used)
        kind = numpy_helper.to_array(weight).dtype
        self._add_weight(name, (self._values(node.input[index]) * factors).astype(kind))
        node.input[index] = name

    def _add_weight(self, name: str, values: npt.NDArray[np.floating]) -> None:
        tensor = numpy_helper.from_array(np.ascontiguousarray(values), name)
        self._graph.initializer.append(tensor)
        self._weights[name] = tensor

    def _values(self, name: str) -> Floats:
        return numpy_helper.to_array(self._weights[name]).astype(np.float64)

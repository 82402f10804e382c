"""BatchNormalization folded into the product before it, so that no range is spent on the value between the two.

Quantized by itself, a BatchNormalization takes 8 bits of its input and 8 of its parameters, and no processor is faster
for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, numpy_helper

from winml.modelkit.building.quantize.finish import drop_unused_initializers
from winml.modelkit.building.quantize.prepare import FLOATS, find_captured
from winml.modelkit.core.config import QuantizeSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.graph import walk

NORMALIZATION = "BatchNormalization"
_EPSILON = 1e-5

Floats = npt.NDArray[np.float64]


def fold(model: ModelProto, section: QuantizeSection) -> tuple[str, ...]:
    """Fold what can be folded in the main graph; returns what was done, for the report.

    A node that the section names stays, as does every BatchNormalization where the section names the operator.
    """
    if NORMALIZATION in (*(section.op_types or ()), *section.exclude_op_types):
        return ()
    graph = _Graph(model, {*(section.nodes or ()), *section.exclude_nodes})
    found = [(node, before) for node in model.graph.node if (before := graph.product_before(node)) is not None]
    folded = Counter(before.op_type for node, before in found if graph.merge(before, node))
    if folded:
        drop_unused_initializers(model)
    return tuple(f"{count} {NORMALIZATION} were folded into the {op} before them" for op, count in folded.items())


@dataclass(frozen=True)
class _Affine:
    """What a BatchNormalization does to a channel: times `factor`, plus `shift`."""

    factor: Floats
    shift: Floats


class _Graph:
    """The main graph of a model, with what can be changed in it."""

    def __init__(self, model: ModelProto, named: Collection[str]) -> None:
        self._graph = model.graph
        self._named = named
        self._weights = {t.name: t for t in model.graph.initializer if t.data_type in FLOATS}
        self._producers = {name: node for node in model.graph.node for name in node.output}
        seen = {value.name for value in model.graph.output} | find_captured(model)
        reads = Counter(name for node in model.graph.node for name in node.input)
        self._single = {name for name, count in reads.items() if count == 1 and name not in seen}

    def product_before(self, node: NodeProto) -> NodeProto | None:
        """The Conv, ConvTranspose or Gemm that only a BatchNormalization reads; None where there is none."""
        if node.op_type != NORMALIZATION or walk.domain_of(node.domain) or not self._is_constant(node):
            return None
        before = self._producers.get(node.input[0]) if node.input[0] in self._single else None
        if before is None or walk.domain_of(before.domain) or {node.name, before.name} & set(self._named):
            return None
        known = all(name in self._weights for name in before.input[1:] if name)
        return before if known and _channel_axis(before) is not None else None

    def _is_constant(self, node: NodeProto) -> bool:
        """Whether a BatchNormalization is that of a trained model: fixed numbers, one output."""
        training = walk.attribute_value(node, "training_mode", 0)
        return not training and len(node.output) == 1 and all(name in self._weights for name in node.input[1:])

    def merge(self, product: NodeProto, node: NodeProto) -> bool:
        """Let the product do what the BatchNormalization does; False when the numbers would not fit their type."""
        axis = _channel_axis(product)
        assert axis is not None
        weight = self._weights[product.input[1]]
        affine, values = self._affine(node), self._values(product.input[1])
        shape = [1] * values.ndim
        shape[axis] = -1
        bias = self._values(product.input[2]) if len(product.input) > 2 and product.input[2] else np.zeros(1)
        dtype = numpy_helper.to_array(weight).dtype
        merged = [values * affine.factor.reshape(shape), bias * affine.factor + affine.shift]
        if values.shape[axis] != affine.factor.size or not all(_fits(array, dtype) for array in merged):
            return False
        names = [f"{node.name}/folded_weight", f"{node.name}/folded_bias"]
        for name, array in zip(names, merged, strict=True):
            tensor = numpy_helper.from_array(np.ascontiguousarray(array.astype(dtype)), name)
            self._graph.initializer.append(tensor)
            self._weights[name] = tensor
        product.input[1:] = names
        product.output[0] = node.output[0]
        self._producers[node.output[0]] = product
        self._graph.node.remove(node)
        return True

    def _affine(self, node: NodeProto) -> _Affine:
        scale, bias, mean, variance = (self._values(name) for name in node.input[1:])
        factor = scale / np.sqrt(variance + _number(node, "epsilon", _EPSILON))
        return _Affine(factor, bias - mean * factor)

    def _values(self, name: str) -> Floats:
        return numpy_helper.to_array(self._weights[name]).astype(np.float64)


def _channel_axis(node: NodeProto) -> int | None:
    """The axis of a product's weight that its output channels lie on; None for what takes no BatchNormalization."""
    if node.op_type == "Conv":
        return 0
    if node.op_type == "ConvTranspose":
        return 1 if walk.attribute_value(node, "group", 1) == 1 else None
    if node.op_type == "Gemm" and all(_number(node, name, 1.0) == 1.0 for name in ("alpha", "beta")):
        return 0 if walk.attribute_value(node, "transB", 0) else 1
    return None


def _fits(array: Floats, dtype: np.dtype[np.floating]) -> bool:
    return bool(np.abs(array).max(initial=0.0) <= np.finfo(dtype).max)


def _number(node: NodeProto, name: str, default: float) -> float:
    return next((attribute.f for attribute in node.attribute if attribute.name == name), default)

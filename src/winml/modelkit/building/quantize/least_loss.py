"""For each tensor the method of calibration that loses least in what is computed from it.

How far a tensor itself is from what it was says little: a value that is cut off may be multiplied by zero, or be all
that matters. So every node that reads a tensor is computed again beside the model, once for each range, with the tensor
rounded to it; the range whose noise in these results is least is chosen. One pass decides for all tensors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from winml.modelkit.building.quantize.passes import Passes
from winml.modelkit.building.quantize.prepare import FLOATS
from winml.modelkit.building.quantize.runnable import Runnable
from winml.modelkit.building.quantize.thresholds import Range
from winml.modelkit.core.config import QuantizeSection
from winml.modelkit.core.errors import RequestError
from winml.modelkit.graph import walk

SAMPLES = 32
"""Samples that decide; every range costs one more run of each node."""
MARGIN = 0.95
"""What is left of the loss of `minmax` at most where another is chosen: few samples show a small gain by chance."""
ROUND_OPSET = 11
"""From here on ONNX can round."""
RANDOM = ("Bernoulli", "Dropout", "Multinomial", "RandomNormalLike", "RandomUniformLike")
PREFIX = "winml.rival."


def levels(section: QuantizeSection) -> int:
    """Steps that the activations of a section have."""
    return 2 ** (16 if (section.activation_type or "").endswith("16") else 8)


def choose(
    runnable: Runnable,
    passes: Passes,
    rivals: Mapping[str, Mapping[str, Range]],
    section: QuantizeSection,
    types: Mapping[str, int],
) -> dict[str, str]:
    """The method of every tensor in `rivals`, which has the ranges by method, `minmax` among them."""
    structure = runnable.structure
    opset = max((o.version for o in structure.opset_import if walk.domain_of(o.domain) == ""), default=1)
    if opset < ROUND_OPSET:
        raise RequestError(
            f"method `best` needs opset {ROUND_OPSET}; the model has {opset} and cannot be converted",
            hint="choose a method for all tensors: `--method mse`",
        )
    trials = _Trials(structure, section, types)
    for tensor, ranges in rivals.items():
        trials.add(tensor, ranges)
    losses: dict[tuple[str, str], float] = dict.fromkeys(trials.losses, 0.0)
    sums = dict.fromkeys(trials.outputs, 0.0)
    if trials.outputs:
        for found in passes.go(trials.outputs, trials.nodes, limit=SAMPLES):
            for name in trials.outputs:
                sums[name] += float(found[name])
        for key, pairs in trials.losses.items():
            losses[key] = sum(_share(sums[noise], sums[signal]) for noise, signal in pairs)
    return {tensor: _least(tensor, ranges, losses) for tensor, ranges in rivals.items()}


def _share(noise: float, signal: float) -> float:
    return noise / signal if signal > 0.0 else noise


def _least(tensor: str, ranges: Mapping[str, Range], losses: Mapping[tuple[str, str], float]) -> str:
    """The method with the least loss; `minmax` unless it is better by a margin."""
    known = {method: losses[tensor, method] for method in ranges if (tensor, method) in losses}
    if not known:
        return "minmax"
    best = min(known, key=lambda method: known[method])
    return best if known[best] < MARGIN * known["minmax"] else "minmax"


class _Trials:
    """Nodes that compute the readers of tensors again, with the tensors rounded to each range."""

    def __init__(self, model: ModelProto, section: QuantizeSection, types: Mapping[str, int]) -> None:
        self._readers: dict[str, list[NodeProto]] = {}
        for node in model.graph.node:
            for name in dict.fromkeys(node.input):
                self._readers.setdefault(name, []).append(node)
        self._model_outputs = {value.name for value in model.graph.output}
        self._section, self._types = section, types
        self._signals: dict[str, str] = {}
        self.nodes: list[NodeProto] = []
        self.outputs: list[str] = []
        self.losses: dict[tuple[str, str], list[tuple[str, str]]] = {}
        """Names of the noise and of the signal of every result, by tensor and method."""

    def add(self, tensor: str, ranges: Mapping[str, Range]) -> None:
        """Try every range of a tensor; equal ranges are tried once."""
        readers = [node for node in self._readers.get(tensor, ()) if _is_repeatable(node)]
        results = [(node, name) for node in readers for name in node.output[:1] if self._types.get(name) in FLOATS]
        seen: dict[Range, str] = {}
        if len(set(ranges.values())) == 1:
            return
        for method, found in ranges.items():
            if found in seen:
                self.losses[tensor, method] = self.losses[tensor, seen[found]]
                continue
            seen[found] = method
            rounded = self._round(tensor, found)
            pairs = [self._noise(self._again(node, tensor, rounded), name) for node, name in results]
            if tensor in self._model_outputs or not pairs:
                pairs.append(self._noise(rounded, tensor))
            self.losses[tensor, method] = pairs

    def _round(self, tensor: str, found: Range) -> str:
        """The tensor as its quantized form would be, in its own type."""
        step, low, high = grid(found, self._section)
        wide = self._node("Cast", [tensor], to=TensorProto.FLOAT)
        counted = self._node("Round", [self._node("Div", [wide, self._number(step)])])
        cut = self._node("Min", [self._node("Max", [counted, self._number(low)]), self._number(high)])
        made = self._node("Mul", [cut, self._number(step)])
        half = self._types.get(tensor) == TensorProto.FLOAT16
        return self._node("Cast", [made], to=TensorProto.FLOAT16) if half else made

    def _again(self, node: NodeProto, tensor: str, rounded: str) -> str:
        copy = NodeProto()
        copy.CopyFrom(node)
        copy.name = f"{PREFIX}{len(self.nodes)}"
        for index, name in enumerate(copy.input):
            if name == tensor:
                copy.input[index] = rounded
        for index, name in enumerate(copy.output):
            copy.output[index] = name and f"{copy.name}.{index}"
        self.nodes.append(copy)
        return str(copy.output[0])

    def _noise(self, made: str, expected: str) -> tuple[str, str]:
        """The energy of a difference, and of what it is a difference to."""
        wide = [self._node("Cast", [name], to=TensorProto.FLOAT) for name in (made, expected)]
        noise = self._node("ReduceSumSquare", [self._node("Sub", wide)], keepdims=0)
        if expected not in self._signals:
            self._signals[expected] = self._node("ReduceSumSquare", [wide[1]], keepdims=0)
            self.outputs.append(self._signals[expected])
        self.outputs.append(noise)
        return noise, self._signals[expected]

    def _number(self, value: float) -> str:
        return self._node("Constant", [], value=numpy_helper.from_array(np.array(value, np.float32)))

    def _node(self, op: str, inputs: list[str], **attributes: Any) -> str:
        name = f"{PREFIX}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name


def grid(found: Range, section: QuantizeSection) -> tuple[float, float, float]:
    """The step of a range, and the lowest and highest count of steps from zero."""
    low, high = min(found.low, 0.0), max(found.high, 0.0)
    top = levels(section) - 1
    if section.symmetric_activations:
        reach = max(-low, high)
        step = 2 * reach / top or 1.0
        return step, -(top // 2) - 1.0, float(top // 2)
    step = (high - low) / top or 1.0
    zero = round(-low / step)
    return step, float(-zero), float(top - zero)


def _is_repeatable(node: NodeProto) -> bool:
    """Whether a node gives the same again, and can be copied: no body, no random numbers."""
    return node.op_type not in RANDOM and not any(walk.subgraphs(node))

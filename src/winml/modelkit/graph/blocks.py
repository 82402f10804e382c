"""The block that a network repeats, as a short text that neither width, depth, opset nor exporter changes.

A graph is read as a sequence of what computes: weights multiplied, attention, norms, activations, sums of two paths.
What moves or reshapes values is passed over, and so is what follows from constants and shapes alone. The block is what
the sequence repeats one after the other for the longest part of it, from wherever in it the text sorts first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from onnx import ModelProto, NodeProto, TensorProto

from winml.modelkit.graph import files
from winml.modelkit.graph.description import FoundBlock, RepeatedBlock
from winml.modelkit.graph.walk import attribute_value

LONGEST = 160
"""Marks of the longest block that is looked for."""
GAIN = 1.1
"""A longer block is taken only where it covers this many times as much."""
LEAST_MARKS = 4
"""A shorter block says nothing: convolutions with activations are in every net of images."""

_PLAIN = {
    "Conv": "C", "FusedConv": "C", "LayerNormalization": "N", "RMSNormalization": "R",
    "SimplifiedLayerNormalization": "R", "Erf": "G", "Gelu": "G", "BiasGelu": "G", "FastGelu": "G", "QuickGelu": "Q",
    "Tanh": "T", "Sigmoid": "Q", "Swish": "Q", "HardSwish": "H", "HardSigmoid": "H", "Relu": "L", "Clip": "L",
    "LeakyRelu": "L", "Softmax": "S", "Attention": "ASA", "MultiHeadAttention": "ASA", "ReduceL2": "E", "LSTM": "U",
    "GRU": "U", "SkipLayerNormalization": "rN", "SkipSimplifiedLayerNormalization": "+R",
}  # fmt: skip
"""A mark per operator; `r` and `+` are sums of two paths, the first with one that comes from a norm."""
_PRODUCTS = ("MatMul", "Gemm", "FusedMatMul", "MatMulNBits")
_PASSED = (
    "Cast", "Reshape", "Transpose", "Identity", "Squeeze", "Unsqueeze", "Flatten", "Slice", "Gather", "Concat", "Split",
    "Expand", "Where", "QuantizeLinear", "DequantizeLinear", "Dropout", "Pad", "Roll",
)  # fmt: skip
_SHAPES = ("Shape", "Size")
_SAME = ("Identity", "Cast", "DequantizeLinear")
"""They give values of the size that they take."""
_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)
_KINDS = "CDU"
"""Convolutions, those by group, and recurrent layers: which of them a network has anywhere tells families with like
blocks apart."""
_NORMS = ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization", "SkipLayerNormalization")
_HOPS = 12
_LOOKED_AT = 500
"""Values of which a table may be made."""


def ask_block(args: dict[str, Any], context: object) -> FoundBlock:
    """Worker operation: the block of the model file `args["path"]`."""
    return FoundBlock(find_block(files.load(Path(str(args["path"])), weights=False)))


def find_block(model: ModelProto) -> RepeatedBlock | None:
    """The block that a graph repeats; None where nothing does."""
    marks = "".join(_Marks(model))
    found = find_repeat(marks)
    return None if found is None else replace(found, kinds="".join(kind for kind in _KINDS if kind in marks))


def find_repeat(marks: str) -> RepeatedBlock | None:
    """The shortest text that is repeated one after the other and covers about as much as any other does."""
    best: tuple[int, str, int] | None = None
    for length in range(LEAST_MARKS, min(LONGEST, len(marks) // 2) + 1):
        covered: dict[str, list[int]] = {}
        for start, end in _runs(marks, length):
            block = min(marks[start + i : start + i + length] for i in range(length))
            covered.setdefault(block, []).append(end - start)
        for block, lengths in covered.items():
            total = sum(lengths)
            if best is None or total > GAIN * best[0]:
                best = total, block, sum(one // length for one in lengths)
    return None if best is None else RepeatedBlock(best[1], best[2], round(best[0] / len(marks), 4))


def _runs(marks: str, length: int) -> Iterator[tuple[int, int]]:
    """Where a text is the same `length` marks later, for at least that long: from where to where."""
    start = 0
    for place in range(len(marks) - length + 1):
        if place + length < len(marks) and marks[place] == marks[place + length]:
            continue
        if place - start >= length:
            yield start, place + length
        start = place + 1


def _is_table(sizes: list[int]) -> bool:
    """Whether learned numbers have such sizes; one number for each pair of tokens is a mask."""
    return len(sizes) > 1 and not (len(sizes) == 2 and sizes[0] == sizes[1])


class _Marks:
    """The marks of a graph, in the order of its nodes."""

    def __init__(self, model: ModelProto) -> None:
        self._nodes = list(model.graph.node)
        self._maker = {name: node for node in self._nodes for name in node.output if name}
        self._sizes = {one.name: tuple(one.dims) for one in model.graph.initializer}
        self._tables = {
            one.name
            for one in model.graph.initializer
            if one.data_type in _FLOATS and _is_table([size for size in one.dims if size != 1])
        }
        self._constant = {"", *self._sizes, *(one.values.name for one in model.graph.sparse_initializer)}
        self._users: dict[str, list[NodeProto]] = {}
        for node in self._nodes:
            for name in node.input:
                self._users.setdefault(name, []).append(node)
            if node.op_type in _SAME and node.input[0] in self._sizes:
                self._sizes[node.output[0]] = self._sizes[node.input[0]]
            if node.op_type in _SHAPES or all(name in self._constant for name in node.input):
                self._constant.update(node.output)

    def __iter__(self) -> Iterator[str]:
        for node in self._nodes:
            if not self._constant.issuperset(node.output):
                yield self._mark(node)

    def _mark(self, node: NodeProto) -> str:
        op = node.op_type
        if op == "Conv" and attribute_value(node, "group", 1) > 1:
            return "D"
        if op in _PLAIN:
            return _PLAIN[op]
        if op in _PRODUCTS:
            return "A" if len(self._computed(node)) > 1 and op != "Gemm" else "M"
        if op == "Sqrt":
            return self._mark_norm(node)
        if op == "Add":
            return self._mark_sum(node)
        return "K" if op == "Mul" and self._scales(node) else ""

    def _computed(self, node: NodeProto) -> list[str]:
        return [name for name in node.input if name not in self._constant]

    def _above(self, node: NodeProto | None, *ops: str) -> NodeProto | None:
        """The maker of an input of a node that is one of some operators."""
        makers = [] if node is None else [self._maker.get(name) for name in node.input]
        return next((one for one in makers if one is not None and one.op_type in ops), None)

    def _mark_norm(self, node: NodeProto) -> str:
        """A norm that is written as a mean of squares, a sum and a root."""
        mean = self._above(self._above(node, "Add"), "ReduceMean")
        square = self._above(mean, "Pow", "Mul")
        if square is None:
            return ""
        return "N" if self._above(square, "Sub") is not None else "R"

    def _mark_sum(self, node: NodeProto) -> str:
        """A sum of two paths; a mask that is added to the scores of attention has no mark, a learned bias has one."""
        paths = self._computed(node)
        if self._feeds_softmax(node):
            return "B" if len(paths) == 1 and any(self._is_table(name) for name in node.input) else ""
        if len(paths) < 2:
            return ""
        return "r" if any(self._from_norm(name) for name in paths) else "+"

    def _is_table(self, name: str) -> bool:
        """Whether a value is read from learned numbers of more than one dimension; a mask follows from shapes."""
        left, seen = [name], {name}
        while left and len(seen) <= _LOOKED_AT:
            one = left.pop()
            if one in self._tables:
                return True
            if one in self._constant and one in self._maker:
                above = set(self._maker[one].input) - seen
                seen |= above
                left += sorted(above)
        return False

    def _feeds_softmax(self, node: NodeProto) -> bool:
        for _ in range(_HOPS):
            users = [user for name in node.output for user in self._users.get(name, ())]
            if any(user.op_type == "Softmax" for user in users):
                return True
            following = [user for user in users if user.op_type in (*_PASSED, "Add")]
            if len(users) != 1 or not following:
                return False
            node = following[0]
        return False

    def _from_norm(self, name: str) -> bool:
        """Whether a value is what a norm gives, scaled and shifted by constants at most."""
        for _ in range(_HOPS):
            node = self._maker.get(name)
            if node is None:
                return False
            if node.op_type in _NORMS or self._divides(node):
                return True
            computed = self._computed(node)
            if node.op_type not in (*_PASSED, "Add", "Mul") or len(computed) != 1:
                return False
            name = computed[0]
        return False

    def _divides(self, node: NodeProto) -> bool:
        """Whether a node divides by the root of a norm."""
        if node.op_type == "Div":
            return self._above(node, "Sqrt") is not None
        return node.op_type == "Mul" and self._above(self._above(node, "Reciprocal", "Div"), "Sqrt") is not None

    def _scales(self, node: NodeProto) -> bool:
        """Whether a node multiplies channels by learned numbers, outside of a norm."""
        computed = self._computed(node)
        sizes = [[size for size in self._sizes.get(name, ()) if size != 1] for name in node.input]
        return len(computed) == 1 and any(len(one) == 1 for one in sizes) and not self._from_norm(computed[0])

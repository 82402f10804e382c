"""Which operators of two traces belong together.

First those that come from the same nodes of the model, whatever was fused; then those the EP gives the same name; then
by their order among operators of one family.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from winml.modelkit.core.op_trace import OperatorMetrics

Sides = tuple[tuple[OperatorMetrics, ...], tuple[OperatorMetrics, ...]]

_NUMBERED = re.compile(r"[A-Z][A-Za-z0-9]*_\d+")
"""A node without a name of its own."""

_FAMILIES = {
    "FusedConv": "Conv",
    "NhwcFusedConv": "Conv",
    "QLinearConv": "Conv",
    "ConvInteger": "Conv",
    "Gemm": "MatMul",
    "FusedGemm": "MatMul",
    "FusedMatMul": "MatMul",
    "QGemm": "MatMul",
    "QLinearMatMul": "MatMul",
    "MatMulInteger": "MatMul",
    "MatMulIntegerToFloat": "MatMul",
    "DynamicQuantizeMatMul": "MatMul",
    "MatMulNBits": "MatMul",
    "SkipLayerNormalization": "LayerNormalization",
    "BiasGelu": "Gelu",
    "FastGelu": "Gelu",
    "BiasSoftmax": "Softmax",
}


def family(operator: OperatorMetrics) -> str:
    kind = operator.type
    return _FAMILIES.get(kind, kind.removeprefix("QLinear"))


class _Groups:
    """Which operators of the two traces belong together."""

    def __init__(self, before: Sequence[OperatorMetrics], after: Sequence[OperatorMetrics]) -> None:
        self.sides = (before, after)
        self.parent: dict[tuple[int, int], tuple[int, int]] = {
            (side, at): (side, at) for side in (0, 1) for at in range(len(self.sides[side]))
        }
        self.joined: set[tuple[int, int]] = set()

    def root(self, item: tuple[int, int]) -> tuple[int, int]:
        while self.parent[item] != item:
            self.parent[item] = self.parent[self.parent[item]]
            item = self.parent[item]
        return item

    def join(self, a: tuple[int, int], b: tuple[int, int]) -> None:
        self.parent[self.root(b)] = self.root(a)
        self.joined |= {a, b}

    def left(self, side: int) -> list[int]:
        return [at for at in range(len(self.sides[side])) if (side, at) not in self.joined]

    def partners(self, item: tuple[int, int]) -> list[OperatorMetrics]:
        """The operators of the other side in its group."""
        root = self.root(item)
        return [self.sides[s][at] for s, at in self.parent if s != item[0] and self.root((s, at)) == root]

    def members(self) -> Iterator[Sides]:
        """The operators of both sides that belong together."""
        groups: defaultdict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for item in self.parent:
            groups[self.root(item)].append(item)
        for members in groups.values():
            before, after = (tuple(self.sides[side][at] for s, at in sorted(members) if s == side) for side in (0, 1))
            yield before, after


def _trusted_names(before: Sequence[OperatorMetrics], after: Sequence[OperatorMetrics]) -> set[str]:
    """Nodes that mean the same in both models: a number alone does so only when all nodes are the same."""
    nodes = [{n for o in side for n in o.onnx_nodes} for side in (before, after)]
    common = nodes[0] & nodes[1]
    return common if nodes[0] == nodes[1] else {n for n in common if not _NUMBERED.fullmatch(n)}


def _by_nodes(groups: _Groups) -> None:
    trusted = _trusted_names(*groups.sides)
    owners: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for side in (0, 1):
        for at, operator in enumerate(groups.sides[side]):
            for node in operator.onnx_nodes:
                if node in trusted:
                    owners[node].append((side, at))
    for members in owners.values():
        if {side for side, _ in members} == {0, 1}:
            for member in members[1:]:
                groups.join(members[0], member)


def _by_name(groups: _Groups) -> None:
    named = {
        (groups.sides[1][at].op_path, groups.sides[1][at].ep): at
        for at in groups.left(1)
        if not _NUMBERED.fullmatch(groups.sides[1][at].op_path)
    }
    for at in groups.left(0):
        operator = groups.sides[0][at]
        other = named.pop((operator.op_path, operator.ep), None)
        if other is not None and family(operator) == family(groups.sides[1][other]):
            groups.join((0, at), (1, other))


def _by_position(groups: _Groups) -> None:
    from difflib import SequenceMatcher  # `winml perf` need not wait for it

    left, right = groups.left(0), groups.left(1)
    before, after = ([family(groups.sides[s][at]) for at in side] for s, side in ((0, left), (1, right)))
    for a, b, size in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks():
        for step in range(size):
            groups.join((0, left[a + step]), (1, right[b + step]))


SWALLOWED = {"Relu", "LeakyRelu", "Sigmoid", "Clip", "Tanh", "HardSigmoid", "BatchNormalization", "Add", "Mul"}


def _swallowed(groups: _Groups) -> None:
    """Operators that one side lacks because the operator before them does their work there too."""
    for side in (0, 1):
        for at in groups.left(side):
            owner = (side, at - 1)
            swallowed = family(groups.sides[side][at]) in SWALLOWED and owner in groups.joined
            if swallowed and any(_is_fused(o) for o in groups.partners(owner)):
                groups.join(owner, (side, at))


def _is_fused(operator: OperatorMetrics) -> bool:
    """Whether an operator may do the work of others: it is named so, or is not what the model has there."""
    return "Fused" in operator.type or operator.type != (operator.op_type or operator.type)


def matched(before: Sequence[OperatorMetrics], after: Sequence[OperatorMetrics]) -> Iterator[Sides]:
    """Groups of operators; one side of a group is empty where nothing in the other trace stands for it."""
    groups = _Groups(before, after)
    for step in (_by_nodes, _by_name, _by_position, _swallowed):
        step(groups)
    return groups.members()

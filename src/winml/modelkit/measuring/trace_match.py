"""Which operators of two traces belong together.

First those that come from the same nodes of the model, whatever was fused; then those with the same weight; then those
that stand at the same place: they read what belongs together, and what reads them belongs together. What is inserted
belongs together beside the same operator. The order of execution decides nothing: two branches may run either way.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence

from winml.modelkit.core.op_trace import OperatorMetrics

Sides = tuple[tuple[OperatorMetrics, ...], tuple[OperatorMetrics, ...]]
Item = tuple[int, int]
"""Side and position of an operator."""

_NUMBERED = re.compile(r"[A-Z][A-Za-z0-9]*_\d+")
"""A node without a name of its own."""
_TOKEN = re.compile(r"_token_\d+(?:_\d+)*$")
_QUANTIZED = re.compile(r"(_MatMul)?_quant$")
"""What a quantizer appends to the name of the operator it replaces."""
_WEIGHT = re.compile(r"_(quantized|Q\d+|DequantizeLinear_Output)$")

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
SWALLOWED = {"Relu", "LeakyRelu", "Sigmoid", "Clip", "Tanh", "HardSigmoid", "BatchNormalization", "Add", "Mul"}
_PASSING = {
    "Cast", "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "Identity", "Transpose", "Reshape",
    "Squeeze", "Unsqueeze", "Flatten", "ReorderInput", "ReorderOutput",
}  # fmt: skip
"""Types that change how a value is written and not what it is: their names mean nothing in another precision."""


def family(operator: OperatorMetrics) -> str:
    kind = operator.type
    return _FAMILIES.get(kind, kind.removeprefix("QLinear"))


class _Groups:
    """Which operators of the two traces belong together."""

    def __init__(self, before: Sequence[OperatorMetrics], after: Sequence[OperatorMetrics]) -> None:
        self.sides = (before, after)
        self.parent: dict[Item, Item] = {
            (side, at): (side, at) for side in (0, 1) for at in range(len(self.sides[side]))
        }
        self.joined: set[Item] = set()
        homes = [{node: at for at, o in reversed([*enumerate(side)]) for node in o.onnx_nodes} for side in self.sides]
        self.homes = homes
        """Per side: node of the model -> the operator it is in."""
        self.readers: defaultdict[Item, list[Item]] = defaultdict(list)
        for item in self.parent:
            for source in self.sources(item):
                if isinstance(source, tuple):
                    self.readers[source].append(item)

    def operator(self, item: Item) -> OperatorMetrics:
        return self.sides[item[0]][item[1]]

    def root(self, item: Item) -> Item:
        while self.parent[item] != item:
            self.parent[item] = self.parent[self.parent[item]]
            item = self.parent[item]
        return item

    def join(self, a: Item, b: Item) -> None:
        self.parent[self.root(b)] = self.root(a)
        self.joined |= {a, b}

    def remaining(self, side: int) -> list[Item]:
        return [(side, at) for at in range(len(self.sides[side])) if (side, at) not in self.joined]

    def partners(self, item: Item) -> list[Item]:
        """The operators of the other side in its group."""
        root = self.root(item)
        return [other for other in self.parent if other[0] != item[0] and self.root(other) == root]

    def sources(self, item: Item) -> list[Item | str]:
        """What an operator reads: operators of its side, and inputs of the model by name."""
        found: list[Item | str] = []
        for name in self.operator(item).reads:
            at = self.homes[item[0]].get(name)
            found.append(name if at is None else (item[0], at))
        return found

    def members(self) -> Iterator[Sides]:
        """The operators of both sides that belong together."""
        groups: defaultdict[Item, list[Item]] = defaultdict(list)
        for item in self.parent:
            groups[self.root(item)].append(item)
        for members in groups.values():
            before, after = (tuple(self.sides[side][at] for s, at in sorted(members) if s == side) for side in (0, 1))
            yield before, after


def _plain(node: str) -> str:
    return _QUANTIZED.sub("", node)


def _working_nodes(operator: OperatorMetrics) -> list[str]:
    """The nodes of an operator that mean the same in another precision."""
    passing = {node for node, kind in operator.absorbed if kind in _PASSING}
    return [node for node in operator.onnx_nodes if node not in passing]


def _find_common_names(groups: _Groups) -> set[str]:
    """Nodes that mean the same in both models: a number alone does so only when all nodes are the same."""
    nodes = [{n for o in side for n in o.onnx_nodes} for side in groups.sides]
    common = {_plain(n) for n in nodes[0]} & {_plain(n) for n in nodes[1]}
    return common if nodes[0] == nodes[1] else {n for n in common if not _NUMBERED.fullmatch(n)}


def _size(operator: OperatorMetrics) -> tuple[int, ...] | None:
    """The dimensions of its weight; of a matrix in any order: a Gemm may hold the weight of a MatMul transposed."""
    if operator.weight is None:
        return None
    dims = operator.weight[1]
    return tuple(sorted(dims)) if len(dims) < 3 else dims


def _contradicts(a: OperatorMetrics, b: OperatorMetrics) -> bool:
    """Whether two operators of one family cannot be the same for their weights; packed weights have other sizes."""
    sizes = _size(a), _size(b)
    packed = "MatMulNBits" in (a.type, b.type, a.op_type, b.op_type)
    return family(a) == family(b) and None not in sizes and sizes[0] != sizes[1] and not packed


def _by_nodes(groups: _Groups) -> None:
    trusted = _find_common_names(groups)
    owners: dict[str, list[Item]] = defaultdict(list)
    for item in groups.parent:
        for node in _working_nodes(groups.operator(item)):
            if _plain(node) in trusted:
                owners[_plain(node)].append(item)
    for members in owners.values():
        sides = [[m for m in members if m[0] == side] for side in (0, 1)]
        if all(sides) and not _contradicts(*(groups.operator(side[0]) for side in sides)):
            for member in members[1:]:
                groups.join(members[0], member)


def _join_unique(groups: _Groups, key: Callable[[Item], Hashable | None]) -> bool:
    """Join the operators that alone on both sides have a key; whether there were any."""
    found: defaultdict[Hashable, tuple[list[Item], list[Item]]] = defaultdict(lambda: ([], []))
    for side in (0, 1):
        for item in groups.remaining(side):
            name = key(item)
            if name is not None:
                found[name][side].append(item)
    pairs = [(a[0], b[0]) for a, b in found.values() if len(a) == len(b) == 1]
    for a, b in pairs:
        groups.join(a, b)
    return bool(pairs)


def _by_weight(groups: _Groups) -> None:
    def key(item: Item) -> Hashable | None:
        operator = groups.operator(item)
        if operator.weight is None or family(operator) in _PASSING:
            return None
        return family(operator), _WEIGHT.sub("", operator.weight[0]), _size(operator)

    _join_unique(groups, key)


def _by_size(groups: _Groups) -> None:
    """Operators whose weight has dimensions that no other of their family has in their trace."""
    uses = Counter((i[0], family(groups.operator(i)), _size(groups.operator(i))) for i in groups.parent)

    def key(item: Item) -> Hashable | None:
        operator = groups.operator(item)
        size = _size(operator)
        if size is None or len(size) < 2 or uses[item[0], family(operator), size] > 1:
            return None
        return family(operator), size

    _join_unique(groups, key)


def _by_name(groups: _Groups) -> None:
    """Operators of traces without a model, by the EP's name where it is more than a number."""

    def key(item: Item) -> Hashable | None:
        operator = groups.operator(item)
        numbered = _NUMBERED.fullmatch(operator.op_path) or _TOKEN.search(operator.op_path)
        if numbered or operator.origin != "unknown":
            return None
        return operator.op_path, operator.ep, family(operator)

    _join_unique(groups, key)


def _place(groups: _Groups, sources: Sequence[Item | str]) -> tuple[Hashable, ...] | None:
    """What operators are by what they belong together with; None when one is not known yet."""
    found: list[Hashable] = []
    for source in sources:
        if isinstance(source, tuple):
            if source not in groups.joined:
                return None
            found.append(groups.root(source))
        else:
            found.append(source)
    return tuple(found)


def _look_through(groups: _Groups, item: Item, *, forward: bool) -> list[Item | str]:
    """What an operator reads (or is read by), past operators that only pass a value on and belong to nothing.

    One that is not absorbed itself is looked for past what others may absorb, too.
    """
    through = _PASSING if family(groups.operator(item)) in SWALLOWED else _PASSING | SWALLOWED
    found: list[Item | str] = []
    waiting: list[Item | str] = [*(groups.readers[item] if forward else groups.sources(item))][::-1]
    seen = set[Item | str]()
    while waiting:
        near = waiting.pop()
        if near in seen:
            continue
        seen.add(near)
        if isinstance(near, tuple) and near not in groups.joined and family(groups.operator(near)) in through:
            waiting += [*(groups.readers[near] if forward else groups.sources(near))][::-1]
        else:
            found.append(near)
    return found


def _by_structure(groups: _Groups) -> None:
    """Operators of one family and size that read the same, or are read by the same, as long as there are any."""

    def reads(item: Item) -> Hashable | None:
        place = _place(groups, _look_through(groups, item, forward=False))
        operator = groups.operator(item)
        return None if not place else (family(operator), _size(operator), place)

    def read_by(item: Item) -> Hashable | None:
        place = _place(groups, _look_through(groups, item, forward=True))
        operator = groups.operator(item)
        return None if not place else (family(operator), _size(operator), tuple(sorted(map(str, place))))

    while _join_unique(groups, reads) or _join_unique(groups, read_by):
        pass


def _regions(groups: _Groups, side: int) -> Iterator[list[Item]]:
    """Operators that belong to nothing yet and stand together."""
    left = {item for item in groups.remaining(side) if groups.operator(item).onnx_nodes}
    while left:
        waiting, region = [left.pop()], list[Item]()
        while waiting:
            item = waiting.pop()
            region.append(item)
            near = {n for n in (*groups.sources(item), *groups.readers[item]) if isinstance(n, tuple)} & left
            left -= near
            waiting += near
        yield sorted(region)


Border = tuple[frozenset[Hashable], frozenset[Hashable]]


def _border(groups: _Groups, region: Sequence[Item]) -> Border:
    """What a region reads and what reads it, by what they belong together with."""
    inside = set(region)
    reads = {
        groups.root(s) if isinstance(s, tuple) else s for i in region for s in groups.sources(i) if s not in inside
    }
    readers = {groups.root(r) for i in region for r in groups.readers[i] if r not in inside}
    return frozenset[Hashable](reads), frozenset[Hashable](readers)


def _by_region(groups: _Groups) -> None:
    """Operators that stand between the same others on both sides do the same together: a GELU and its five parts."""
    borders: list[dict[Border, list[Item]]] = [{}, {}]
    for side in (0, 1):
        found = [(_border(groups, region), region) for region in _regions(groups, side)]
        uses = Counter(border for border, _ in found)
        borders[side] = {border: region for border, region in found if uses[border] == 1 and border[0]}
    for border, region in borders[0].items():
        other = borders[1].get(border)
        if other is not None and _does_the_same(groups, region, other):
            for item in (*region[1:], *other):
                groups.join(region[0], item)


def _does_the_same(groups: _Groups, a: Sequence[Item], b: Sequence[Item]) -> bool:
    kinds = [Counter(family(groups.operator(i)) for i in region) for region in (a, b)]
    working = [{k: n for k, n in one.items() if k not in _PASSING} for one in kinds]
    return all(working) or kinds[0] == kinds[1]


def _by_swallowing(groups: _Groups) -> None:
    """Operators that one side lacks because the operator before them does their work there too."""
    for side in (0, 1):
        for region in list(_regions(groups, side)):
            kinds = {family(groups.operator(i)) for i in region}
            owner = next((o for o in _owners(groups, region) if _may_swallow(groups, o, region, kinds)), None)
            if owner is not None:
                for item in region:
                    groups.join(owner, item)


def _owners(groups: _Groups, region: Sequence[Item]) -> list[Item]:
    """The operators before a region that belong to something."""
    found = (s for i in region for s in groups.sources(i) if isinstance(s, tuple) and s not in region)
    return [s for s in dict.fromkeys(found) if s in groups.joined]


def _may_swallow(groups: _Groups, owner: Item, region: Sequence[Item], kinds: set[str]) -> bool:
    """Whether the partner of `owner` does what a region does: it may, and there what reads the region reads it."""
    partners = groups.partners(owner)
    if not kinds <= SWALLOWED or not any(_is_fused(groups.operator(p)) for p in partners):
        return False
    known = {groups.root(item) for item in groups.joined}
    after = (r for p in partners for r in _look_through(groups, p, forward=True) if isinstance(r, tuple))
    there = {groups.root(owner), *(groups.root(r) for r in after)}
    return all(reader in there for reader in _border(groups, region)[1] if reader in known)


def _is_fused(operator: OperatorMetrics) -> bool:
    """Whether an operator may do the work of others: it is named so, or is not what the model has there."""
    return "Fused" in operator.type or operator.type != (operator.op_type or operator.type)


def _by_neighbour(groups: _Groups) -> None:
    """What was inserted on both sides beside operators that belong together."""

    def key(item: Item) -> Hashable | None:
        operator = groups.operator(item)
        if operator.origin != "inserted" or operator.neighbour is None:
            return None
        at = groups.homes[item[0]].get(operator.neighbour)
        near = operator.neighbour if at is None else groups.root((item[0], at))
        return operator.op_type, operator.ep, near

    _join_unique(groups, key)


def match_operators(before: Sequence[OperatorMetrics], after: Sequence[OperatorMetrics]) -> Iterator[Sides]:
    """Groups of operators; one side of a group is empty where nothing in the other trace corresponds to it."""
    groups = _Groups(before, after)
    for step in (_by_nodes, _by_weight, _by_size, _by_name, _by_structure, _by_region, _by_swallowing, _by_neighbour):
        step(groups)
    return groups.members()

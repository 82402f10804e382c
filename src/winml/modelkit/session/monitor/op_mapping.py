"""From the operators an EP ran back to the nodes of the model.

Optimizers rename, fuse, insert and drop nodes. Where the runtime saved the graph it executes, the values of that graph
say which nodes an operator does the work of (`final_graph`). Elsewhere an operator is resolved by its index, its name
(without what optimizers append), the value it makes, or its position among equals; then it takes in the dropped nodes
around it that its type is known to swallow. Either way it is named by the node that does the work.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import field, replace
from math import prod
from typing import Any

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.op_trace import OperatorMetrics, Origin
from winml.modelkit.graph.outline import Outline, OutlineNode
from winml.modelkit.session.monitor.final_graph import constant_nodes, source_nodes, top_level
from winml.modelkit.session.monitor.fusions import ANY, CORES, EDGES, HEAVY, LAYOUT, PARTS, SWALLOWS, Swallows

_TOKEN = re.compile(r"_token_\d+(?:_\d+)*$")
"""What the runtime appends to be unique; device builds also number the parts of an operator (`Conv_token_1_2`)."""
_CASTS = ("InsertedPrecisionFreeCast_",)
_MAX_DISTANCE = 6
"""Nodes between the one a kernel is named after and the one that does its work: BatchNormalization, Add, activation."""
_FUSION = re.compile(r"/\w*Fusion\w*/?$")
_NUMBERED = re.compile(r"(?P<type>[A-Z]\w*?)_?\d+$")


@dataclass(frozen=True)
class RuntimeOp:
    """An operator as the EP ran it."""

    name: str
    sources: tuple[tuple[str, str | None], ...]
    """Names and types of the nodes the runtime says it comes from; its own where it says nothing."""
    node_index: int | None = None
    boundary: bool = False
    group: str = ""
    """The partition it belongs to; its neighbour is looked for there."""


@dataclass(frozen=True)
class Mapped:
    """What an operator is in the model."""

    origin: Origin
    nodes: tuple[str, ...] = ()
    """The node that does the work, then the others in model order."""
    onnx_op_type: str | None = None
    neighbour: str | None = None
    absorbed: tuple[tuple[str, str], ...] = ()
    """Names and types of the other nodes."""
    reads: tuple[str, ...] = ()
    """What it reads: the working nodes of other operators, and inputs of the model as `input:NAME`."""
    weight: tuple[str, tuple[int, ...]] | None = None
    """Name and dimensions of the largest weight of its working node."""


@dataclass(frozen=True)
class ModelMapping:
    """Every operator's place in the model, and the nodes that no operator is named after."""

    operators: tuple[Mapped, ...]
    absorbed: tuple[dict[str, Any], ...]


def place_operators(operators: Sequence[OperatorMetrics], mapping: ModelMapping) -> list[OperatorMetrics]:
    """The operators with their place in the model."""
    return [
        replace(
            o,
            onnx_op_type=m.onnx_op_type,
            onnx_nodes=m.nodes,
            origin=m.origin,
            neighbour=m.neighbour,
            absorbed=m.absorbed,
            reads=m.reads,
            weight=m.weight,
        )
        for o, m in zip(operators, mapping.operators, strict=True)
    ]


def plain_name(name: str) -> str:
    """A name without what optimizers put around it."""
    name = name.removeprefix("fused ")
    while True:
        shorter = _FUSION.sub("", _TOKEN.sub("", name)).removesuffix("_nchwc").removesuffix("_nhwc")
        if shorter == name:
            return name
        name = shorter


def _core_types(op_type: str) -> tuple[str, ...]:
    bare = op_type.removeprefix("QLinear").removeprefix("Nhwc")
    return (*CORES.get(op_type, ()), *((bare,) if bare != op_type else ()))


@dataclass
class _Resolver:
    """Which node belongs to which operator, found step by step."""

    outline: Outline
    claimed: dict[str, int] = field(default_factory=dict)
    """Node label -> the first operator it belongs to."""

    def __post_init__(self) -> None:
        nodes = self.outline.nodes
        self.by_label = {n.label: n for n in nodes}
        self.by_index = {n.index: n for n in nodes if n.index is not None}
        self.producers = {value: n for n in nodes for value in n.outputs if value}
        consumers: defaultdict[str, list[OutlineNode]] = defaultdict(list)
        for node in nodes:
            for value in node.inputs:
                consumers[value].append(node)
        self.consumers: Mapping[str, list[OutlineNode]] = consumers
        self.order = {node.label: at for at, node in enumerate(nodes)}
        self.waiting: defaultdict[tuple[str, bool], deque[OutlineNode]] = defaultdict(deque)
        """Nodes by type in model order, all of them and those without a name; claimed ones are dropped on the way."""
        for node in nodes:
            self.waiting[node.op_type, False].append(node)
            if not node.name:
                self.waiting[node.op_type, True].append(node)

    def by_name(self, name: str, op_type: str | None, index: int | None) -> OutlineNode | None:
        at = None if index is None else self.by_index.get(index)
        if at is not None and at.op_type == op_type and name in (at.name, at.label, ""):
            return at
        for word in (name, plain_name(name)):
            node = self.by_label.get(word) or self.producers.get(word)
            if node is not None:
                return node
        return None

    def by_position(self, name: str, op_type: str | None) -> OutlineNode | None:
        """The next unclaimed node among those that have no name, for an operator whose name is only a number."""
        bare = plain_name(name)
        numbered = _NUMBERED.fullmatch(bare)
        kind = numbered["type"] if numbered else op_type if not bare else None
        if kind is None:
            return None
        kinds = (kind, *_core_types(op_type)) if op_type else (kind,)
        return self._next(kinds, nameless=True)

    def by_core(self, op_type: str | None) -> OutlineNode | None:
        """The next unclaimed node of the type that shows where a fused operator belongs."""
        return self._next(_core_types(op_type), nameless=False) if op_type else None

    def _next(self, kinds: Iterable[str], *, nameless: bool) -> OutlineNode | None:
        heads = []
        for kind in kinds:
            queue = self.waiting[kind, nameless]
            while queue and queue[0].label in self.claimed:
                queue.popleft()
            heads += [queue[0]] if queue else []
        return min(heads, key=lambda node: self.order[node.label], default=None)

    def around(self, node: OutlineNode) -> Iterator[tuple[OutlineNode, bool]]:
        """The nodes that use its values (True), then those that make its inputs (False)."""
        for value in node.outputs:
            yield from ((user, True) for user in self.consumers.get(value, ()))
        for value in node.inputs:
            if value in self.producers:
                yield self.producers[value], False

    def grow(self, members: Sequence[OutlineNode], owner: int, swallows: Swallows) -> list[OutlineNode]:
        """The dropped nodes around `members` that its operator takes in."""
        left = {True: Counter(swallows.after), False: Counter(swallows.before)}
        found: list[OutlineNode] = []
        waiting = list(members)
        while waiting:
            for node, after in self.around(waiting.pop(0)):
                if node.label not in self.claimed and left[after][node.op_type] > 0:
                    left[after][node.op_type] -= 1
                    self.claimed[node.label] = owner
                    found.append(node)
                    waiting.append(node)
        return found

    def find_node(self, name: str) -> OutlineNode | None:
        """The node of the main graph that a name means, itself or by the value it makes."""
        plain = plain_name(name)
        for word in (name, plain, *(plain.removeprefix(p) for p in _CASTS)):
            node = self.by_label.get(word) or self.producers.get(word)
            if node is not None and node.index is not None:
                return node
        return None

    def find_folded(self) -> set[str]:
        """Unclaimed nodes that depend on weights alone: computed when the model was opened."""
        return {label for label in constant_nodes(self.outline) if label not in self.claimed}


def map_operators(outline: Outline, operators: Sequence[RuntimeOp], final: Outline | None = None) -> ModelMapping:
    """The place of every operator in the model; every node is in one, absorbed into one, or listed as gone.

    `final` is the graph the runtime executes, where it could be saved.
    """
    if not outline.nodes:
        unknown = [Mapped("boundary" if op.boundary else "unknown") for op in operators]
        return ModelMapping(tuple(unknown), ())
    resolver = _Resolver(outline)
    if outline.compiled:
        return ModelMapping(tuple(_neighbours(operators, [_map_compiled(op, resolver) for op in operators])), ())
    certain = {} if final is None else _by_graph(resolver, operators, final)
    named = _find_named(resolver, operators, certain)
    grown = _grow_operators(resolver, operators, named, certain)
    mapped = [
        _map_operator(op, own, taken, resolver.order) for op, own, taken in zip(operators, named, grown, strict=True)
    ]
    wired = _add_wiring(resolver, mapped)
    return ModelMapping(tuple(_neighbours(operators, wired)), tuple(_list_absorbed(resolver, operators, named)))


def _by_graph(resolver: _Resolver, operators: Sequence[RuntimeOp], final: Outline) -> dict[int, list[OutlineNode]]:
    """The nodes of every operator that is a node of the graph the runtime saved; the one that does the work first."""
    kernels = top_level(final)
    members = source_nodes(resolver.outline, final, resolver.find_node)
    found: dict[int, list[OutlineNode]] = {}
    for owner, at in _positions(operators, kernels).items():
        nodes = members[at]
        if nodes:
            main = _main(operators[owner], nodes)
            found[owner] = [main, *(n for n in nodes if n is not main)]
            for node in nodes:
                resolver.claimed[node.label] = owner
        else:
            found[owner] = []
    return found


def _positions(operators: Sequence[RuntimeOp], kernels: Sequence[OutlineNode]) -> dict[int, int]:
    """Which kernel every operator is: both are in the order of execution, else by unique name and type."""
    kinds = [op.sources[0][1] for op in operators]
    if kinds == [k.op_type for k in kernels]:
        return {at: at for at in range(len(kinds))}
    uses = Counter((k.name, k.op_type) for k in kernels)
    places = {(k.name, k.op_type): at for at, k in enumerate(kernels) if k.name and uses[k.name, k.op_type] == 1}
    keys = [op.sources[0] for op in operators]
    return {owner: places[name, kind] for owner, (name, kind) in enumerate(keys) if kind and (name, kind) in places}


def _find_named(
    resolver: _Resolver, operators: Sequence[RuntimeOp], certain: Mapping[int, list[OutlineNode]]
) -> list[list[OutlineNode]]:
    """The nodes each operator is named after; those with a clear name first, so that no other operator takes theirs."""
    found: list[dict[int, OutlineNode]] = [dict(enumerate(certain.get(at, [])[:1])) for at in range(len(operators))]
    steps: tuple[Callable[[RuntimeOp, str, str | None], OutlineNode | None], ...] = (
        lambda op, name, kind: resolver.by_name(name, kind, op.node_index),
        lambda op, name, kind: resolver.by_position(name, kind),
        lambda op, name, kind: resolver.by_core(kind),
    )
    for step in steps:
        for owner, op in enumerate(operators):
            for place, (name, kind) in enumerate(() if op.boundary or owner in certain else op.sources):
                node = None if place in found[owner] else step(op, name, kind)
                if node is not None:
                    found[owner][place] = node
                    resolver.claimed.setdefault(node.label, owner)
    return [[nodes[place] for place in sorted(nodes)] for nodes in found]


def _swallows(kind: str, own: Sequence[OutlineNode]) -> Swallows:
    """What an operator of a type takes in, given the nodes it is named after."""
    types = {node.op_type for node in own}
    if kind in CORES and kind in types:
        return Swallows()  # the model has this very operator; nothing was fused to make it
    if kind.startswith("Skip") and types & {"LayerNormalization", "SimplifiedLayerNormalization"}:
        return Swallows(before={"Add": 2})
    return SWALLOWS.get(kind, Swallows())


def _grow_operators(
    resolver: _Resolver,
    operators: Sequence[RuntimeOp],
    named: Sequence[list[OutlineNode]],
    certain: Mapping[int, list[OutlineNode]],
) -> list[list[OutlineNode]]:
    found: list[list[OutlineNode]] = [certain.get(owner, [])[1:] for owner in range(len(operators))]
    guessed = [(owner, op, own) for owner, (op, own) in enumerate(zip(operators, named, strict=True))
               if owner not in certain]  # fmt: skip
    for owner, op, own in guessed:
        for kind in dict.fromkeys(kind for _, kind in op.sources if kind):
            found[owner] += _way_to_core(resolver, owner, kind, own)
            found[owner] += resolver.grow([*own, *found[owner]], owner, _swallows(kind, own))
    for owner, _, own in guessed:
        found[owner] += resolver.grow([*own, *found[owner]], owner, ANY)
    return found


def _way_to_core(resolver: _Resolver, owner: int, kind: str, own: Sequence[OutlineNode]) -> list[OutlineNode]:
    """The dropped nodes from the one an operator is named after back to the one of its own type."""
    kinds = {kind, *_core_types(kind)} & set(HEAVY)
    if not kinds or not own or any(node.op_type in kinds for node in own):
        return []
    ways: deque[list[OutlineNode]] = deque([[node] for node in own])
    while ways:
        way = ways.popleft()
        if way[-1].op_type in kinds:
            for node in way[1:]:
                resolver.claimed[node.label] = owner
            return way[1:]
        before = (resolver.producers.get(value) for value in way[-1].inputs)
        if len(way) < _MAX_DISTANCE:
            ways += [[*way, n] for n in before if n is not None and n.label not in resolver.claimed]
    return []


def _main(op: RuntimeOp, nodes: Sequence[OutlineNode]) -> OutlineNode:
    """The node that does the work: of the operator's own type, else a heavy one, else no edge between precisions."""
    kinds = {kind for _, name in op.sources if name for kind in (name, *_core_types(name))}
    inner = [n for n in nodes if n.op_type not in EDGES]
    heavy = [n for n in inner if n.op_type in HEAVY]
    own = [n for n in inner if n.op_type in kinds] or [n for n in nodes if n.op_type in kinds]
    return (*own, *heavy, *inner, *nodes)[0]


def _map_operator(op: RuntimeOp, own: list[OutlineNode], taken: list[OutlineNode], order: Mapping[str, int]) -> Mapped:
    if op.boundary:
        return Mapped("boundary")
    if not own:
        return Mapped("inserted")
    nodes = list({n.label: n for n in (*own, *taken)}.values())
    main = _main(op, nodes)
    others = sorted((n for n in nodes if n is not main), key=lambda n: order[n.label])
    origin: Origin = "fused" if others else "node"
    kind = None if origin == "fused" and main.op_type in PARTS else main.op_type
    labels = (main.label, *(n.label for n in others))
    return Mapped(origin, labels, kind, absorbed=tuple((n.label, n.op_type) for n in others))


def _add_wiring(resolver: _Resolver, mapped: Sequence[Mapped]) -> list[Mapped]:
    """The same, with what every operator reads and its largest weight: its place in the structure of the model."""
    owners = {label: place.nodes[0] for place in reversed(mapped) for label in place.nodes}
    constant = constant_nodes(resolver.outline)
    return [
        replace(place, reads=_reads(resolver, place, owners, constant), weight=_weight(resolver, place, constant))
        if place.nodes
        else place
        for place in mapped
    ]


def _reads(resolver: _Resolver, place: Mapped, owners: Mapping[str, str], constant: Set[str]) -> tuple[str, ...]:
    """What its nodes read of others, in the order of their inputs; nodes that are in no operator are seen through."""
    members = sorted(set(place.nodes), key=resolver.order.__getitem__)
    found: list[str] = []
    waiting = [value for label in members for value in resolver.by_label[label].inputs if value][::-1]
    seen = set[str]()
    while waiting:
        value = waiting.pop()
        node = resolver.producers.get(value)
        if value in seen or value in resolver.outline.weights or (node is not None and node.label in constant):
            continue
        seen.add(value)
        if node is None:
            found.append(f"input:{value}")
        elif node.label not in owners:
            waiting += [v for v in reversed(node.inputs) if v]
        elif owners[node.label] != place.nodes[0]:
            found.append(owners[node.label])
    return tuple(dict.fromkeys(found))


def _weight(resolver: _Resolver, place: Mapped, constant: Set[str]) -> tuple[str, tuple[int, ...]] | None:
    """The largest weight its working node reads, through nodes that depend on weights alone."""
    waiting, found = list(resolver.by_label[place.nodes[0]].inputs), list[tuple[int, str]]()
    while waiting:
        value = waiting.pop()
        node = resolver.producers.get(value)
        if value in resolver.outline.shapes:
            found.append((prod(resolver.outline.shapes[value]), value))
        elif node is not None and node.label in constant:
            waiting += node.inputs
    size, name = max(found, default=(0, ""))
    return (name, tuple(resolver.outline.shapes[name])) if size > 1 else None


def _map_compiled(op: RuntimeOp, resolver: _Resolver) -> Mapped:
    """An operator of a compiled model, most of whose nodes only the EP knows: its names are taken as they are."""
    if op.boundary:
        return Mapped("boundary")
    names: dict[str, str | None] = {}
    for name, kind in op.sources:
        node = resolver.by_name(name, kind, op.node_index)
        plain = plain_name(name)
        if node is not None:
            names[node.label] = node.op_type
        elif plain not in ("", kind, *LAYOUT):
            names[plain] = kind
    if not names:
        return Mapped("inserted")
    first_type = next((kind for kind in names.values() if kind), None)
    return Mapped("node" if len(names) == 1 else "fused", tuple(names), first_type)


def _neighbours(operators: Sequence[RuntimeOp], mapped: Sequence[Mapped]) -> Iterator[Mapped]:
    """The same, with the node that follows (or else precedes) every inserted operator in its partition."""
    for at, place in enumerate(mapped):
        if place.origin != "inserted":
            yield place
            continue
        following = [*range(at + 1, len(mapped)), *range(at - 1, -1, -1)]
        near = (mapped[i].nodes[0] for i in following if mapped[i].nodes and operators[i].group == operators[at].group)
        yield replace(place, neighbour=next(near, None))


def _list_absorbed(
    resolver: _Resolver, operators: Sequence[RuntimeOp], named: Sequence[list[OutlineNode]]
) -> Iterator[dict[str, Any]]:
    own = {node.label for nodes in named for node in nodes}
    folded = resolver.find_folded()
    for node in resolver.outline.nodes:
        if node.label in own or node.op_type == "Constant":
            continue
        owner = resolver.claimed.get(node.label)
        how = "fused" if owner is not None else "folded" if node.label in folded else "gone"
        into = None if owner is None else operators[owner].name
        yield {"node": node.label, "op_type": node.op_type, "into": into, "how": how}

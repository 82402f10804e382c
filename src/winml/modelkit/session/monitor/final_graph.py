"""From the graph the runtime executes back to the graph of the model.

The runtime saves the graph it made of a model. A kernel does the work of every source node between the values it reads
and the value it makes. Most values keep their names; a kernel whose value was renamed is found through the layout node
that gives the value its old name back, or else through the kernel's own name. Such a kernel may do more than its name
says: a blocked Conv is named after its own output and adds and clips besides. What follows it belongs to it when no
other kernel reads what is needed for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import field

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.graph.outline import Outline, OutlineNode
from winml.modelkit.session.monitor.fusions import EDGES, SWALLOWS, Swallows

_TRANSPARENT = (
    "ReorderInput", "ReorderOutput", "Transpose", "Reshape", "Squeeze", "Unsqueeze", "Cast", "Identity",
    "MemcpyFromHost", "MemcpyToHost", *EDGES,
)  # fmt: skip
"""Nodes a runtime inserts that pass on a value in another layout, shape or precision."""
_PREFIXES = ("InsertedPrecisionFreeCast_", "InsertedCast_")
"""What the runtime puts before the name of a value that it keeps in another precision."""


def top_level(outline: Outline) -> list[OutlineNode]:
    """The nodes of the main graph that run: constants do not."""
    return [n for n in outline.nodes if n.index is not None and n.op_type != "Constant"]


def constant_nodes(outline: Outline) -> set[str]:
    """Labels of the nodes that depend on weights alone."""
    known, found = set(outline.weights), set[str]()
    for node in outline.nodes:  # a model's nodes are in an order in which they can run
        if all(not value or value in known for value in node.inputs) and (node.inputs or node.op_type == "Constant"):
            found.add(node.label)
            known.update(node.outputs)
    return found


@dataclass
class _Walk:
    """Which source nodes belong to which kernel; kernels are positions in `final`."""

    source: Outline
    final: Sequence[OutlineNode]
    find: Callable[[str], OutlineNode | None]
    """The source node a kernel's name means, without what optimizers put around it."""
    claimed: dict[str, int] = field(default_factory=dict)
    meaning: dict[str, str] = field(default_factory=dict)
    """Value of the final graph -> value of the source."""
    ends: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Kernel -> the source values it makes; none for a kernel that was inserted."""
    named: dict[int, OutlineNode] = field(default_factory=dict)
    """Kernels that are a source node by name and type."""
    weak: set[int] = field(default_factory=set)
    """Kernels whose value is known by their name alone."""

    def __post_init__(self) -> None:
        nodes = [n for n in self.source.nodes if n.index is not None]
        self.by_label = {n.label: n for n in nodes}
        self.producers = {value: n for n in nodes for value in n.outputs if value}
        self.constant = constant_nodes(self.source)
        self.consumers: defaultdict[str, list[OutlineNode]] = defaultdict(list)
        for node in nodes:
            for value in node.inputs:
                self.consumers[value].append(node)
        self.readers: defaultdict[str, list[int]] = defaultdict(list)
        self.makers: dict[str, int] = {}
        for at, kernel in enumerate(self.final):
            self.makers |= dict.fromkeys(kernel.outputs, at)
            for value in kernel.inputs:
                self.readers[value].append(at)

    def source_value(self, value: str) -> str | None:
        """The source value of a name."""
        while value not in self.producers:
            shorter = next((value.removeprefix(p) for p in _PREFIXES if value.startswith(p)), None)
            if shorter is None:
                return None
            value = shorter
        return value

    def is_inserted(self, at: int) -> bool:
        """Whether a kernel passes on a value that another kernel makes."""
        kernel = self.final[at]
        if kernel.op_type not in _TRANSPARENT or at in self.named:
            return False
        made = [self.producers[self.meaning[v]] for v in kernel.outputs if v in self.meaning]
        return not any(node.op_type == kernel.op_type for node in made)

    def give_meaning(self) -> None:
        """Values to source values, from the end of the graph: what comes after a value may give it its old name."""
        for at in range(len(self.final) - 1, -1, -1):
            kernel = self.final[at]
            own = self.by_label.get(kernel.name)
            if own is not None and own.op_type == kernel.op_type:
                self.named[at] = own
            for value in kernel.outputs:
                after = (
                    self.meaning.get(out)
                    for reader in self.readers[value]
                    if self.final[reader].inputs[0] == value and self.is_inserted(reader)
                    for out in self.final[reader].outputs
                )
                found = self.source_value(value) or next((v for v in after if v is not None), None)
                if found is not None:
                    self.meaning[value] = found

    def find_ends(self) -> None:
        for at, kernel in enumerate(self.final):
            if self.is_inserted(at):
                continue
            ends = tuple(dict.fromkeys(self.meaning[v] for v in kernel.outputs if v in self.meaning))
            if not ends:
                node = self.named.get(at) or self.find(kernel.name)
                ends = () if node is None else tuple(v for v in node.outputs if v)
                self.weak.add(at)
            self.ends[at] = ends

    def claim(self) -> None:
        """Every kernel the nodes between what it makes and what kernels before it made."""
        alive = {value for ends in self.ends.values() for value in ends}
        for at, own in self.named.items():
            if at in self.ends:
                self.claimed.setdefault(own.label, at)
        for at, ends in self.ends.items():
            waiting = list(ends)
            first = set(ends)
            seen = set[str]()
            while waiting:
                value = waiting.pop()
                node = self.producers.get(value)
                if node is None or value in seen or (value in alive and value not in first):
                    continue
                seen.add(value)
                if self.claimed.setdefault(node.label, at) != at or self._is_folded(node):
                    continue
                waiting += node.inputs

    def _is_folded(self, node: OutlineNode) -> bool:
        """Whether it was computed when the model was opened; precision edges of weights stay with their operator."""
        if node.label not in self.constant or node.op_type in EDGES:
            return False
        if self.named.get(self.claimed[node.label]) is not node:
            del self.claimed[node.label]
        return True

    def _sources(self, at: int) -> set[int]:
        """The kernels whose values a kernel reads, through inserted ones."""
        found, waiting = set[int](), list(self.final[at].inputs)
        while waiting:
            maker = self.makers.get(waiting.pop())
            if maker is not None and maker not in found:
                found.add(maker)
                if maker not in self.ends:
                    waiting += self.final[maker].inputs
        return found

    def _inputs_met(self, node: OutlineNode, at: int, reads: set[int]) -> bool:
        for value in node.inputs:
            producer = self.producers.get(value)
            owner = at if producer is None or producer.label in self.constant else self.claimed.get(producer.label)
            if owner != at and owner not in reads:
                return False
        return True

    def extend(self) -> None:
        """What a kernel known by name does beyond its name: the nodes after it that no other kernel can compute."""
        for at in sorted(self.weak):
            takes = {*SWALLOWS.get(self.final[at].op_type, Swallows()).after}
            if self.final[at].op_type.startswith("Q"):  # QLinearConv, QGemm: their value is quantized
                takes.add("QuantizeLinear")
            reads = self._sources(at)
            waiting = list(self.ends[at])
            while waiting:
                # A kernel makes one value: what follows joins it only if nothing else needs what it made before.
                after = self.consumers[waiting.pop()]
                if len(after) == 1 and self._may_move(after[0], takes) and self._inputs_met(after[0], at, reads):
                    self.claimed[after[0].label] = at
                    waiting += after[0].outputs

    def _may_move(self, node: OutlineNode, takes: Set[str]) -> bool:
        owner = self.claimed.get(node.label)
        is_end = owner is not None and any(value in self.ends[owner] for value in node.outputs)
        return not is_end and self.named.get(-1 if owner is None else owner) is not node and node.op_type in takes

    def members(self) -> Iterator[list[OutlineNode]]:
        found: defaultdict[int, list[OutlineNode]] = defaultdict(list)
        for node in self.source.nodes:
            if node.label in self.claimed:
                found[self.claimed[node.label]].append(node)
        yield from (found[at] or found[self._whole(at)] for at in range(len(self.final)))

    def _whole(self, at: int) -> int:
        """The kernel that ends the work a kernel without a node of its own is a part of: an inlined Softmax is five."""
        part = at
        while not self.ends.get(part) and self.final[part].op_type not in _TRANSPARENT:
            after = {reader for value in self.final[part].outputs for reader in self.readers[value]}
            unknown = {r for r in after if self.ends.get(r) == ()}
            if len(after) != 1 and not unknown:
                return at
            part = min(unknown or after)
        return part if self.ends.get(part) else at


def source_nodes(source: Outline, final: Outline, find: Callable[[str], OutlineNode | None]) -> list[list[OutlineNode]]:
    """Per node of `top_level(final)` the source nodes it does the work of; none for one that was inserted."""
    walk = _Walk(source, top_level(final), find)
    walk.give_meaning()
    walk.find_ends()
    walk.claim()
    walk.extend()
    return list(walk.members())

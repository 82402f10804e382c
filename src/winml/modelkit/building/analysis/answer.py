"""The answer for a model on one target: from the EP itself, from the tables, or unknown. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

from winml.modelkit.building.analysis.reasons import Reason
from winml.modelkit.building.analysis.result import (
    AskedNode,
    LeftNode,
    NodePlacement,
    OpAnswer,
    OpStatus,
    StatusCounts,
)
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.target import Target
from winml.modelkit.ep import catalog
from winml.modelkit.knowledge import operators

STATUSES: tuple[OpStatus, ...] = get_args(OpStatus)

CPU = "CPUExecutionProvider"
_LAYOUT_DOMAIN = "com.ms.internal.nhwc:"
_LAYOUT_NAME = re.compile(r"_token_\d+$")
"""What the runtime appends to the name of a node that it rewrites for the layout an EP wants."""
_PRIVATE_DOMAIN = "com.microsoft.nchwc:"
"""The CPU EP's own layout. QNN 2.7.0 looks at the operator's name only, takes it and computes wrong values."""
_MISREAD = "mistaken for the ONNX operator of the same name; its values are wrong"
_SETTING = "is configured to not take"
"""In the reason for a node that the EP could take and leaves by a setting of its own."""
_NEVER_ASKED = ("Constant",)
"""Operators that are weights by the time an EP is asked."""
_USUAL_FORMS = ("float32", "float16", "int32", "int64", "bool", "quantized", "pattern")
"""Forms of a table that models come in; that an EP takes no float64 is one hazard, not one per operator."""


@dataclass(frozen=True)
class PlacedNode:
    """A node as the EP was asked about it, by the name it has in the model."""

    name: str
    op: str
    ep: str
    partition: int | None
    reason: str | None = None
    """Why the EP did not take the node, in its own words; None when it did, or gave no reason."""

    @property
    def by_setting(self) -> bool:
        return self.reason is not None and _SETTING in self.reason


def plain_name(name: str) -> str:
    """The name a node has in the model."""
    return _LAYOUT_NAME.sub("", name)


def place_nodes(assigned: Iterable[AskedNode], reasons: Sequence[Reason]) -> list[PlacedNode]:
    """The nodes of a session with the EP's reasons for those it left to the CPU."""
    why = {plain_name(reason.node): reason.text for reason in reasons if plain_name(reason.node)}
    return [
        PlacedNode(
            plain_name(node.name),
            node.op.removeprefix(_LAYOUT_DOMAIN),
            node.ep,
            node.partition,
            why.get(plain_name(node.name)) if node.ep == CPU else None,
        )
        for node in assigned
    ]


def is_added(node: PlacedNode, names: frozenset[str]) -> bool:
    """Whether a node is a Transpose that the runtime put in for the layout an EP wants."""
    return node.op == "Transpose" and node.name not in names


def summarize_ops(nodes: Sequence[PlacedNode], ep: str) -> tuple[OpAnswer, ...]:
    """Per operator how much of it the EP took; what it leaves by a setting does not count against it."""
    by_op: dict[str, list[PlacedNode]] = {}
    for node in nodes:
        by_op.setdefault(node.op, []).append(node)
    return tuple(_summarize_op(op, group, ep) for op, group in by_op.items())


def _summarize_op(op: str, nodes: list[PlacedNode], ep: str) -> OpAnswer:
    taken = sum(node.ep == ep for node in nodes)
    if taken and ep != CPU and op.startswith(_PRIVATE_DOMAIN):
        return OpAnswer(op, "unsupported", len(nodes), taken, _MISREAD)
    left = [node for node in nodes if node.ep != ep and not node.by_setting]
    status: OpStatus = "supported" if not left else "partial" if taken else "unsupported"
    reasons = Counter(node.reason for node in left or nodes if node.reason)
    return OpAnswer(op, status, len(nodes), taken, reasons.most_common(1)[0][0] if reasons else None)


def table_ops(ops: Mapping[str, int], target: Target) -> tuple[OpAnswer, ...]:
    """Per operator what the tables say, for a target that cannot be asked."""
    return tuple(_table_op(op, nodes, target) for op, nodes in ops.items() if op not in _NEVER_ASKED)


def _table_op(op: str, nodes: int, target: Target) -> OpAnswer:
    entry = operators.find_operator(target.ep, target.device, op)
    if entry is None:
        return OpAnswer(op, "unknown", nodes, None, None)
    whole = all(took == asked for form, (took, asked) in entry.forms.items() if form in _USUAL_FORMS)
    status: OpStatus = "unsupported" if not entry.taken else "supported" if whole else "partial"
    return OpAnswer(op, status, nodes, None, entry.reason)


def unknown_ops(ops: Mapping[str, int], reasons: Sequence[Reason]) -> tuple[OpAnswer, ...]:
    """Every operator as unknown except those that the EP refused before it failed."""
    refused = {r.op: r.text for r in reasons if r.op == r.unit and _SETTING not in r.text}
    return tuple(
        OpAnswer(op, "unsupported", nodes, 0, refused[name])
        if (name := op.rpartition(":")[2]) in refused
        else OpAnswer(op, "unknown", nodes, None, None)
        for op, nodes in ops.items()
        if op not in _NEVER_ASKED
    )


def count(answers: Iterable[OpAnswer]) -> StatusCounts:
    """How many operators have each status."""
    found = Counter(answer.status for answer in answers)
    return StatusCounts(**{status: found[status] for status in STATUSES})


def verdict(answers: Sequence[OpAnswer]) -> OpStatus:
    """The status of a target: supported when all operators are, unknown when that cannot be determined."""
    statuses = {answer.status for answer in answers}
    if statuses <= {"supported"}:
        return "supported"
    if statuses == {"unsupported"}:
        return "unsupported"
    return "unknown" if statuses <= {"supported", "unknown"} else "partial"


def find_left_nodes(nodes: Sequence[PlacedNode], ep: str) -> tuple[LeftNode, ...]:
    """The nodes that another EP runs, with the reason."""
    return tuple(
        LeftNode(name=node.name, op=node.op, ep=node.ep, reason=node.reason, by_setting=node.by_setting)
        for node in nodes
        if node.ep != ep
    )


def count_removed(model_nodes: Iterable[Sequence[str]], nodes: Iterable[PlacedNode]) -> dict[str, int]:
    """Operators whose nodes the runtime folded or fused before it asked the EP."""
    placed = {node.name for node in nodes}
    return dict(Counter(op for name, op in model_nodes if name not in placed).most_common())


def placement(nodes: Sequence[PlacedNode], target: Target, names: frozenset[str]) -> NodePlacement:
    """Where the nodes went, in numbers."""
    ep = catalog.BY_NAME[target.ep].full_name
    return NodePlacement(
        on_target=sum(node.ep == ep for node in nodes),
        on_cpu=0 if ep == CPU else sum(node.ep == CPU for node in nodes),
        by_setting=sum(node.by_setting for node in nodes),
        partitions=len({node.partition for node in nodes if node.partition is not None}),
        layout_nodes=sum(is_added(node, names) for node in nodes),
    )

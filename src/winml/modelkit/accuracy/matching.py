"""Which values of two graphs are the same: by their names, then by the order of operators."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from onnx import NodeProto

from winml.modelkit.accuracy.slices import DEQUANTIZE, QUANTIZE, Graph
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.graph import walk

MAX_ALIGNED = 4000
"""Nodes of a graph that are aligned at most: the time grows with the square."""
_HELPERS = (QUANTIZE, DEQUANTIZE, "Cast", "Identity", "Constant", "DynamicQuantizeLinear")


@dataclass(frozen=True)
class Matched:
    """Values of a reference with their counterparts in another graph."""

    values: Mapping[str, str]
    by_structure: frozenset[str]
    """Those that have another name there."""
    unmatched: tuple[str, ...]
    """Outputs of nodes of the reference without a counterpart."""


def match_values(reference: Graph, candidate: Graph) -> Matched:
    """Outputs of nodes of the reference that the candidate computes too."""
    wanted = [name for node in reference.nodes if node.op_type not in _HELPERS for name in node.output if name]
    named = {name: name for name in wanted if name in candidate.makers}
    aligned = _align(reference, candidate, named) if len(named) < len(wanted) else {}
    values = {name: named.get(name) or aligned[name] for name in wanted if name in named or name in aligned}
    return Matched(
        values=values,
        by_structure=frozenset(name for name in values if name not in named),
        unmatched=tuple(name for name in wanted if name not in values),
    )


def _align(reference: Graph, candidate: Graph, named: Mapping[str, str]) -> dict[str, str]:
    """Counterparts of values with other names, where both graphs have the same operators one after another."""
    ours, theirs = _computing(reference), _computing(candidate)
    if max(len(ours), len(theirs)) > MAX_ALIGNED:
        return {}
    taken = set(named.values())
    found: dict[str, str] = {}
    matcher = difflib.SequenceMatcher(None, [walk.op_key(n) for n in ours], [walk.op_key(n) for n in theirs], False)
    for block in matcher.get_matching_blocks():
        for step in range(block.size):
            before, after = ours[block.a + step], theirs[block.b + step]
            for name, other in zip(before.output, after.output, strict=False):
                if name and name not in named and other and other not in taken:
                    found[name] = other
                    taken.add(other)
    return found


def _computing(graph: Graph) -> Sequence[NodeProto]:
    return [node for node in graph.nodes if node.op_type not in _HELPERS]

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

_SWALLOWED = ("Relu", "Clip")
"""What a range that ends where it ends does as well."""


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
    found = _follow_swallowed(reference, candidate, values)
    values = {name: found[name] for name in wanted if name in found}
    return Matched(
        values=values,
        by_structure=frozenset(name for name, other in values.items() if name != other),
        unmatched=tuple(name for name in wanted if name not in values),
    )


def _follow_swallowed(reference: Graph, candidate: Graph, values: Mapping[str, str]) -> dict[str, str]:
    """With the value behind a Relu or Clip where the range of a pair does what the operator did.

    A quantizer leaves such an operator away: the convolution before it then gives, behind its pair, what the operator
    gave. Its own value is in the reference alone.
    """
    found = dict(values)
    for index, node in enumerate(reference.nodes):
        before, after = next(iter(node.input), ""), node.output[0]
        if node.op_type not in _SWALLOWED or before not in values or after in values:
            continue
        other = values[before]
        alone = reference.readers.get(before) == [index] and before not in reference.outputs
        if alone and candidate.seen(other) != other and not _is_read_by(candidate, candidate.seen(other), node.op_type):
            del found[before]
            found[after] = other
    return found


def _is_read_by(graph: Graph, value: str, op: str) -> bool:
    return any(graph.nodes[index].op_type == op for index in graph.readers.get(value, ()))


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

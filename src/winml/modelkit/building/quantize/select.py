"""Which nodes are to be quantized, and for every other one the reason why not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from types import MappingProxyType

from onnx import ModelProto, NodeProto

from winml.modelkit.building.quantize.result import LeftNodes, NodeSummary
from winml.modelkit.core.config import QuantizeSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.graph import walk

_DOMAINS = ("", "ai.onnx", "com.microsoft")
"""Operators of other domains work on layouts of their own, even when they share the name of one of ONNX."""

IN_A_BODY = "inside the body of an If, Loop or Scan"
NOT_ABLE = "this mode does not quantize the operator"


@dataclass(frozen=True)
class NodeSelection:
    """Names of the nodes to quantize; for the others the reason why not."""

    chosen: frozenset[str]
    left: Mapping[str, str]

    def without(self, names: Mapping[str, str]) -> NodeSelection:
        """The selection without some nodes, each with its reason."""
        removed = {name: reason for name, reason in names.items() if name in self.chosen}
        return NodeSelection(self.chosen - removed.keys(), {**self.left, **removed})


def select(
    model: ModelProto,
    section: QuantizeSection,
    able: Collection[str],
    *,
    bodies: bool,
    unable: Mapping[str, str] = MappingProxyType({}),
) -> NodeSelection:
    """The nodes that a section selects among those of the `able` operators.

    Without `bodies` nodes inside other nodes are left alone. `unable` has the reasons of single operators.
    """
    _check_names(model, section)
    chosen: set[str] = set()
    left: dict[str, str] = {}
    outer = {node.name for node in model.graph.node}
    for node in walk.nodes(model):
        reason = _against(node, section, able, unable)
        if reason is None and not bodies and node.name not in outer:
            reason = IN_A_BODY
        if reason is None:
            chosen.add(node.name)
        else:
            left[node.name] = reason
    return NodeSelection(frozenset(chosen), left)


def _against(node: NodeProto, section: QuantizeSection, able: Collection[str], unable: Mapping[str, str]) -> str | None:
    """Why a node is not quantized; None when it is."""
    if node.op_type in section.exclude_op_types:
        return "its operator was excluded"
    if node.name in section.exclude_nodes:
        return "it was excluded"
    if section.op_types is not None and node.op_type not in section.op_types:
        return "its operator was not selected"
    if section.nodes is not None and node.name not in section.nodes:
        return "it was not selected"
    if node.domain not in _DOMAINS:
        return f"operators of the domain {node.domain} stay as they are"
    if node.op_type not in able:
        return unable.get(node.op_type, NOT_ABLE)
    return None


def standard_attentions(model: ModelProto) -> dict[str, str]:
    """Attention nodes of ONNX, with the reason to skip them; quantizers take them for those of com.microsoft."""
    return {
        node.name: "the standard Attention has no weights; quantizers know that of com.microsoft only"
        for node in walk.nodes(model)
        if node.op_type == "Attention" and not walk.domain_of(node.domain)
    }


def flat_products(model: ModelProto) -> dict[str, str]:
    """MatMul nodes whose constant weight is not a matrix, with the reason to skip them.

    Quantizers write one scale per column for it, which the integer kernels read as something else or refuse.
    """
    ranks = {tensor.name: len(tensor.dims) for tensor in walk.initializers(model)}
    return {
        node.name: f"its weight has {ranks[node.input[1]]} dimensions; kernels take two"
        for node in walk.nodes(model)
        if node.op_type == "MatMul" and len(node.input) > 1 and ranks.get(node.input[1], 2) != 2
    }


def _check_names(model: ModelProto, section: QuantizeSection) -> None:
    names = {node.name for node in walk.nodes(model)}
    for name in (*(section.nodes or ()), *section.exclude_nodes):
        if name not in names:
            many = len(names) > 40
            hint = "`winml inspect` shows the operators of a model" if many else did_you_mean(name, names)
            raise RequestError(f"the model has no node `{name}`", hint=hint)
    ops = {node.op_type for node in walk.nodes(model)}
    for op in section.op_types or ():
        if op not in ops:
            raise RequestError(f"the model has no operator `{op}`", hint=did_you_mean(op, ops))


def inputs_by_node(model: ModelProto) -> dict[str, tuple[str, ...]]:
    """What every node reads; compared after quantizing, it shows which nodes were not changed."""
    return {node.name: tuple(node.input) for node in walk.nodes(model)}


def find_untouched(before: Mapping[str, tuple[str, ...]], result: ModelProto, reason: str) -> dict[str, str]:
    """Nodes that read the same as before, with the reason for that."""
    return {name: reason for name, inputs in inputs_by_node(result).items() if before.get(name) == inputs}


def operators(model: ModelProto) -> dict[str, str]:
    """The operator of every node by the node's name."""
    return {node.name: walk.op_key(node) for node in walk.nodes(model)}


def summarize(ops: Mapping[str, str], selection: NodeSelection) -> NodeSummary:
    """Nodes of the model before quantizing: per operator those quantized, and those left with their reasons."""
    quantized = Counter(op for name, op in ops.items() if name in selection.chosen)
    left = Counter((op, selection.left[name]) for name, op in ops.items() if name not in selection.chosen)
    return NodeSummary(
        dict(quantized.most_common()),
        tuple(LeftNodes(op, count, reason) for (op, reason), count in left.most_common()),
    )

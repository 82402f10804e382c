"""Single nodes with 16-bit activations in a model whose others have 8 bits."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from onnx import ModelProto, NodeProto
from onnxruntime.quantization import QuantType

from winml.modelkit.building.quantize.prepare import FLOATS
from winml.modelkit.core.config import QuantizeSection
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.graph import walk

_WIDER = {"uint8": QuantType.QUInt16, "int8": QuantType.QInt16}
_WEIGHTED = ("Conv", "ConvTranspose", "Gemm", "LayerNormalization", "MatMul")
"""Operators whose constants are weights, which keep their type: 8-bit weights go with 16-bit activations."""

Override = dict[str, Any]


def check(section: QuantizeSection) -> None:
    """Raise where 16-bit activations of single nodes are no use."""
    if not section.wide_nodes:
        return
    if section.rules != "qnn" or section.activation_type not in _WIDER:
        raise RequestError(
            "`wide_nodes` is for 8-bit activations by the rules of QNN: other EPs compute 16-bit pairs in float",
            hint="use `exclude_nodes`, which leaves nodes in float",
        )


def check_names(model: ModelProto, section: QuantizeSection) -> None:
    """Raise for a node that the model does not have; asked before operators are folded into others."""
    names = {node.name for node in model.graph.node}
    for name in section.wide_nodes or ():
        if name not in names:
            raise RequestError(f"the model has no node `{name}`", hint=did_you_mean(name, names))


def find_overrides(
    model: ModelProto, section: QuantizeSection, chosen: Collection[str], types: Mapping[str, int], narrow: QuantType
) -> dict[str, list[Override]]:
    """What the quantizer is told about the values that wide nodes read and give.

    A node computes in one type, so that it reads all its values in 16 bits. A value between a wide node and another is
    converted, for the readers that need it: the library's own helper makes all readers wide instead.
    """
    wide = set(section.wide_nodes or ()) & set(chosen)
    if not wide:
        return {}
    wider = _WIDER[section.activation_type or ""]
    makers = {name: node.name for node in model.graph.node for name in node.output if name}
    readers: dict[str, list[str]] = {}
    for node in model.graph.node:
        for name in dict.fromkeys(node.input):
            readers.setdefault(name, []).append(node.name)
    constants = {tensor.name: tensor.data_type for tensor in model.graph.initializer}
    found: dict[str, list[Override]] = {}
    for node, name in _values(model, wide):
        if types.get(name, constants.get(name)) not in FLOATS or (name in constants and not _is_value(node, name)):
            continue
        if name in constants:
            found[name] = [{"quant_type": wider}]
        elif makers.get(name) in wide or makers.get(name) not in chosen:
            # What comes from outside, or from a node in float, has no 8 bits before it is read.
            others = {reader for reader in readers.get(name, ()) if reader in chosen and reader not in wide}
            found[name] = [_convert(wider, narrow, others)]
        else:
            found[name] = [_convert(narrow, wider, wide.intersection(readers[name]))]
    return found


def _values(model: ModelProto, wide: Collection[str]) -> Iterator[tuple[NodeProto, str]]:
    """What wide nodes read and give."""
    for node in model.graph.node:
        if node.name in wide:
            yield from ((node, name) for name in (*node.input, *node.output) if name)


def _convert(first: QuantType, then: QuantType, readers: Collection[str]) -> Override:
    """A value of one type, and of another for some readers."""
    if not readers:
        return {"quant_type": first}
    return {"quant_type": first, "convert": {"quant_type": then, "recv_nodes": set(readers)}}


def _is_value(node: NodeProto, name: str) -> bool:
    """Whether a constant is computed with like an activation."""
    return walk.op_key(node) not in _WEIGHTED or node.input[0] == name

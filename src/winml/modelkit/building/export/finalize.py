"""Finishes an exported graph: readable axes, no traces of the exporter, the requested opset."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from onnx import GraphProto, ModelProto, TensorProto, TensorShapeProto, ValueInfoProto

from winml.modelkit.core.config import ExportSection
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.placeholders import Placeholders
from winml.modelkit.graph import opset, walk
from winml.modelkit.graph.sizes import INPUTS_KEY

_SYMBOL = re.compile(r"[A-Za-z_]\w*")
_MAX_NAME = 40
_WHOLE = (TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8)


def finalize_model(model: ModelProto, section: ExportSection) -> ModelProto:
    """The model with the names of the section in place of the exporter's; an error when its opset is out of reach."""
    _rename_axes(model, section)
    _drop_traces(model)
    found = opset.opset(model)
    if found == section.opset:
        return model
    # torch writes 18 for anything older, without a warning. An attribute at its default is removed first, because the
    # converter of onnx takes it for something newer.
    for node in model.graph.node:
        for attribute in [a for a in node.attribute if a.name == "noop_with_empty_axes" and a.i == 0]:
            node.attribute.remove(attribute)
    try:
        return opset.convert(model, section.opset)
    except RequestError as error:
        other = "legacy" if section.exporter == "transformers" else "transformers"
        raise RequestError(error.message, hint=f"export with `--opset {found}`, or try `--exporter {other}`") from error


def note_sizes(
    model: ModelProto,
    sizes: Mapping[str, int],
    ranges: Mapping[str, tuple[float, float]],
    placeholders: Mapping[str, Placeholders],
) -> None:
    """Write the sizes the model is used with and the whole numbers it takes into its file, which may be used alone."""
    opened = {dim.dim_param for value in model.graph.input for dim in _dims(value)}
    whole = {value.name for value in model.graph.input if value.type.tensor_type.elem_type in _WHOLE}
    noted: dict[str, dict[str, Any]] = {
        "sizes": {axis: size for axis, size in sizes.items() if axis in opened},
        "ranges": {name: [int(low), int(high)] for name, (low, high) in ranges.items() if name in whole},
    }
    if placeholders:
        noted["placeholders"] = {name: [one.word, one.count] for name, one in placeholders.items() if name in whole}
    model.metadata_props.add(key=INPUTS_KEY, value=json.dumps(noted))


def _rename_axes(model: ModelProto, section: ExportSection) -> None:
    """Give every symbol of the exporter the name that the section has for the axis where it shows."""
    wanted = {entry.name: entry.shape for entry in section.inputs}
    names: dict[str, str] = {}
    for value in model.graph.input:
        for dim, axis in zip(_dims(value), wanted.get(value.name, ()), strict=False):
            if isinstance(axis, str) and dim.dim_param:
                names.setdefault(dim.dim_param, axis)
                dim.dim_param = axis
    for value in model.graph.output:
        for index, dim in enumerate(_dims(value)):
            if dim.dim_param:
                dim.dim_param = _readable(dim.dim_param, names, f"{value.name}_{index}")


def _readable(expression: str, names: Mapping[str, str], otherwise: str) -> str:
    """A symbol or an expression in our names; a long one by its place."""
    text = _SYMBOL.sub(lambda match: names.get(match[0], match[0]), expression)
    return text if len(text) <= _MAX_NAME else re.sub(r"\W", "_", otherwise)


def _dims(value: ValueInfoProto) -> Iterable[TensorShapeProto.Dimension]:
    found: Iterable[TensorShapeProto.Dimension] = value.type.tensor_type.shape.dim
    return found


def _drop_traces(model: ModelProto) -> None:
    """Remove what exporters note on everything, about a kilobyte per node, including paths of this machine.

    Shapes of values inside go too: they contain the exporter's symbols, and those of initializers are wrong after a
    quantizer transposed one.
    """
    for node in walk.nodes(model):
        del node.metadata_props[:]
        node.ClearField("doc_string")
    for graph in walk.graphs(model):
        del graph.metadata_props[:]
        del graph.value_info[:]
        if isinstance(graph, GraphProto):
            for value in (*graph.input, *graph.output, *graph.initializer):
                del value.metadata_props[:]
                value.ClearField("doc_string")
    del model.metadata_props[:]
    model.ClearField("doc_string")

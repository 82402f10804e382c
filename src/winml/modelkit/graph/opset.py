"""Conversion of a model to another opset, both ways, where that is sound.

Sound means: every operator is the same in both opsets, or onnx has an adapter for it, and the checker accepts the
result. The adapters of onnx do not reach into subgraphs, so an operator that means something else there is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import onnx
import onnx.inliner
import onnx.version_converter
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from winml.modelkit.core.errors import RequestError
from winml.modelkit.graph import walk
from winml.modelkit.graph.tensors import is_external


def opset(model: ModelProto) -> int:
    """The version of the default domain; 0 when the model imports none."""
    return next((int(entry.version) for entry in model.opset_import if walk.domain_of(entry.domain) == ""), 0)


def convert(model: ModelProto, target: int) -> ModelProto:
    """The model in opset `target`; an error names the first operator that prevents it."""
    current, newest = opset(model), onnx.defs.onnx_opset_version()
    if target > newest:
        raise RequestError(f"opset {target} is not known; onnx {onnx.__version__} knows up to {newest}")
    if current in (0, target):
        return model
    inlined = onnx.inliner.inline_local_functions(model) if model.functions else model
    changed = [node for node in _onnx_nodes(inlined) if _is_other(node, current, target)]
    converted = _adapt(inlined, target, changed) if changed else _renumber(inlined, target)
    converted.ir_version = max(
        model.ir_version, helper.find_min_ir_version_for(converted.opset_import, ignore_unknown=True)
    )
    return converted


def _unreachable(model: ModelProto, target: int, why: str) -> RequestError:
    return RequestError(
        f"the model cannot be converted from opset {opset(model)} to {target}: {why}",
        hint=f"keep opset {opset(model)}, or export the model with opset {target}",
    )


def _onnx_nodes(model: ModelProto) -> Iterator[NodeProto]:
    return (node for node in walk.nodes(model) if walk.domain_of(node.domain) == "")


def _is_other(node: NodeProto, current: int, target: int) -> bool:
    """Whether an operator means something else in the other opset, is new there, or gone."""
    before, after = _schema(node, current), _schema(node, target)
    if before is None or after is None or after.deprecated:
        return True
    return bool(before.since_version != after.since_version)


def _means_the_same(node: NodeProto, current: int, target: int) -> bool:
    """Whether only the types that an operator takes differ, as between Add of opset 7 and of opset 13."""
    before, after = _schema(node, current), _schema(node, target)
    if before is None or after is None or before.doc != after.doc:
        return False
    return _formals(before) == _formals(after) and _defaults(before) == _defaults(after)


def _formals(schema: onnx.defs.OpSchema) -> list[tuple[str, str]]:
    return [(formal.name, str(formal.option)) for formal in (*schema.inputs, *schema.outputs)]


def _defaults(schema: onnx.defs.OpSchema) -> dict[str, tuple[bool, bytes]]:
    return {name: (a.required, a.default_value.SerializeToString()) for name, a in schema.attributes.items()}


def _schema(node: NodeProto, version: int) -> onnx.defs.OpSchema | None:
    try:
        return onnx.defs.get_schema(node.op_type, version, "")
    except onnx.defs.SchemaError:
        return None


def _renumber(model: ModelProto, target: int) -> ModelProto:
    copy = ModelProto()
    copy.CopyFrom(model)
    for entry in copy.opset_import:
        if walk.domain_of(entry.domain) == "":
            entry.version = target
    return copy


def _adapt(model: ModelProto, target: int, changed: list[NodeProto]) -> ModelProto:
    _refuse_what_has_no_adapter(model, target, changed)
    light, weights = _without_weights(model)
    try:
        converted = onnx.version_converter.convert_version(light, target)
        onnx.checker.check_model(converted, full_check=True)
    except (RuntimeError, ValueError, onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise _unreachable(model, target, _reason(error)) from error
    for node in _onnx_nodes(converted):
        schema = _schema(node, target)
        if schema is None or schema.deprecated:
            raise _unreachable(model, target, f"`{node.op_type}` does not exist there")
    return _with_weights(converted, weights)


def _refuse_what_has_no_adapter(model: ModelProto, target: int, changed: list[NodeProto]) -> None:
    outer = {id(node) for node in model.graph.node}
    for node in changed:
        if _schema(node, opset(model)) is None:
            raise _unreachable(model, target, f"`{node.op_type}` is not an operator of ONNX opset {opset(model)}")
        if id(node) not in outer and not _means_the_same(node, opset(model), target):
            raise _unreachable(model, target, f"`{node.op_type}` inside an If, Loop or Scan differs there")


def _reason(error: Exception) -> str:
    missing = re.search(r"No Adapter From Version \$?(\d+) for (\w+)", str(error))
    if missing:
        return f"onnx cannot convert `{missing[2]}` of opset {missing[1]}"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:200].rstrip(".") if lines else type(error).__name__


def _without_weights(model: ModelProto) -> tuple[ModelProto, list[TensorProto]]:
    """A copy whose external initializers are inputs, and those initializers: the converter keeps no references."""
    copy = ModelProto()
    copy.CopyFrom(model)
    weights = [tensor for tensor in copy.graph.initializer if is_external(tensor)]
    listed = {value.name for value in copy.graph.input}
    kept = [tensor for tensor in copy.graph.initializer if not is_external(tensor)]
    for tensor in weights:
        if tensor.name not in listed:
            copy.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    del copy.graph.initializer[:]
    copy.graph.initializer.extend(kept)
    return copy, [tensor for tensor in model.graph.initializer if is_external(tensor)]


def _with_weights(model: ModelProto, weights: list[TensorProto]) -> ModelProto:
    graph: GraphProto = model.graph
    names = {tensor.name for tensor in weights}
    inputs = [value for value in graph.input if value.name not in names]
    del graph.input[:]
    graph.input.extend(inputs)
    graph.initializer.extend(weights)
    return model

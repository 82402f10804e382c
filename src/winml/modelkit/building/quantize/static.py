"""Static quantization: QDQ pairs with ranges from calibration."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto
from onnxruntime.quantization import QuantType
from onnxruntime.quantization.calibrate import CalibrationMethod, TensorData, TensorsData
from onnxruntime.quantization.qdq_quantizer import QDQQuantizer
from onnxruntime.quantization.registry import QDQRegistry, QLinearOpsRegistry

from winml.modelkit.building.quantize import wide
from winml.modelkit.building.quantize.calibrate import Calibration
from winml.modelkit.building.quantize.library import get_qnn_qdq_config, wrap_errors
from winml.modelkit.building.quantize.prepare import CHANNELS, FLOATS, Prepared, find_captured
from winml.modelkit.building.quantize.select import NodeSelection, find_untouched, flat_products, inputs_by_node, select
from winml.modelkit.building.quantize.thresholds import Range
from winml.modelkit.core.config import QuantizeSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.graph import walk

TYPES = {
    "int8": QuantType.QInt8,
    "uint8": QuantType.QUInt8,
    "int16": QuantType.QInt16,
    "uint16": QuantType.QUInt16,
    "int4": QuantType.QInt4,
    "uint4": QuantType.QUInt4,
}
WIDE_OPSET = 21
"""From here on ONNX has pairs of 16-bit and 4-bit types."""
PAIRS_OPSET = 13
"""From here on pairs have an axis."""
TENSOR_OPSET = 10
"""From here on there are pairs, with one scale per tensor."""
HALF_OPSET = 19
"""From here on pairs take float16."""
FUSED = "it was fused before, and no quantizer takes it apart"
ALONE = {"BatchNormalization": "there is no product before it to fold it into"}
"""Operators that lose much when they are quantized by themselves, and gain nothing: no kernel has them in 8 bits."""
_PRODUCTS = ("Attention", "Conv", "Gemm", "MatMul")
"""What the names of fused operators that multiply have in common."""
_MOVES = ("Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
"""Operators that leave every number as it is."""
_QNN_LEFT = ("Cast",)
_NUMPY = {TensorProto.FLOAT: np.float32, TensorProto.FLOAT16: np.float16}


@dataclass(frozen=True)
class Needs:
    """The opset that pairs need, and what a model that cannot be converted to it may have instead."""

    opset: int
    reason: str
    contrib_from: int | None = None
    """From here on ONNX Runtime's own pairs can stand in."""
    one_scale_from: int | None = None
    """From here on there are pairs with one scale per tensor."""


def needs(section: QuantizeSection, model: ModelProto, *, channels: bool) -> Needs:
    """What the pairs of a section need; `channels` says that scales per channel were asked for."""
    wider = bool(section.wide_nodes) or any(
        "8" not in (kind or "8") for kind in (section.activation_type, section.weight_type)
    )
    half = _has_float16(model)
    if half and (section.activation_type or "").endswith("16"):
        raise RequestError(
            "the model is in float16, which has no numbers small enough for the scales of 16-bit activations",
            hint="start from the float32 model, or use `-p int8`",
        )
    if wider:
        return Needs(WIDE_OPSET, "pairs of 16-bit and 4-bit types", contrib_from=PAIRS_OPSET)
    if half:
        return Needs(HALF_OPSET, "pairs of float16 values")
    reason = CHANNELS if section.per_channel else "quantized pairs"
    return Needs(PAIRS_OPSET, reason, one_scale_from=None if channels else TENSOR_OPSET)


def _has_float16(model: ModelProto) -> bool:
    """Whether the model computes in float16 somewhere, by its weights, inputs and Casts."""
    half = TensorProto.FLOAT16
    return (
        any(tensor.data_type == half for tensor in walk.initializers(model))
        or any(value.type.tensor_type.elem_type == half for value in model.graph.input)
        or any(a.i == half for node in walk.nodes(model) if node.op_type == "Cast" for a in node.attribute)
    )


def check(section: QuantizeSection) -> None:
    """Raise for types that cannot go together."""
    if section.activation_type is None or section.weight_type is None:
        raise RequestError("static quantization needs `activation_type` and `weight_type`")
    if section.activation_type == "int8" and section.weight_type == "uint8":
        raise RequestError(
            "int8 activations cannot go with uint8 weights: no runtime has kernels for the pair",
            hint="use uint8 activations, or int8 weights",
        )
    if section.calibration_method == "entropy" and section.activation_type.endswith("16"):
        raise RequestError(
            "entropy calibration seeks the best 8-bit range; the activations have 16 bits",
            hint="use `minmax` or `percentile`",
        )
    if section.reduce_range and section.weight_type not in ("int8", "uint8"):
        raise RequestError(f"`reduce_range` is for 8-bit weights, not {section.weight_type}")
    wide.check(section)


def choose(model: ModelProto, section: QuantizeSection) -> NodeSelection:
    """The nodes to quantize; those whose removed activation a body still reads are skipped."""
    if section.rules == "qnn":
        able = {node.op_type for node in model.graph.node if not any(walk.subgraphs(node))}.difference(_QNN_LEFT)
    else:
        able = {*QLinearOpsRegistry, *QDQRegistry}.difference(ALONE)
    fused = dict.fromkeys((node.op_type for node in model.graph.node if _is_fused(node)), FUSED)
    selection = select(
        model, section, able - fused.keys(), bodies=False, unable=fused | (ALONE if section.rules == "ort" else {})
    )
    inside = find_captured(model)
    torn = {
        node.name: "its input is read inside the body of an If, Loop or Scan too"
        for node in model.graph.node
        if node.op_type in ("Relu", "Clip") and node.input[0] in inside
    }
    odd = {**_odd_biases(model), **flat_products(model)} if section.per_channel else {}
    return selection.without(torn).without(odd)


def _odd_biases(model: ModelProto) -> dict[str, str]:
    """Gemm nodes whose constant bias is a matrix, with the reason to skip them."""
    matrices = {tensor.name for tensor in model.graph.initializer if len(tensor.dims) > 1}
    return {
        node.name: "its bias is a matrix, which has no scale per channel"
        for node in model.graph.node
        if node.op_type == "Gemm" and len(node.input) > 2 and node.input[2] in matrices
    }


def _is_fused(node: NodeProto) -> bool:
    return node.domain == "com.microsoft" and any(word in node.op_type for word in _PRODUCTS)


@dataclass(frozen=True)
class Wanted:
    """Values whose ranges are needed."""

    tensors: list[str]
    """To be observed, in the order of the graph."""
    same: Mapping[str, str]
    """Values that hold the same numbers as an observed one, only elsewhere."""


def to_calibrate(model: ModelProto, selection: NodeSelection, types: Mapping[str, int]) -> Wanted:
    """The float values that the chosen nodes read or make."""
    weights = {tensor.name for tensor in model.graph.initializer}
    tensors: dict[str, None] = {}
    same: dict[str, str] = {}
    for node in model.graph.node:
        if node.name not in selection.chosen:
            continue
        names = [n for n in (*node.input, *node.output) if n not in weights and types.get(n) in FLOATS]
        if node.op_type in _MOVES and len(names) == 2:  # what it reads and what it makes
            same[names[1]] = same.get(names[0], names[0])
        tensors.update(dict.fromkeys(name for name in names if name not in same))
    return Wanted(list(tensors), same)


def without_range(model: ModelProto, endless: Mapping[str, str]) -> dict[str, str]:
    """Nodes that read or make a value with no useful range, with the reason."""
    found = {}
    for node in model.graph.node:
        for name in (*node.input, *node.output):
            if name in endless:
                found[node.name] = f"`{name}` reaches {endless[name]}, too far to quantize"
    return found


class _Quantizer(QDQQuantizer):  # type: ignore[misc]  # onnxruntime ships no types
    """The library's quantizer, prevented from looping indefinitely."""

    def _quantize_sharing_param_tensors(self) -> None:
        """Drop tensors that want the parameters of one that is not quantized; the library's loop never ends on them."""
        ready = set(self.quantized_value_map)
        waiting = dict(self.tensors_to_quantize)
        while found := [name for name, info in waiting.items() if _provider(info) in ready]:
            ready.update(found)
            for name in found:
                del waiting[name]
        for name in waiting:
            del self.tensors_to_quantize[name]
        super()._quantize_sharing_param_tensors()


def _provider(info: Any) -> str | None:
    return None if info.quant_para_provider is None else str(info.quant_para_provider.input_name)


def quantize(
    prepared: Prepared,
    section: QuantizeSection,
    selection: NodeSelection,
    calibration: Calibration,
    types: Mapping[str, int],
) -> tuple[ModelProto, NodeSelection]:
    """The model with pairs, and which nodes have them."""
    model = prepared.model
    before = inputs_by_node(model)
    op_types = sorted({node.op_type for node in model.graph.node if node.name in selection.chosen})
    excluded = sorted(before.keys() - selection.chosen)
    ranges = {name: _tensor_data(found, types[name]) for name, found in calibration.ranges.items()}
    # A channel of zeros divides by zero before its scale is set to 1.
    with wrap_errors(), warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        quantizer = _Quantizer(
            model,
            section.per_channel,
            bool(section.reduce_range),
            TYPES[section.weight_type or ""],
            TYPES[section.activation_type or ""],
            TensorsData(CalibrationMethod.MinMax, ranges),
            [],
            excluded,
            op_types,
            _options(prepared, section, op_types, excluded, types),
        )
        result: ModelProto = quantizer.quantize_model()
    return result, selection.without(find_untouched(before, result, "none of its inputs is quantized"))


def _tensor_data(found: Range, kind: int) -> Any:
    dtype = _NUMPY[kind]  # type: ignore[index]  # only float types have ranges
    return TensorData(lowest=np.array(found.low, dtype), highest=np.array(found.high, dtype))


def _options(
    prepared: Prepared, section: QuantizeSection, op_types: list[str], excluded: list[str], types: Mapping[str, int]
) -> dict[str, Any]:
    if section.rules == "qnn":
        options: dict[str, Any] = _qnn_options(prepared.model, section, op_types, excluded, types)
    else:
        options = {
            "ActivationSymmetric": section.symmetric_activations,
            "WeightSymmetric": section.symmetric_weights,
        }
    return {**options, "UseQDQContribOps": prepared.contrib_pairs}


def _qnn_options(
    model: ModelProto, section: QuantizeSection, op_types: list[str], excluded: list[str], types: Mapping[str, int]
) -> dict[str, Any]:
    """What QNN wants of the pairs: fixed ranges of 16-bit Sigmoid and Tanh, no channels in MatMul, and more."""
    chosen = {node.name for node in model.graph.node if node.op_type in op_types}.difference(excluded)
    overrides = wide.find_overrides(model, section, chosen, types, TYPES[section.activation_type or ""])
    config = get_qnn_qdq_config(
        model,
        None,
        activation_type=TYPES[section.activation_type or ""],
        weight_type=TYPES[section.weight_type or ""],
        per_channel=section.per_channel,
        init_overrides=overrides or None,
        add_qtype_converts=False,
        activation_symmetric=section.symmetric_activations,
        weight_symmetric=section.symmetric_weights,
        op_types_to_quantize=op_types,
        nodes_to_exclude=excluded,
    )
    return dict(config.extra_options)

"""Each hazard where it is and where it is not; that they are real is shown on the simulator in tests/e2e."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path

import onnx
import onnxruntime
import pytest
from onnx import helper
from onnxruntime import quantization

import analysis_zoo
import model_zoo
from winml.modelkit.core.target import Target
from winml.modelkit.graph import walk
from winml.modelkit.graph.facts import facts
from winml.modelkit.graph.quantized_nodes import find_quantized_nodes
from winml.modelkit.knowledge import hazards
from winml.modelkit.knowledge.hazards import Hazard, ModelGraph

CPU, QNN, QNN_GPU, OPENVINO = (
    Target("cpu", "cpu"), Target("qnn", "npu"), Target("qnn", "gpu"), Target("openvino", "cpu"),
)  # fmt: skip


def _hazards(model: onnx.ModelProto, target: Target) -> dict[str, Hazard]:
    nodes = tuple((node.name, walk.op_key(node)) for node in model.graph.node)
    found = hazards.find_hazards(ModelGraph(facts(model), nodes, tuple(find_quantized_nodes(model))), target)
    return {hazard.row.id: hazard for hazard in found}


def _fast_gelu() -> onnx.ModelProto:
    return analysis_zoo.contrib("g (float[1,8] x) => (float[1,8] y) { y = com.microsoft.FastGelu (x) }")


def _gelu() -> onnx.ModelProto:
    return analysis_zoo.contrib("g (float[1,8] x) => (float[1,8] y) { y = com.microsoft.Gelu (x) }")


def _blocked() -> onnx.ModelProto:
    return model_zoo.text_model(
        "g (float[1,8,4,4] x) => (float[1,8,1,1] y) { y = com.microsoft.nchwc.GlobalAveragePool (x) }",
        extra=', "com.microsoft.nchwc" : 1',
    )


def _compiled(source: str | None) -> onnx.ModelProto:
    model = _gelu()
    model.graph.node[0].CopyFrom(
        helper.make_node("EPContext", ["x"], ["y"], domain="com.microsoft", **({"source": source} if source else {}))
    )
    return model


def _u8s8() -> onnx.ModelProto:
    return analysis_zoo.qdq_conv("uint8", "int8", per_channel=True)


CASES: dict[str, tuple[Callable[[], onnx.ModelProto], Target, Callable[[], onnx.ModelProto], Target]] = {
    "fused-operator": (analysis_zoo.skip_layer_norm, QNN, analysis_zoo.skip_layer_norm, CPU),
    "contrib-operator": (_fast_gelu, QNN, _gelu, QNN),
    "unknown-operator": (_fast_gelu, QNN_GPU, _fast_gelu, QNN),
    "blocked-layout": (_blocked, QNN, _blocked, CPU),
    "native-attention": (lambda: analysis_zoo.attention(mask=True), QNN, model_zoo.conv_net, QNN),
    "dynamic-shapes": (model_zoo.relu, QNN, model_zoo.relu, CPU),
    "int4-per-tensor": (
        lambda: analysis_zoo.qdq_conv("uint16", "int4"), QNN,
        lambda: analysis_zoo.qdq_conv("uint16", "int4", per_channel=True), QNN,
    ),
    "int4-blocks": (analysis_zoo.int4_blocks, QNN, analysis_zoo.int4_blocks, CPU),
    "slow-type-pair": (lambda: analysis_zoo.qdq_conv("int8", "int8"), CPU, _u8s8, CPU),
    "must-stay-float": (_u8s8, QNN_GPU, _u8s8, QNN),
    "compiled-elsewhere": (lambda: _compiled("Qnn"), CPU, lambda: _compiled("QNNExecutionProvider"), QNN),
}  # fmt: skip


def test_every_row_of_the_table_has_a_case() -> None:
    assert set(CASES) == {row.id for row in hazards.TABLE}


@pytest.mark.parametrize("name", CASES)
def test_a_hazard_is_found_where_it_is(name: str) -> None:
    model, target, _, _ = CASES[name]
    hazard = _hazards(model(), target)[name]
    assert hazard.found.message
    assert hazard.row.evidence


@pytest.mark.parametrize("name", CASES)
def test_and_not_where_it_is_not(name: str) -> None:
    _, _, model, target = CASES[name]
    assert name not in _hazards(model(), target)


def test_a_plain_model_has_no_hazard_anywhere() -> None:
    for target in (CPU, QNN, QNN_GPU, OPENVINO):
        assert _hazards(model_zoo.conv_net(), target) == {}


def test_both_slow_pairs_are_told_by_name_with_their_nodes() -> None:
    hazard = _hazards(analysis_zoo.qdq_conv("uint8", "uint8"), CPU)["slow-type-pair"]
    assert "1 node quantized as uint8 x uint8" in hazard.found.message
    assert "no fast kernels for uint8 weights" in hazard.found.message
    assert hazard.found.nodes == ("conv",)
    assert "-p int8" in str(hazard.row.fix)


def _ops_that_run(model: onnx.ModelProto, folder: Path, activation: str) -> set[str]:
    """The operators left of a model after ONNX Runtime quantized it and optimized it for this machine."""
    types = {"int8": quantization.QuantType.QInt8, "uint8": quantization.QuantType.QUInt8}
    source = model_zoo.saved(model, folder / "float.onnx")
    quantization.quantize_static(
        str(source), str(folder / "q.onnx"), analysis_zoo.Calibration(), quant_format=quantization.QuantFormat.QDQ,
        activation_type=types[activation], weight_type=types["int8"],
    )  # fmt: skip
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(folder / "run.onnx")
    options.log_severity_level = 3
    onnxruntime.InferenceSession(str(folder / "q.onnx"), options, providers=["CPUExecutionProvider"])
    return {node.op_type for node in onnx.load(folder / "run.onnx").graph.node}


@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="a hazard of x86-64")
def test_int8_activations_really_leave_operators_in_float(tmp_path: Path) -> None:
    assert {"Conv", "Add"} <= _ops_that_run(analysis_zoo.residual(), tmp_path, "int8")
    assert not {"Conv", "Add"} & _ops_that_run(analysis_zoo.residual(), tmp_path, "uint8")


def test_a_compiled_model_that_does_not_say_for_whom_is_a_hazard_everywhere() -> None:
    for target in (CPU, QNN):
        assert "it is not known for which EP" in _hazards(_compiled(None), target)["compiled-elsewhere"].found.message


def test_a_hazard_counts_all_nodes() -> None:
    model = model_zoo.text_model(
        "g (float[1,8] x0) => (float[1,8] x30) { "
        + " ".join(f"x{i + 1} = com.microsoft.FastGelu (x{i})" for i in range(30))
        + " }",
        extra=', "com.microsoft" : 1',
    )
    found = _hazards(model, QNN)["contrib-operator"].found
    assert len(found.nodes) == 30
    assert "com.microsoft:FastGelu x30" in found.message

"""Opsets are converted both ways as far as that is sound."""

from __future__ import annotations

import onnx
import pytest

import pass_zoo
from winml.modelkit.building.optimize import verify
from winml.modelkit.building.optimize.workspace import Workspace
from winml.modelkit.core.errors import RequestError
from winml.modelkit.graph import opset

NETS = {
    "transformer": pass_zoo.transformer(opset=12),
    "conv": pass_zoo.FIRES["conv_bn_fusion"],
    "slices": pass_zoo.FIRES["concat_slice_elimination"],
    "quantized": pass_zoo.FIRES["qdq_selector_action"],
}


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("target", [15, 17, 18, 20, 21, 23])
def test_a_converted_model_computes_the_same(name: str, target: int, workspace: Workspace) -> None:
    version = workspace.open(NETS[name])
    converted = workspace.write(opset.convert(version.model, target))
    assert opset.opset(converted.model) == target
    reference = verify.reference(version.path, seed=0, dims={})
    assert verify.compare(reference, converted.path, tolerance=verify.ROUNDING).status == "passed"


def test_down_by_as_much_as_nothing_changed(workspace: Workspace) -> None:
    version = workspace.open(pass_zoo.graph("(float[2,4] x) => (float[2,4] y) { y = Relu(x) }", opset=21))
    assert opset.opset(opset.convert(version.model, 14)) == 14


def test_the_same_opset_is_the_same_model(workspace: Workspace) -> None:
    version = workspace.open(NETS["conv"])
    assert opset.convert(version.model, 17) is version.model


def test_weights_stay_where_they_are(workspace: Workspace) -> None:
    version = workspace.open(pass_zoo.transformer(opset=12, hidden=64))
    converted = opset.convert(version.model, 18)
    assert {t.name: t for t in converted.graph.initializer if t.data_location == onnx.TensorProto.EXTERNAL}.keys() == {
        t.name for t in version.model.graph.initializer if t.data_location == onnx.TensorProto.EXTERNAL
    }


def test_local_functions_are_inlined(workspace: Workspace) -> None:
    version = workspace.open(pass_zoo.FIRES["inline_functions"])
    assert not opset.convert(version.model, 18).functions


@pytest.mark.parametrize(
    ("model", "target", "why"),
    [
        (pass_zoo.FIRES["gelu_fusion"], 99, "opset 99 is not known; onnx .* knows up to"),
        (
            pass_zoo.graph("(float[2,4] x) => (float[2,4] y) { y = Gelu(x) }", opset=20),
            17,
            "cannot be converted from opset 20 to .*Gelu",
        ),
        (pass_zoo.FIRES["conv_bn_fusion"], 13, "onnx cannot convert `BatchNormalization` of opset 15"),
        (pass_zoo.FIRES["attention_fusion"], 13, "`LayerNormalization` is not an operator of ONNX opset 12"),
        (
            pass_zoo.graph(
                """(bool c, float[2,4] x) => (float[2,4] y) {
                  y = If(c) <then_branch = t () => (float[2,4] a) { a = Pad<pads = [0,0,0,0]>(x) },
                             else_branch = e () => (float[2,4] b) { b = Neg(x) }> }""",
                opset=10,
            ),
            13,
            "inside an If, Loop or Scan differs there",
        ),
    ],
    ids=["unknown", "gone", "no adapter", "not onnx", "subgraph"],
)
def test_what_cannot_be_reached_says_why(model: onnx.ModelProto, target: int, why: str, workspace: Workspace) -> None:
    version = workspace.open(model)
    with pytest.raises(RequestError, match=why):
        opset.convert(version.model, target)

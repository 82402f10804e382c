"""ONNX files around context binaries that others made."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import TensorProto

import fake_sdk
from winml.modelkit.building.compile.qnn_wrapper import wrapper
from winml.modelkit.core.errors import RunFailedError

QUANTIZED: dict[str, Any] = {
    "name": "x", "dataType": "QNN_DATATYPE_UFIXED_POINT_8", "dimensions": [1, 4],
    "quantizeParams": {"scaleOffset": {"scale": 0.5, "offset": -3}},
}  # fmt: skip


def test_floats_go_straight_through() -> None:
    model = wrapper(
        fake_sdk.described("g", [fake_sdk.float_tensor("x", [1, 4])], [fake_sdk.float_tensor("y", [2])]),
        binary="m.bin",
    )
    onnx.checker.check_model(model)
    (node,) = model.graph.node
    assert (list(node.input), list(node.output), node.name) == (["x"], ["y"], "g")
    values = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    assert (values["embed_mode"], values["ep_cache_context"], values["partition_name"]) == (0, b"m.bin", b"g")


def test_quantized_edges_are_floats_outside_and_keep_their_names_at_the_node() -> None:
    model = wrapper(fake_sdk.described("g", [QUANTIZED], [{**QUANTIZED, "name": "y"}]), binary=b"\x00data")
    onnx.checker.check_model(model)
    assert [n.op_type for n in model.graph.node] == ["QuantizeLinear", "EPContext", "DequantizeLinear"]
    context = model.graph.node[1]
    assert (list(context.input), list(context.output)) == (["x"], ["y"])
    assert {v.type.tensor_type.elem_type for v in (*model.graph.input, *model.graph.output)} == {TensorProto.FLOAT}
    parameters = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    assert (parameters["x_scale"], parameters["x_zero_point"], parameters["x_zero_point"].dtype) == (0.5, 3, "uint8")


@pytest.mark.parametrize(
    ("described", "message"),
    [
        ({}, "cannot be read"),
        ({"info": {"graphs": []}}, "one graph but has 0"),
        (fake_sdk.described("g", [{"name": "x"}], []), "cannot be read"),
        (fake_sdk.described("g", [{**QUANTIZED, "dataType": "QNN_DATATYPE_UNDEFINED"}], []), "ONNX does not know"),
    ],
)
def test_a_description_that_does_not_fit_is_an_error(described: dict[str, Any], message: str) -> None:
    with pytest.raises(RunFailedError, match=message):
        wrapper(described, binary="m.bin")

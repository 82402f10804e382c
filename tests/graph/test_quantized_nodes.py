from __future__ import annotations

import pytest

import analysis_zoo
import model_zoo
from winml.modelkit.graph.quantized_nodes import QuantizedNode, find_quantized_nodes


@pytest.mark.parametrize(
    ("activation", "weight", "per_channel", "granularity"),
    [("uint8", "int8", True, "channel"), ("int8", "int8", False, "tensor"), ("uint16", "int4", False, "tensor")],
)
def test_types_of_a_convolution_between_pairs(
    activation: str, weight: str, per_channel: bool, granularity: str
) -> None:
    model = analysis_zoo.qdq_conv(activation, weight, per_channel=per_channel)
    assert find_quantized_nodes(model) == [QuantizedNode("conv", "Conv", activation, weight, granularity, bias=True)]  # type: ignore[arg-type]


def test_weights_in_blocks_with_float_activations() -> None:
    expected = QuantizedNode("product", "MatMul", None, "int4", "block", bias=False)
    assert find_quantized_nodes(analysis_zoo.int4_blocks()) == [expected]


def test_an_operator_on_integers_says_its_types_itself() -> None:
    model = model_zoo.text_model(
        """g (uint8[1,1,4,4] x) => (uint8[1,1,2,2] y)
        <float s = {0.1}, uint8 z = {3}, int8[1,1,3,3] w = {1,2,3,4,5,6,7,8,9}, int8 wz = {0}, int32[1] b = {1}>
        { y = QLinearConv (x, s, z, w, s, wz, s, z, b) }"""
    )
    assert find_quantized_nodes(model) == [QuantizedNode("", "QLinearConv", "uint8", "int8", "tensor", bias=True)]


def test_an_activation_type_without_a_zero_point_is_what_its_maker_says() -> None:
    model = model_zoo.text_model(
        """g (float[2,4] x) => (float[2,4] y)
        <float s = {0.1}, int8[4,4] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}>
        {
          q = QuantizeLinear <output_dtype: int = 3> (x, s)  d = DequantizeLinear (q, s)
          wd = DequantizeLinear (w, s)  y = MatMul (d, wd)
        }"""
    )
    assert find_quantized_nodes(model)[0].activation == "int8"


def test_a_float_model_has_none() -> None:
    assert find_quantized_nodes(model_zoo.conv_net()) == []

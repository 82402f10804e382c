"""The precision of a model in one word."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import model_zoo
from winml.modelkit.graph.precision import precision_of


@pytest.mark.parametrize(("dtype", "word"), [(np.float32, "fp32"), (np.float16, "fp16"), (np.float64, "fp64")])
def test_floats_are_called_by_their_weights(dtype: type, word: str) -> None:
    model = model_zoo.conv_net()
    for tensor in model.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(dtype), tensor.name))
    assert precision_of(model) == word


def test_without_weights_the_inputs_decide() -> None:
    assert precision_of(model_zoo.relu()) == "fp32"
    assert precision_of(model_zoo.text_model("g (bfloat16[2] x) => (bfloat16[2] y) { y = Relu(x) }")) == "bf16"


def test_a_static_model_is_called_by_its_bits(conv_w8a8: Path) -> None:
    assert precision_of(onnx.load(conv_w8a8)) == "w8a8"


def test_activations_of_sixteen_bits() -> None:
    model = model_zoo.text_model(
        """g (float[4,4] x) => (float[4,4] y)
        <float s = {0.1}, uint16 z = {0}, int8[4,4] w = {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}, int8 wz = {0}>
        { q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)  v = DequantizeLinear(w, s, wz)
          y = MatMul(d, v) }"""
    )
    assert precision_of(model) == "w8a16"


def test_other_kinds_of_quantization_keep_their_name() -> None:
    model = model_zoo.text_model(
        """g (float[1,4] x) => (float[1,4] y) <float s = {0.1}, int8[4,4] w = {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}>
        { v = DequantizeLinear(w, s)  y = MatMul(x, v) }"""
    )
    assert precision_of(model) == "weight-only"

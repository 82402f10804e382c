"""Bias correction: mean errors are taken back, on samples that it has not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import quantize_zoo
from winml.modelkit.building.quantize import bias_correction
from winml.modelkit.building.quantize.bias_correction import NO_BIAS
from winml.modelkit.building.quantize.result import Adjustment, QuantizeReport
from winml.modelkit.core.config import DataSection, QuantizeSection

Quantize = Callable[..., tuple[onnx.ModelProto, QuantizeReport]]

CHANNELS = 16


def images(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random((count, 1, CHANNELS, 8, 8), np.float32)


def conv_chain(*, bias: bool) -> onnx.ModelProto:
    """Four convolutions with Relus, without and with biases."""
    rng = np.random.default_rng(0)
    nodes, weights, value = [], [], "x"
    for number in range(4):
        name = f"w{number}"
        made = rng.standard_normal((CHANNELS, CHANNELS, 3, 3)).astype(np.float32) * 0.1
        weights.append(numpy_helper.from_array(made, name))
        inputs = [value, name]
        if bias:
            weights.append(numpy_helper.from_array(rng.standard_normal(CHANNELS).astype(np.float32), f"b{number}"))
            inputs.append(f"b{number}")
        nodes.append(helper.make_node("Conv", inputs, [f"c{number}"], name=f"conv{number}", pads=[1, 1, 1, 1]))
        value = "y" if number == 3 else f"r{number}"
        nodes.append(helper.make_node("Relu", [f"c{number}"], [value], name=f"relu{number}"))
    shape = [1, CHANNELS, 8, 8]
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def dense_chain(products: str) -> onnx.ModelProto:
    """Two products of rows: Gemm without a bias, MatMul with an Add, or MatMul alone."""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.standard_normal((32, 32)).astype(np.float32), f"w{i}") for i in range(2)]
    if products == "Gemm":
        nodes = [quantize_zoo.node("Gemm", ["x", "w0"], "h"), quantize_zoo.node("Gemm", ["h", "w1"], "y")]
    elif products == "MatMul and Add":
        weights += [numpy_helper.from_array(rng.standard_normal(32).astype(np.float32), f"b{i}") for i in range(2)]
        nodes = [
            quantize_zoo.node("MatMul", ["x", "w0"], "m0"),
            quantize_zoo.node("Add", ["b0", "m0"], "h"),
            quantize_zoo.node("MatMul", ["h", "w1"], "m1"),
            quantize_zoo.node("Add", ["m1", "b1"], "y"),
        ]
    else:
        nodes = [quantize_zoo.node("MatMul", ["x", "w0"], "h"), quantize_zoo.node("MatMul", ["h", "w1"], "y")]
    return quantize_zoo.model(nodes, weights, [4, 32])


def section(folder: Path, samples: np.ndarray, **changes: Any) -> QuantizeSection:
    data = folder / "calibration.npz"
    np.savez(data, x=samples)
    made = replace(quantize_zoo.SECTIONS["u8s8"], calibration=DataSection(str(data)), reduce_range=True)
    return replace(made, **changes)


def run(model: onnx.ModelProto, samples: np.ndarray) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.stack([session.run(["y"], {"x": sample})[0] for sample in samples])


def noise(model: onnx.ModelProto, quantized: onnx.ModelProto, samples: np.ndarray) -> float:
    expected, found = run(model, samples), run(quantized, samples)
    return float(((found - expected) ** 2).mean())


@pytest.mark.parametrize("bias", [True, False], ids=["with biases", "without biases"])
def test_a_chain_of_convolutions_is_nearer_on_samples_it_was_not_corrected_by(
    quantize: Quantize, tmp_path: Path, bias: bool
) -> None:
    model = conv_chain(bias=bias)
    plain = section(tmp_path, images(24, 0), weight_type="int8", per_channel=False)
    without, _ = quantize(model, plain)
    corrected, report = quantize(model, replace(plain, bias_correction=True))
    fresh = images(24, 1)
    assert noise(model, corrected, fresh) < 0.6 * noise(model, without, fresh)
    (found,) = report.outcome.adjustments
    assert (found.name, found.layers, dict(found.left)) == ("bias_correction", 4, {})
    assert found.with_db > found.without_db + 2.0
    (note,) = (note for note in report.outcome.notes if "bias correction" in note)
    assert "4 products" in note
    assert f"{found.with_db:.1f} dB, without it {found.without_db:.1f} dB" in note
    assert all(len(node.input) == 3 for node in corrected.graph.node if node.op_type == "Conv")


def test_layers_that_are_not_corrected_in_sequence_are_corrected_by_their_own_error(
    quantize: Quantize, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, fresh = conv_chain(bias=True), images(24, 1)
    plain = section(tmp_path, images(24, 0), per_channel=False)
    without, _ = quantize(model, plain)
    monkeypatch.setattr(bias_correction, "IN_SEQUENCE", 1)
    corrected, report = quantize(model, replace(plain, bias_correction=True))
    assert report.outcome.adjustments[0].layers == 4
    assert noise(model, corrected, fresh) < 0.8 * noise(model, without, fresh)


@pytest.mark.parametrize(("products", "layers"), [("Gemm", 2), ("MatMul and Add", 2), ("MatMul", 0)])
def test_products_of_rows_are_corrected_where_something_adds_a_constant(
    quantize: Quantize, tmp_path: Path, products: str, layers: int
) -> None:
    rows = np.random.default_rng(2).random((48, 4, 32), np.float32) + 1.0
    model = dense_chain(products)
    plain = section(tmp_path, rows[:24], activation_type="uint16", weight_type="uint8", per_channel=False)
    plain = replace(plain, op_types=(products.split()[0],))
    without, _ = quantize(model, plain)
    corrected, report = quantize(model, replace(plain, bias_correction=True))
    (found,) = report.outcome.adjustments
    assert found.layers == layers
    if layers:
        assert noise(model, corrected, rows[24:]) < 0.7 * noise(model, without, rows[24:])
        assert not found.left
    else:
        assert dict(found.left) == {NO_BIAS: 2}
        assert corrected.SerializeToString() == without.SerializeToString()


def test_nothing_is_corrected_unless_it_is_asked_for(quantize: Quantize, tmp_path: Path) -> None:
    plain = section(tmp_path, images(4, 0))
    model, report = quantize(conv_chain(bias=False), plain)
    assert report.outcome.adjustments == ()
    off, _ = quantize(conv_chain(bias=False), replace(plain, bias_correction=False))
    assert off.SerializeToString() == model.SerializeToString()


def test_outputs_that_are_not_compared_have_no_effect_to_report(quantize: Quantize, tmp_path: Path) -> None:
    asked = section(tmp_path, images(4, 0), bias_correction=True)
    _, report = quantize(conv_chain(bias=True), asked, compare=False)
    assert report.outcome.adjustments == (Adjustment(name="bias_correction", layers=4, left={}),)

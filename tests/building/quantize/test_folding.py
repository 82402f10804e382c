"""BatchNormalization before quantizing: folded into the product before it, or left in float."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnx.reference
import pytest
from onnx import numpy_helper

from quantize_zoo import SECTIONS
from winml.modelkit.building.quantize import folding
from winml.modelkit.building.quantize.prepare import prepare
from winml.modelkit.building.quantize.result import QuantizeReport
from winml.modelkit.core.config import QuantizeSection

Quantize = Callable[..., tuple[onnx.ModelProto, QuantizeReport]]

CONV = """(float[1,3,8,8] x) => (float[1,4,8,8] y)
    { c = Conv<pads = [1,1,1,1]>(x, w%s)  y = BatchNormalization%s(c, g, o, m, v) }"""
DEPTHWISE = """(float[1,4,8,8] x) => (float[1,4,8,8] y)
    { c = Conv<pads = [1,1,1,1], group = 4>(x, w)  y = BatchNormalization(c, g, o, m, v) }"""
TRANSPOSED = """(float[1,3,8,8] x) => (float[1,4,8,8] y)
    { c = ConvTranspose<pads = [1,1,1,1]>(x, w, b)  y = BatchNormalization(c, g, o, m, v) }"""
GEMM = "(float[2,3] x) => (float[2,4] y) { c = Gemm%s(x, w, b)  y = BatchNormalization(c, g, o, m, v) }"
READ_TWICE = """(float[1,3,8,8] x) => (float[1,4,8,8] y)
    { c = Conv<pads = [1,1,1,1]>(x, w)  n = BatchNormalization(c, g, o, m, v)  y = Add(n, c) }"""
ALONE = "(float[1,4,8,8] x) => (float[1,4,8,8] y) { r = Relu(x)  y = BatchNormalization(r, g, o, m, v) }"


def _model(text: str, *weight: int) -> onnx.ModelProto:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> net {text}')
    rng = np.random.default_rng(3)
    shapes = {"w": weight, "b": (4,), "g": (4,), "o": (4,), "m": (4,), "v": (4,)}
    used = {name for node in model.graph.node for name in node.input}
    for name in sorted(used & shapes.keys()):
        values = rng.standard_normal(shapes[name])
        # Channels of very different size, as trained networks have them.
        values = np.array([1e-4, 0.01, 1.0, 30.0]) if name == "v" else values
        model.graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), name))
    for number, node in enumerate(model.graph.node):
        node.name = f"{node.op_type}_{number}"
    return model


def _run(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    found: np.ndarray = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x})[0]
    return found


SECTION = SECTIONS["u8s8"]


@pytest.mark.parametrize(
    ("text", "weight"),
    [
        pytest.param(CONV % ("", ""), (4, 3, 3, 3), id="conv"),
        pytest.param(CONV % (", b", "<epsilon = 0.1>"), (4, 3, 3, 3), id="conv with a bias and a large epsilon"),
        pytest.param(DEPTHWISE, (4, 1, 3, 3), id="depthwise"),
        pytest.param(TRANSPOSED, (3, 4, 3, 3), id="transposed"),
        pytest.param(GEMM % "", (3, 4), id="gemm"),
        pytest.param(GEMM % "<transB = 1>", (4, 3), id="gemm with a transposed weight"),
    ],
)
def test_a_folded_product_computes_the_same(text: str, weight: tuple[int, ...]) -> None:
    model = _model(text, *weight)
    x = np.random.default_rng(4).standard_normal([d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim])
    expected = _run(model, x.astype(np.float32))
    prepared = prepare(model, opset=13)
    notes = folding.fold(prepared.model, SECTION)
    op = prepared.model.graph.node[0].op_type
    assert notes == (f"1 BatchNormalization were folded into the {op} before them",)
    assert [node.op_type for node in prepared.model.graph.node] == [op]
    assert len(prepared.model.graph.initializer) == 2
    found = _run(prepared.model, x.astype(np.float32))
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize(
    ("model", "changes"),
    [
        pytest.param(_model(READ_TWICE, 4, 3, 3, 3), {}, id="another node reads what lies between"),
        pytest.param(_model(GEMM % "<beta = 0.5>", 3, 4), {}, id="the bias has a factor"),
        pytest.param(_model(ALONE), {}, id="no product before it"),
        pytest.param(_model(CONV % ("", ""), 4, 3, 3, 3), {"exclude_nodes": ("Conv_0",)}, id="the Conv is named"),
        pytest.param(
            _model(CONV % ("", ""), 4, 3, 3, 3), {"op_types": ("BatchNormalization",)}, id="the operator is named"
        ),
    ],
)
def test_what_cannot_be_folded_stays(model: onnx.ModelProto, changes: dict[str, Any]) -> None:
    prepared = prepare(model, opset=13)
    before = prepared.model.SerializeToString(deterministic=True)
    assert folding.fold(prepared.model, replace(SECTION, **changes)) == ()
    assert prepared.model.SerializeToString(deterministic=True) == before


def test_static_quantization_folds_and_keeps_channels_of_every_size(quantize: Quantize) -> None:
    model, report = quantize(_model(CONV % (", b", ""), 4, 3, 3, 3), SECTION)
    assert "1 BatchNormalization were folded into the Conv before them" in report.outcome.notes
    assert report.outcome.nodes.quantized == {"Conv": 1}
    assert "BatchNormalization" not in {node.op_type for node in model.graph.node}
    (output,) = report.outcome.fidelity.outputs
    assert output.cosine > 0.999


@pytest.mark.parametrize(("words", "left"), [("u8s8", True), ("w8a16 for qnn", False)])
def test_one_without_a_product_stays_in_float_unless_the_npu_needs_it(
    quantize: Quantize, words: str, left: bool
) -> None:
    section: QuantizeSection = SECTIONS[words]
    _, report = quantize(_model(ALONE), section)
    assert ("BatchNormalization" not in report.outcome.nodes.quantized) is left
    reasons = {entry.op: entry.reason for entry in report.outcome.nodes.left}
    assert ("no product" in reasons.get("BatchNormalization", "")) is left

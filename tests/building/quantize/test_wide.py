"""Single nodes with 16-bit activations among others with 8 bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from winml.modelkit.core.config import DataSection, QuantizeSection
from winml.modelkit.core.errors import RequestError

SECTION = QuantizeSection(
    mode="static", activation_type="uint8", weight_type="uint8", rules="qnn", calibration=DataSection("random", limit=2)
)
TEXT = """<ir_version: 10, opset_import: ["" : 20]> g (float[1, 4] x) => (float[1, 4] y, float[1, 4] z)
    <float[4, 4] w = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}, float[4] c = {1, 2, 3, 4}> {
    [a] h = MatMul(x, w)
    [b] i = Add(h, c)
    [d] y = Sin(i)
    [e] z = Cos(i)
}"""

Quantize = Callable[..., tuple[onnx.ModelProto, Any]]


def kinds_read(model: onnx.ModelProto, name: str) -> list[str]:
    """The types in which a node reads its values."""
    tensors = {tensor.name: tensor.data_type for tensor in model.graph.initializer}
    makers = {value: node for node in model.graph.node for value in node.output}
    (node,) = (node for node in model.graph.node if node.name == name)
    return [TensorProto.DataType.Name(tensors[makers[value].input[2]]) for value in node.input]


def test_a_wide_node_reads_16_bits_and_its_neighbours_do_not(quantize: Quantize) -> None:
    model, _ = quantize(onnx.parser.parse_model(TEXT), replace(SECTION, wide_nodes=("b",)))
    assert kinds_read(model, "b") == ["UINT16", "UINT16"]
    assert kinds_read(model, "a") == ["UINT8", "UINT8"]
    assert kinds_read(model, "d") == ["UINT8"]
    assert kinds_read(model, "e") == ["UINT8"]


def test_between_two_wide_nodes_nothing_is_converted(quantize: Quantize) -> None:
    model, _ = quantize(onnx.parser.parse_model(TEXT), replace(SECTION, wide_nodes=("b", "d")))
    assert kinds_read(model, "d") == ["UINT16"]
    assert kinds_read(model, "e") == ["UINT8"]


def test_a_wide_product_keeps_its_8_bit_weights(quantize: Quantize) -> None:
    model, report = quantize(onnx.parser.parse_model(TEXT), replace(SECTION, wide_nodes=("a",)))
    assert kinds_read(model, "a") == ["UINT16", "UINT8"]
    assert all(output.cosine > 0.99 for output in report.outcome.fidelity.outputs)


@pytest.mark.parametrize("changes", [{"rules": "ort"}, {"activation_type": "uint16"}])
def test_other_rules_have_no_wide_nodes(quantize: Quantize, changes: dict[str, str]) -> None:
    with pytest.raises(RequestError, match="wide_nodes"):
        quantize(onnx.parser.parse_model(TEXT), replace(SECTION, wide_nodes=("a",), **changes))


def test_a_node_that_the_model_does_not_have_is_an_error(quantize: Quantize) -> None:
    with pytest.raises(RequestError, match="no node `q`"):
        quantize(onnx.parser.parse_model(TEXT), replace(SECTION, wide_nodes=("q",)))


def test_numbers_are_nearer_with_16_bits(quantize: Quantize) -> None:
    both = []
    for nodes in ((), ("a", "b", "d", "e")):
        _, report = quantize(onnx.parser.parse_model(TEXT), replace(SECTION, wide_nodes=nodes))
        both.append([output.sqnr_db or np.inf for output in report.outcome.fidelity.outputs])
    # Weights of 8 bits, whose 1 is 0.996, set a limit.
    assert all(wide > narrow + 6 for narrow, wide in zip(*both, strict=True)), both

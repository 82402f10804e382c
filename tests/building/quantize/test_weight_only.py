"""Weights in blocks: what every method writes, and what it cannot."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from winml.modelkit.building.quantize import weight_only
from winml.modelkit.core.config import QuantizeSection
from winml.modelkit.core.errors import RequestError


def _model(*heights: int) -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.normal(size=(h, 64)).astype(np.float32), f"w{h}") for h in heights]
    nodes = [helper.make_node("MatMul", [f"x{h}", f"w{h}"], [f"y{h}"], f"n{h}") for h in heights]
    inputs = [helper.make_tensor_value_info(f"x{h}", onnx.TensorProto.FLOAT, [1, h]) for h in heights]
    outputs = [helper.make_tensor_value_info(f"y{h}", onnx.TensorProto.FLOAT, [1, 64]) for h in heights]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _section(**changes: object) -> QuantizeSection:
    base = QuantizeSection(mode="weight_only", weight_type="uint4", block_size=32, block_compute="int8")
    return QuantizeSection(**{**vars(base), **changes})


@pytest.mark.filterwarnings("ignore:The given NumPy array")
@pytest.mark.parametrize("method", ["rtn", pytest.param("hqq", marks=pytest.mark.hf), "k_quant"])
def test_every_method_says_what_its_nodes_multiply_in(method: str) -> None:
    section, model = _section(block_method=method, symmetric_weights=method == "rtn"), _model(64)
    weight_only.check(section)
    made, selection = weight_only.quantize(model, section, weight_only.choose(model, section, {}))
    node = next(node for node in made.graph.node if node.op_type == "MatMulNBits")
    assert selection.chosen == {"n64"}
    assert {a.name: a.i for a in node.attribute}["accuracy_level"] == 4


def test_k_quant_leaves_what_it_cannot_pack_with_the_reason() -> None:
    section, model = _section(block_method="k_quant", symmetric_weights=False), _model(64, 96)
    selection = weight_only.choose(model, section, {})
    assert selection.chosen == {"n64"}
    assert "odd number of blocks" in selection.left["n96"]


@pytest.mark.parametrize("method", ["hqq", "k_quant"])
def test_methods_that_give_asymmetric_weights_say_so(method: str) -> None:
    with pytest.raises(RequestError, match="asymmetric"):
        weight_only.check(_section(block_method=method))

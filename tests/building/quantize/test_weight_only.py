"""Weights in blocks: what every method writes, and what it cannot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from winml.modelkit.building.quantize import weight_only
from winml.modelkit.building.quantize.finish import finish
from winml.modelkit.building.quantize.prepare import load, prepare
from winml.modelkit.building.quantize.runnable import Runnable
from winml.modelkit.building.quantize.types import ask_types
from winml.modelkit.core.config import QuantizeSection
from winml.modelkit.core.errors import RequestError
from winml.modelkit.graph import files
from winml.modelkit.graph.tensors import is_external


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
    made, selection = weight_only.quantize(model, section, weight_only.choose(model, section, {}), Path())
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


def _large(tmp_path: Path) -> Path:
    """Two products that share a weight of 1 MiB, a table of that size, and a product with a small weight."""
    rng = np.random.default_rng(0)
    sizes = {"shared": (512, 512), "table": (512, 512), "small": (512, 32)}
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["x"], "gather"),
        helper.make_node("MatMul", ["x", "shared"], ["a"], "first"),
        helper.make_node("MatMul", ["a", "shared"], ["b"], "second"),
        helper.make_node("MatMul", ["b", "small"], ["y"], "third"),
    ]
    inputs = [helper.make_tensor_value_info("ids", onnx.TensorProto.INT64, [3])]
    outputs = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [3, 32])]
    weights = [numpy_helper.from_array(rng.normal(size=size).astype(np.float32), n) for n, size in sizes.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    path = tmp_path / "large.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return files.save(model, path, external_data="always")[0]


@pytest.mark.filterwarnings("ignore:The given NumPy array")
@pytest.mark.parametrize("method", ["rtn", pytest.param("hqq", marks=pytest.mark.hf), "k_quant"])
def test_weights_that_stay_in_their_file_become_the_same_blocks(method: str, tmp_path: Path) -> None:
    path = _large(tmp_path)
    section = _section(block_method=method, symmetric_weights=method == "rtn")
    found = {}
    for streamed in (False, True):
        model = prepare(load(path, streamed=streamed), opset=1).model
        outside = {tensor.name for tensor in model.graph.initializer if is_external(tensor)}
        assert outside == ({"shared", "table"} if streamed else set())
        selection = weight_only.choose(model, section, {})
        made, done = weight_only.quantize(model, section, selection, path)
        finish(made, ("", ""))
        assert done.chosen == {"first", "second", "third"}
        output = tmp_path / f"{streamed}.onnx"
        files.save(made, output, source=path)
        result = files.load(output)
        onnx.checker.check_model(result)
        found[streamed] = {tensor.name: tensor.SerializeToString() for tensor in result.graph.initializer}
        found[streamed] |= {node.name: node.SerializeToString() for node in result.graph.node}
    assert found[True] == found[False]


def test_types_are_known_without_reading_the_weights(tmp_path: Path) -> None:
    model = prepare(load(_large(tmp_path), streamed=True), opset=1).model
    (tmp_path / "large.onnx.data").unlink()
    runnable = Runnable(model, tmp_path)
    values = ask_types(model, runnable)
    assert [spec.name for spec in values.inputs] == ["ids"]
    assert values.types["b"] == onnx.TensorProto.FLOAT
    assert {tensor.name for tensor in runnable.load().graph.initializer} == {"shared", "table", "small"}

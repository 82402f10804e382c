"""Models made ready for quantizers compute what they computed before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

import model_zoo
import quantize_zoo
from winml.modelkit.building.quantize.finish import finish
from winml.modelkit.building.quantize.prepare import load, prepare
from winml.modelkit.core.errors import RequestError
from winml.modelkit.graph import walk


def copied(model: onnx.ModelProto) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def outputs(model: onnx.ModelProto) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    shape = [dim if isinstance(dim, int) else 1 for dim in session.get_inputs()[0].shape]
    return session.run(None, {"x": np.random.default_rng(0).random(shape, dtype=np.float32)})


@pytest.mark.parametrize("name", quantize_zoo.GRAPHS)
def test_outputs_stay_the_same(name: str) -> None:
    model = quantize_zoo.GRAPHS[name]()
    prepared = prepare(copied(model), opset=21).model
    for before, after in zip(outputs(model), outputs(prepared), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", quantize_zoo.GRAPHS)
def test_every_node_has_a_name_of_its_own_and_the_same_in_every_run(name: str) -> None:
    names = [node.name for node in walk.nodes(prepare(quantize_zoo.GRAPHS[name](), opset=13).model)]
    assert all(names)
    assert len(set(names)) == len(names)
    assert names == [node.name for node in walk.nodes(prepare(quantize_zoo.GRAPHS[name](), opset=13).model)]


def test_names_that_are_there_stay() -> None:
    model = quantize_zoo.shared_bias()
    model.graph.node[2].name = "Conv_0"
    names = [node.name for node in prepare(model, opset=13).model.graph.node]
    assert names == ["Conv_0_1", "Conv_1", "Conv_0"]


def test_local_functions_are_inlined() -> None:
    model = model_zoo.text_model(
        """g (float[2,4] x) => (float[2,4] y) { y = own.twice(x) }
        <domain: "own", opset_import: ["" : 21]> twice (a) => (b) { b = Add(a, a) }""",
        extra=', "own" : 1',
    )
    prepared = prepare(model, opset=21)
    assert [node.op_type for node in prepared.model.graph.node] == ["Add"]
    assert prepared.notes == ("1 local functions were inlined",)


def _unconvertible(opset: int) -> onnx.ModelProto:
    return quantize_zoo.model([quantize_zoo.node("NoSuchOperator", ["x"], "y")], [], [2], opset=opset)


def test_an_opset_that_cannot_be_reached_is_refused_unless_other_pairs_can_stand_in() -> None:
    with pytest.raises(RequestError, match="need opset 21, and the model cannot be converted from opset 9"):
        prepare(_unconvertible(9), opset=21, contrib_from=13)
    prepared = prepare(_unconvertible(17), opset=21, contrib_from=13)
    assert prepared.contrib_pairs
    assert "are written in the domain com.microsoft" in prepared.notes[0]


def test_operators_inside_a_body_do_not_prevent_an_opset_where_only_their_types_differ() -> None:
    model = quantize_zoo.if_bodies()
    model.opset_import[0].version = 12
    assert prepare(model, opset=13).opset == 13


def test_operators_that_hold_graphs_of_their_own_are_refused(tmp_path: Path) -> None:
    inner = helper.make_graph([quantize_zoo.node("Relu", ["a"], "b")], "inner", [], [])
    node = helper.make_node("BeamSearch", ["x"], ["y"], domain="com.microsoft", decoder=inner)
    path = model_zoo.saved(quantize_zoo.model([node], [], [2]), tmp_path / "m.onnx")
    with pytest.raises(RequestError, match="com.microsoft:BeamSearch"):
        load(path)


def test_nodes_are_sorted_behind_what_their_bodies_read() -> None:
    model = quantize_zoo.if_bodies()
    shuffled = copied(model)
    del shuffled.graph.node[:]
    shuffled.graph.node.extend(reversed(model.graph.node))
    finish(shuffled, ("", ""))
    for before, after in zip(outputs(model), outputs(shuffled), strict=True):
        np.testing.assert_array_equal(after, before)

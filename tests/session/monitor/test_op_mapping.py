"""Operators of a runtime back to the nodes of a model."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import model_zoo
from winml.modelkit.graph.outline import Outline, outline
from winml.modelkit.session.monitor.op_mapping import ModelMapping, RuntimeOp, map_operators, plain_name


def _outline(tmp_path: Path, model: onnx.ModelProto) -> Outline:
    return outline(model_zoo.saved(model, tmp_path / "m.onnx"))


def _map(model: Outline, *operators: tuple[str, str | None]) -> ModelMapping:
    return map_operators(model, [RuntimeOp(name, ((name, kind),)) for name, kind in operators])


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("conv1_token_12", "conv1"),
        ("_token_2", ""),
        ("Conv_token_1_2", "Conv"),
        ("/stem/Conv_token_12_3_0", "/stem/Conv"),
        ("/a/MatMul/MatMulAddFusion", "/a/MatMul"),
        ("/a/MatMul/MatMulScaleFusion/", "/a/MatMul"),
        ("/a/MatMul/MatMulAddFusion_token_3", "/a/MatMul"),
        ("fused conv1", "conv1"),
        ("r0_nchwc", "r0"),
        ("plain", "plain"),
    ],
)
def test_a_name_loses_what_optimizers_put_around_it(name: str, plain: str) -> None:
    assert plain_name(name) == plain


def test_a_convolution_named_after_its_output_takes_in_its_activation(tmp_path: Path) -> None:
    mapping = _map(_outline(tmp_path, model_zoo.conv_net()), ("r0_nchwc", "Conv"), ("r1_nchwc", "Conv"))
    first, second = mapping.operators
    assert (first.origin, first.nodes, first.onnx_op_type) == ("fused", ("Conv_0", "Relu_1"), "Conv")
    assert second.nodes == ("Conv_2", "Relu_3")


def test_a_convolution_named_after_what_it_absorbed_is_still_the_convolution(tmp_path: Path) -> None:
    """By name alone: the runtime names a blocked Conv after the value of its Relu, past a BatchNormalization."""
    model = model_zoo.text_model(
        """g (float[1,4,8,8] x, float[4,4,1,1] w, float[4] s, float[4] b, float[4] m, float[4] v)
        => (float[1,4,8,8] relu2)
        { c = Conv(x, w)  n = BatchNormalization(c, s, b, m, v)  a = Add(n, x)  relu2 = Relu(a) }"""
    )
    (conv,) = _map(_outline(tmp_path, model), ("relu2_nchwc", "Conv")).operators
    assert (conv.nodes, conv.onnx_op_type) == (("Conv_0", "BatchNormalization_1", "Add_2", "Relu_3"), "Conv")
    assert conv.absorbed == (("BatchNormalization_1", "BatchNormalization"), ("Add_2", "Add"), ("Relu_3", "Relu"))


def test_an_operator_says_what_it_reads_and_its_weight(tmp_path: Path) -> None:
    net = _outline(tmp_path, model_zoo.conv_net())
    first, second = _map(net, ("r0_nchwc", "Conv"), ("r1_nchwc", "Conv")).operators
    assert (first.reads, first.weight) == (("input:x",), ("w0", (16, 3, 3, 3)))
    assert (second.reads, second.weight) == (("Conv_0",), ("w1", (16, 16, 3, 3)))


def test_what_was_inserted_names_the_node_that_follows_it_or_else_precedes_it(tmp_path: Path) -> None:
    net = _outline(tmp_path, model_zoo.conv_net())
    mapping = _map(net, ("ReorderInput", "ReorderInput"), ("r0_nchwc", "Conv"), ("ReorderOutput", "ReorderOutput"))
    assert [(m.origin, m.neighbour) for m in mapping.operators] == [
        ("inserted", "Conv_0"), ("fused", None), ("inserted", "Conv_0"),
    ]  # fmt: skip


def test_a_neighbour_is_looked_for_in_the_same_partition(tmp_path: Path) -> None:
    net = _outline(tmp_path, model_zoo.split_net())
    mapping = map_operators(
        net,
        [
            RuntimeOp("first/Relu", (("first/Relu", "Relu"),), group="0"),
            RuntimeOp("Transpose", (("Transpose", "Transpose"),), group="0"),
            RuntimeOp("last/Conv_token_5", (("last/Conv_token_5", "Conv"),), group="1"),
        ],
    )
    assert mapping.operators[1].neighbour == "first/Relu"


def test_operators_without_a_name_are_counted_off_among_nodes_without_one(tmp_path: Path) -> None:
    net = _outline(tmp_path, model_zoo.conv_net())
    mapping = map_operators(
        net,
        [
            RuntimeOp("_token_2", (("_token_2", "Conv"),)),
            RuntimeOp("Relu1", (("Relu0", None),)),
            RuntimeOp("_token_7", (("_token_7", "Conv"),)),
            RuntimeOp("Relu3", (("Relu0", None),)),
        ],
    )
    assert [m.nodes for m in mapping.operators] == [("Conv_0",), ("Relu_1",), ("Conv_2",), ("Relu_3",)]


def test_a_gelu_that_was_spelled_out_is_found_by_its_erf(tmp_path: Path) -> None:
    net = _outline(tmp_path, model_zoo.encoder())
    mapping = _map(
        net,
        ("/layer.0/intermediate/MatMul/MatMulAddFusion", "Gemm"), ("Gelu", "Gelu"),
        ("/layer.1/intermediate/MatMul/MatMulAddFusion", "Gemm"), ("Gelu_token_18", "Gelu"),
    )  # fmt: skip
    gemm, gelu, _, second = mapping.operators
    assert gemm.nodes == ("/layer.0/intermediate/MatMul", "/layer.0/intermediate/Add")
    assert set(gelu.nodes) == {f"/layer.0/gelu/{n}" for n in ("Div", "Erf", "Add", "Mul", "Mul_1")}
    assert gelu.onnx_op_type is None
    assert all(node.startswith("/layer.1/gelu/") for node in second.nodes)


def test_a_skipped_normalization_takes_the_sum_before_it_and_not_the_one_after(tmp_path: Path) -> None:
    net = _outline(tmp_path, model_zoo.encoder())
    mapping = _map(
        net, ("/embeddings/LayerNorm", "LayerNormalization"), ("SkipLayerNormalization", "SkipLayerNormalization")
    )
    assert mapping.operators[0].nodes == ("/embeddings/LayerNorm",)
    assert mapping.operators[1].nodes[:2] == ("/layer.0/attention/LayerNorm", "/layer.0/attention/output/Add")


def test_every_node_is_in_an_operator_or_listed_with_what_became_of_it(tmp_path: Path) -> None:
    model = model_zoo.text_model(
        "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { c = Neg(w)  s = Add(x, c)  y = Relu(s) }"
    )
    mapping = _map(_outline(tmp_path, model), ("Add_1", "Add"))
    assert mapping.operators[0].nodes == ("Add_1",)
    assert [(a["node"], a["how"]) for a in mapping.absorbed] == [("Neg_0", "folded"), ("Relu_2", "gone")]


def test_precision_edges_go_to_the_operator_beside_them(conv_w8a8: Path) -> None:
    mapping = _map(outline(conv_w8a8), ("_token_2", "QLinearConv"))
    nodes = mapping.operators[0].nodes
    assert nodes[0] == "Conv_8"
    assert {"w0_DequantizeLinear", "b0_DequantizeLinear", "x_DequantizeLinear", "r0_QuantizeLinear"} <= set(nodes)


def test_names_of_a_compiled_model_are_taken_as_they_are(tmp_path: Path) -> None:
    model = model_zoo.text_model("g (float[2] x) => (float[2] y) { z = Neg(x)  y = com.microsoft.EPContext(z) }",
                                 extra=', "com.microsoft" : 1')  # fmt: skip
    mapping = _map(
        _outline(tmp_path, model), ("Neg_0", "Neg"), ("first/Conv_token_1", None), ("Transpose_token_7", None)
    )
    assert [(m.origin, m.nodes, m.neighbour) for m in mapping.operators] == [
        ("node", ("Neg_0",), None), ("node", ("first/Conv",), None), ("inserted", (), "first/Conv"),
    ]  # fmt: skip


def test_without_a_model_the_origin_is_unknown_and_not_inserted() -> None:
    mapping = _map(Outline((), frozenset()), ("a", "Conv"))
    assert [m.origin for m in mapping.operators] == ["unknown"]
    assert mapping.absorbed == ()

from __future__ import annotations

import pytest

from winml.modelkit.building.analysis import answer
from winml.modelkit.building.analysis.answer import CPU, PlacedNode
from winml.modelkit.building.analysis.reasons import Reason
from winml.modelkit.building.analysis.result import AskedNode, NodePlacement, OpAnswer
from winml.modelkit.core.target import Target

QNN = "QNNExecutionProvider"
NPU = Target("qnn", "npu", simulated=True)
SETTING = "QNN EP is configured to not take Q nodes that consume a graph input."


def _node(name: str, op: str, ep: str = QNN, partition: int | None = 0) -> AskedNode:
    return AskedNode(name=name, op=op, ep=ep, partition=None if ep == CPU else partition)


def test_reasons_go_to_the_nodes_left_on_the_cpu_whatever_the_layout_did_to_their_names() -> None:
    reasons = [Reason("a_token_3", "Conv", "Conv", "too odd"), Reason("b", "Conv", "Conv", "said before it was taken")]
    nodes = answer.place_nodes([_node("a", "Conv", CPU), _node("b_token_12", "com.ms.internal.nhwc:Conv")], reasons)
    assert nodes == [PlacedNode("a", "Conv", CPU, None, "too odd"), PlacedNode("b", "Conv", QNN, 0)]


def test_an_operator_is_supported_partial_or_unsupported_by_how_many_of_its_nodes_were_taken() -> None:
    nodes = answer.place_nodes(
        [_node("a", "Conv"), _node("b", "Relu"), _node("c", "Relu", CPU), _node("d", "Loop", CPU)],
        [Reason("d", "Loop", "Loop", "no loops")],
    )
    assert answer.summarize_ops(nodes, QNN) == (
        OpAnswer("Conv", "supported", 1, 1, None),
        OpAnswer("Relu", "partial", 2, 1, None),
        OpAnswer("Loop", "unsupported", 1, 0, "no loops"),
    )


def test_what_the_ep_leaves_by_a_setting_does_not_count_against_it_and_is_told() -> None:
    reasons = [Reason("q", "QuantizeLinear", "QuantizeLinear", SETTING)]
    nodes = answer.place_nodes([_node("q", "QuantizeLinear", CPU)], reasons)
    ops = answer.summarize_ops(nodes, QNN)
    assert (ops[0].status, ops[0].taken) == ("supported", 0)
    assert answer.placement(nodes, NPU, frozenset({"q"})) == NodePlacement(
        on_target=0, on_cpu=1, by_setting=1, partitions=0, layout_nodes=0
    )
    assert answer.find_left_nodes(nodes, QNN)[0].by_setting is True


def test_the_cpus_own_layout_taken_by_another_ep_is_not_support() -> None:
    nodes = answer.place_nodes([_node("a", "com.microsoft.nchwc:Conv")], [])
    assert answer.summarize_ops(nodes, QNN)[0].status == "unsupported"
    on_cpu = answer.place_nodes([_node("a", "com.microsoft.nchwc:Conv", CPU)], [])
    assert answer.summarize_ops(on_cpu, CPU)[0].status == "supported"


def test_transposes_that_are_not_in_the_model_are_the_layouts() -> None:
    names = frozenset({"mine"})
    assert answer.is_added(PlacedNode("Transpose", "Transpose", QNN, 0), names)
    assert not answer.is_added(PlacedNode("mine", "Transpose", QNN, 0), names)
    assert not answer.is_added(PlacedNode("fused", "Gelu", QNN, 0), names)


def test_what_was_folded_before_the_ep_was_asked_is_gone() -> None:
    placed = [PlacedNode("a", "Conv", QNN, 0)]
    assert answer.count_removed([("a", "Conv"), ("k", "Constant"), ("l", "Constant"), ("i", "Identity")], placed) == {
        "Constant": 2, "Identity": 1,
    }  # fmt: skip


def test_the_table_answers_for_an_absent_ep_and_is_silent_where_it_knows_nothing() -> None:
    found = {a.op: a for a in answer.table_ops({"Conv": 2, "Erf": 1, "Loop": 1, "NeverHeardOf": 3, "Constant": 9}, NPU)}
    assert {op: a.status for op, a in found.items()} == {
        "Conv": "supported", "Erf": "partial", "Loop": "unsupported", "NeverHeardOf": "unknown",
    }  # fmt: skip
    assert found["Loop"].reason
    assert found["Conv"].taken is None
    assert {a.status for a in answer.table_ops({"Conv": 1}, Target("vitisai", "npu"))} == {"unknown"}


def test_after_a_failure_only_what_the_ep_said_is_known() -> None:
    reasons = [
        Reason("w", "DequantizeLinear", "Conv", "encoding"),
        Reason("c", "Conv", "Conv", "encoding"),
        Reason("q", "QuantizeLinear", "QuantizeLinear", SETTING),
    ]
    found = answer.unknown_ops({"Conv": 1, "DequantizeLinear": 2, "QuantizeLinear": 1, "Constant": 1}, reasons)
    assert found == (
        OpAnswer("Conv", "unsupported", 1, 0, "encoding"),
        OpAnswer("DequantizeLinear", "unknown", 2, None, None),
        OpAnswer("QuantizeLinear", "unknown", 1, None, None),
    )


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (["supported", "supported"], "supported"),
        ([], "supported"),
        (["supported", "unknown"], "unknown"),
        (["unknown"], "unknown"),
        (["unsupported"], "unsupported"),
        (["unsupported", "unknown"], "partial"),
        (["supported", "partial"], "partial"),
    ],
)
def test_one_word_for_a_target(statuses: list[answer.OpStatus], expected: str) -> None:
    assert answer.verdict([OpAnswer("x", status, 1, None, None) for status in statuses]) == expected

"""The page of an analysis: what targets take, what stays behind and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pictures import HOSTILE, check_page, marks
from winml.modelkit.building.analysis.result import (
    AnalyzeResult,
    Asked,
    Fusion,
    Fusions,
    HazardFound,
    LeftNode,
    LookedUp,
    ModelFacts,
    NodePlacement,
    OpAnswer,
    StatusCounts,
    TargetAnswer,
)
from winml.modelkit.core import plain_text
from winml.modelkit.core.environment import EPVersion, RuntimeVersion
from winml.modelkit.core.error_object import ErrorObject
from winml.modelkit.core.target import Target
from winml.modelkit.graph.description import Quantization
from winml.modelkit.render.pages.analyze import analyze_page, node_counts
from winml.modelkit.render.pages.page import Cell, Notices, Page, Table, Text, figures

ASKED = Asked(
    runtime=RuntimeVersion(name="onnxruntime", version="1.31.1"), ep=EPVersion(name="qnn", version="2.7.0"),
    provider_options={}, added_options={}, fixed_dims={"batch": 1}, sizes={},
)  # fmt: skip
HAZARD = HazardFound(id="fused-operator", message="It is fused", ops=(), count=1, nodes=("a",), fix="winml optimize",
                     evidence="asked")  # fmt: skip
QNN = TargetAnswer(
    target=Target("qnn", "npu", simulated=True), status="partial", source=ASKED,
    counts=StatusCounts(supported=1, partial=1, unsupported=1, unknown=0),
    ops=(OpAnswer("Conv", "supported", 4, 4, None), OpAnswer("Relu", "partial", 4, 3, "one is too large"),
         OpAnswer("Einsum", "unsupported", 2, 0, "Refused.")),
    placement=NodePlacement(on_target=9, on_cpu=3, by_setting=0, partitions=2, layout_nodes=2),
    left=(LeftNode(name="n1", op="Einsum", ep="CPU", reason="Refused.", by_setting=False),),
    hazards=(HAZARD,),
)  # fmt: skip
CPU = replace(
    QNN, target=Target("cpu", "cpu"), status="supported", hazards=(), left=(),
    ops=tuple(replace(one, status="supported", taken=one.nodes, reason=None) for one in QNN.ops),
)  # fmt: skip
ABSENT = replace(
    QNN, target=Target("openvino", "npu"), status="unknown", source=LookedUp(kind="none", table=None), placement=None,
    left=(), hazards=(), absent="`openvino` is not installed",
    ops=tuple(replace(one, status="unknown", taken=None, reason=None) for one in QNN.ops),
)  # fmt: skip
FACTS = ModelFacts(nodes=10, ops={"Conv": 4, "Relu": 4, "Einsum": 2}, opsets={"ai.onnx": 21}, conv_share=None,
                   quantized=Quantization("none", {}), dynamic_axes={"x": ("batch",)}, contrib_ops=(),
                   compiled_for=())  # fmt: skip


def _result(*targets: TargetAnswer, **changes: Any) -> AnalyzeResult:
    whole: dict[str, Any] = {"model": "a/m.onnx", "facts": FACTS, "supported": False, "fusions": None}
    return AnalyzeResult(targets=targets, **{**whole, **changes})


def _tables(page: Page) -> dict[str, Table]:
    return {one.title: one for one in page.blocks if isinstance(one, Table)}


def test_nodes_are_counted_by_what_the_target_does_with_them() -> None:
    assert node_counts(QNN) == {"supported": 7, "partial": 0, "unsupported": 3, "unknown": 0}
    page = analyze_page(_result(CPU, QNN, ABSENT))
    assert page.answer == (
        "cpu takes all 10 nodes; qnn/npu takes 7 of 10 nodes; openvino/npu is not here, and its operators are not "
        "known. 1 hazard to know of."
    )
    assert page.state == "partial"
    assert page.blocks[0] == Notices(("qnn/npu: It is fused. Fix: `winml optimize`",))
    texts = check_page(page)
    assert {"✓ supported", "✗ unsupported", "? unknown", "7 of 10", "10 of 10", "unknown"} <= set(texts["targets"])
    assert "~ partial" not in texts["targets"]
    found = figures(page)[0]
    assert found.sentence == "All nodes run on cpu. qnn/npu leaves Relu, Einsum."
    assert marks(found.draw(340)) == [
        "cpu: 10 supported", "qnn/npu: 7 supported, 3 unsupported", "openvino/npu: 10 unknown",
    ]  # fmt: skip


def test_operators_that_run_are_folded_also_beside_a_target_of_which_nothing_is_known() -> None:
    tables = _tables(analyze_page(_result(CPU, QNN, ABSENT)))
    behind = tables["Operators that stay behind"]
    assert [row.cells[0] for row in behind.rows] == ["Relu", "Einsum"]
    assert Cell("3 of 4", state="partial") in behind.rows[0].cells
    assert behind.rows[1].cells[-1] == "Refused."
    assert tables["Operators that run"].folded == "1 operator type runs wherever that is known"
    assert tables["Nodes that stay behind"].folded == "1 node"
    assert tables["Hazards"].rows[0].cells == ("fused-operator", "qnn/npu", "1", "a", "asked")
    known = [row.cells[-1] for row in tables["Targets"].rows]
    assert known[1] == "asked onnxruntime 1.31.1, qnn 2.7.0; simulated; with batch=1; 2 Transposes added for the layout"
    assert str(known[2]).startswith("not on this machine, and no table has its operators; `openvino`")


def test_targets_that_refuse_or_fail_are_said_to() -> None:
    refused = replace(QNN, status="refused", ops=(), placement=None)
    failed = replace(
        QNN,
        status="failed",
        ops=(),
        placement=None,
        error=ErrorObject(code="crashed", message="it crashed", hint=None, exit=1),
    )
    page = analyze_page(_result(refused, failed))
    assert page.answer.startswith("qnn/npu refuses the model; qnn/npu could not be asked.")
    assert page.state == "failed"
    assert check_page(page) == {}
    assert "it crashed" in str(_tables(page)["Targets"].rows[1].cells[-1])


def test_passes_that_change_the_model_are_folded_with_their_count() -> None:
    fusion = Fusion(name="conv_fusion", what="Conv + Relu", status="changes", note=None, after=(), nodes_delta=-3,
                    ops_delta={}, seconds=0.1, not_for=("qnn/npu",))  # fmt: skip
    page = analyze_page(_result(CPU, fusions=Fusions(tried=83, passes=(fusion,), error=None)))
    found = _tables(page)["What the optimizer could fuse"]
    assert found.folded == "1 of 83 passes change the model when they run alone"
    assert found.rows[0].cells == ("conv_fusion", "Conv + Relu", Cell("-3", sort=-3), "qnn/npu")
    page = analyze_page(_result(CPU, fusions=Fusions(tried=83, passes=(), error=None)))
    assert Text("None of 83 passes changes the model.", "What the optimizer could fuse") in page.blocks


def test_many_targets_and_hostile_names() -> None:
    ops = tuple(OpAnswer(f"{HOSTILE * 9}{n}", "unsupported", 10**n, 0, HOSTILE) for n in range(8))
    hostile = replace(QNN, ops=ops, hazards=(replace(HAZARD, message=HOSTILE, fix=HOSTILE),),
                      left=tuple(replace(QNN.left[0], name=f"{HOSTILE}{n}") for n in range(200)))  # fmt: skip
    page = analyze_page(plain_text.values(_result(hostile, *[CPU] * 20, model=HOSTILE)))
    check_page(page)
    assert "17 more targets below" in page.answer
    assert _tables(page)["Nodes that stay behind"].folded == "200 nodes, the first 50"

from __future__ import annotations

from dataclasses import replace

from winml.modelkit.building.analysis.result import (
    AnalyzeResult,
    Asked,
    Fusion,
    Fusions,
    HazardFound,
    LookedUp,
    ModelFacts,
    NodePlacement,
    OpAnswer,
    StatusCounts,
    TargetAnswer,
)
from winml.modelkit.cli.next_command import after_analyze
from winml.modelkit.core.environment import EPVersion, RuntimeVersion
from winml.modelkit.core.error_object import ErrorObject
from winml.modelkit.core.plain_text import shell_word
from winml.modelkit.core.target import Target
from winml.modelkit.graph.description import Quantization
from winml.modelkit.render.analyze import analyze_text

COUNTS = StatusCounts(supported=1, partial=0, unsupported=1, unknown=0)
ASKED = Asked(
    runtime=RuntimeVersion(name="onnxruntime", version="1.31.1"),
    ep=EPVersion(name="qnn", version="2.7.0"),
    provider_options={},
    added_options={},
    fixed_dims={"batch": 1},
    sizes={},
)
HAZARD = HazardFound(
    id="fused-operator",
    message="It is fused.",
    ops=(),
    count=1,
    nodes=("a",),
    fix="winml optimize -m m.onnx",
    evidence="asked",
)
ANSWER = TargetAnswer(
    target=Target("qnn", "npu", simulated=True),
    status="partial",
    source=ASKED,
    counts=COUNTS,
    ops=(
        OpAnswer("Relu", "supported", 1, 1, None),
        OpAnswer("com.microsoft:FusedConv", "unsupported", 3, 0, "Refused."),
    ),
    placement=NodePlacement(on_target=3, on_cpu=3, by_setting=0, partitions=1, layout_nodes=2),
    hazards=(HAZARD,),
)
FACTS = ModelFacts(
    nodes=4,
    ops={"Relu": 1},
    opsets={"ai.onnx": 21},
    conv_share=None,
    quantized=Quantization("none", {}),
    dynamic_axes={},
    contrib_ops=(),
    compiled_for=(),
)


def _result(*targets: TargetAnswer, fusions: Fusions | None = None) -> AnalyzeResult:
    return AnalyzeResult(model="a b/m.onnx", facts=FACTS, supported=False, targets=targets, fusions=fusions)


def test_a_block_says_what_the_target_refuses_why_and_what_to_do() -> None:
    assert analyze_text(_result(ANSWER)).splitlines() == [
        "m.onnx · 4 nodes of 1 operator · opset 21 · conv share unknown · quantized: none",
        "",
        "qnn/npu (simulated) · partly supported · queried onnxruntime 1.31.1, qnn 2.7.0",
        "  operators  1 supported, 1 unsupported",
        "  nodes  3 on qnn/npu in 1 partition, 3 on the CPU; 2 of them Transposes for the layout",
        "  queried with dynamic dimensions fixed: batch=1",
        "    com.microsoft:FusedConv  unsupported  0 of 3  Refused.",
        "  hazard fused-operator: It is fused.",
        "    fix: winml optimize -m m.onnx",
    ]


def test_an_absent_ep_without_a_table_is_one_line_and_its_reason() -> None:
    target = TargetAnswer(
        target=Target("dml", "gpu"),
        status="unknown",
        source=LookedUp(kind="none", table=None),
        counts=StatusCounts(0, 0, 0, 1),
        ops=(OpAnswer("Relu", "unknown", 1, None, None),),
        hazards=(),
        absent="not for Linux",
    )
    assert analyze_text(_result(target)).splitlines()[2:] == [
        "dml/gpu · unknown · not available on this machine, and its operators are not known",
        "  not for Linux",
        "  operators  1 unknown",
    ]


def test_candidates_say_for_whom_they_are_not() -> None:
    fusion = Fusion(
        name="conv_activation_fusion",
        what="Conv + Relu -> FusedConv",
        status="changes",
        note=None,
        after=(),
        nodes_delta=-3,
        ops_delta={},
        seconds=0.1,
        not_for=("qnn/npu",),
    )
    text = analyze_text(_result(ANSWER, fusions=Fusions(tried=60, passes=(fusion,), error=None)))
    assert "conv_activation_fusion  -3 nodes  Conv + Relu -> FusedConv (not for qnn/npu)" in text
    none = analyze_text(_result(ANSWER, fusions=Fusions(tried=60, passes=(), error=None)))
    assert "fusion candidates  none among 60 passes" in none


def test_next_is_the_first_fix_then_a_look_then_measuring() -> None:
    named = f"-m {shell_word('a b/m.onnx')}"
    assert after_analyze(_result(ANSWER), named) == "winml optimize -m m.onnx"
    failed = replace(ANSWER, hazards=(), error=ErrorObject(code="worker-crashed", message="crashed", hint=None, exit=1))
    assert after_analyze(_result(failed), named) == f"winml inspect {named}"
    assert after_analyze(_result(replace(ANSWER, hazards=())), named) == f"winml perf {named} --target qnn/npu"

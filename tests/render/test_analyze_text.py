from __future__ import annotations

from typing import Any

from winml.modelkit.core.plain_text import shell_word
from winml.modelkit.render.analyze import analyze_text, next_command

COUNTS = {"supported": 1, "partial": 0, "unsupported": 1, "unknown": 0}


def _target(**changes: Any) -> dict[str, Any]:
    return {
        "target": "qnn/npu",
        "simulated": True,
        "status": "partial",
        "source": {
            "kind": "asked",
            "runtime": {"name": "onnxruntime", "version": "1.31.1"},
            "ep": {"name": "qnn", "version": "2.7.0"},
            "fixed_dims": {"batch": 1},
        },
        "counts": COUNTS,
        "ops": [
            {"op": "Relu", "status": "supported", "nodes": 1, "taken": 1, "reason": None},
            {"op": "com.microsoft:FusedConv", "status": "unsupported", "nodes": 3, "taken": 0, "reason": "Refused."},
        ],
        "placement": {"on_target": 3, "on_cpu": 3, "by_setting": 0, "partitions": 1, "layout_nodes": 2},
        "hazards": [{"id": "fused-operator", "message": "It is fused.", "fix": "winml optimize -m m.onnx"}],
        "absent": None,
        "error": None,
        **changes,
    }


def _result(*targets: dict[str, Any], fusions: dict[str, Any] | None = None) -> dict[str, Any]:
    facts = {
        "nodes": 4,
        "ops": {"Relu": 1},
        "opsets": {"ai.onnx": 21},
        "conv_share": None,
        "quantized": {"kind": "none"},
    }
    return {"model": "a b/m.onnx", "facts": facts, "targets": list(targets), "fusions": fusions}


def test_a_block_says_what_the_target_refuses_why_and_what_to_do() -> None:
    assert analyze_text(_result(_target())).splitlines() == [
        "m.onnx · 4 nodes of 1 operator · opset 21 · conv share unknown · quantized: none",
        "",
        "qnn/npu (simulated) · partly supported · asked onnxruntime 1.31.1, qnn 2.7.0",
        "  operators  1 supported, 1 unsupported",
        "  nodes  3 on qnn/npu in 1 partition, 3 on the CPU; 2 of them Transposes for the layout",
        "  asked with dynamic dimensions fixed: batch=1",
        "    com.microsoft:FusedConv  unsupported  0 of 3  Refused.",
        "  hazard fused-operator: It is fused.",
        "    fix: winml optimize -m m.onnx",
    ]


def test_an_absent_ep_without_a_table_is_one_line_and_its_reason() -> None:
    unknown = {"op": "Relu", "status": "unknown", "nodes": 1, "taken": None, "reason": None}
    target = _target(
        target="dml/gpu", simulated=False, status="unknown", source={"kind": "none", "table": None}, ops=[unknown],
        counts=dict.fromkeys(COUNTS, 0) | {"unknown": 1}, placement=None, hazards=[], absent="not for Linux",
    )  # fmt: skip
    assert analyze_text(_result(target)).splitlines()[2:] == [
        "dml/gpu · unknown · not here, and nothing is known of its operators",
        "  not for Linux",
        "  operators  1 unknown",
    ]


def test_candidates_say_for_whom_they_are_not() -> None:
    row = {"name": "conv_activation_fusion", "what": "Conv + Relu -> FusedConv", "status": "changes", "nodes_delta": -3}
    fusions = {"tried": 60, "passes": [row | {"not_for": ["qnn/npu"]}], "error": None}
    text = analyze_text(_result(_target(), fusions=fusions))
    assert "conv_activation_fusion  -3 nodes  Conv + Relu -> FusedConv (not for qnn/npu)" in text
    none = analyze_text(_result(_target(), fusions={"tried": 60, "passes": [], "error": None}))
    assert "fusion candidates  none among 60 passes" in none


def test_next_is_the_first_fix_then_a_look_then_measuring() -> None:
    assert next_command(_result(_target())) == "winml optimize -m m.onnx"
    failed = _target(hazards=[], error={"message": "crashed"})
    assert next_command(_result(failed)) == f"winml inspect -m {shell_word('a b/m.onnx')}"
    assert next_command(_result(_target(hazards=[]))) == f"winml perf -m {shell_word('a b/m.onnx')} --target qnn/npu"

"""What `winml optimize` shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from winml.modelkit.building.optimize.command import list_passes
from winml.modelkit.building.optimize.result import (
    OptimizeReport,
    OptimizeResult,
    PassResult,
    SeededInputs,
    Verification,
    WrittenFile,
)
from winml.modelkit.core.config import OptimizeSection
from winml.modelkit.render.optimize import optimize_text, passes_text
from winml.modelkit.store.stage_cache import CacheAnswer

COMPARED = Verification(
    status="passed",
    max_abs=1e-7,
    max_rel=2.5e-7,
    tolerance=0.001,
    runs=(SeededInputs({}, "0 to 1"), SeededInputs({}, "-1 to 1")),
)


def _pass(name: str, status: Any, seconds: float, note: str | None = None) -> PassResult:
    return PassResult(name=name, kind="ort", status=status, changed=status == "changed", seconds=seconds, note=note)


REPORT = OptimizeReport(
    changed=True,
    fingerprint_before="a",
    fingerprint_after="b",
    files=(WrittenFile(path="out.onnx", bytes=2048),),
    passes=(
        _pass("conv_bn_fusion", "changed", 0.0021),
        _pass("gelu_fusion", "no change", 0.0, "needs opset 20; the model has 17"),
        _pass("pad_fusion", "no change", 0.002),
    ),
    nodes_before=3,
    nodes_after=2,
    ops_before={"Conv": 2, "BatchNormalization": 1},
    ops_after={"Conv": 2},
    opset_before=17,
    opset_after=17,
    fixed_dims={},
    verification=COMPARED,
    warnings=(),
)


def _result(target: str | None = "qnn/npu", cache: CacheAnswer = "miss", **changes: Any) -> OptimizeResult:
    return OptimizeResult(
        model="models/net.onnx",
        output="out.onnx",
        target=target,
        section=OptimizeSection(),
        cache=cache,
        report=replace(REPORT, **changes),
    )


def test_shows_passes_operators_and_the_comparison() -> None:
    assert (
        optimize_text(_result())
        == """\
net.onnx -> out.onnx for qnn/npu · 2.0 KiB
3 -> 2 nodes; outputs equal to the input model's on 2 seeded inputs (largest difference 2.5e-07, limit 0.001)

passes
  conv_bn_fusion  changed      2.10 ms
  gelu_fusion     no change  0.0000 ms  needs opset 20; the model has 17
  1 pass: no change

  operator            before  after
  Conv                     2      2
  BatchNormalization       1      0  -1"""
    )


def test_a_result_from_the_cache_is_said() -> None:
    head = optimize_text(_result(cache="hit")).splitlines()[0]
    assert head == "net.onnx -> out.onnx for qnn/npu · 2.0 KiB · from the cache"


def test_no_change_is_said() -> None:
    text = optimize_text(_result(changed=False, target=None, passes=()))
    assert text.splitlines()[1].startswith("no change; outputs equal")


def test_a_new_opset_is_said() -> None:
    assert "3 -> 2 nodes, opset 17 -> 21; outputs" in optimize_text(_result(opset_after=21))


def test_outputs_that_were_not_compared_are_not_called_equal() -> None:
    not_run = replace(COMPARED, status="not run", reason="out of memory")
    assert "outputs not compared: out of memory" in optimize_text(_result(verification=not_run))


def test_outputs_that_differ_are_said_to() -> None:
    failed = replace(COMPARED, status="failed", max_rel=None)
    assert "outputs DIFFERENT from the input model's on 2 seeded inputs (without a distance" in optimize_text(
        _result(verification=failed)
    )


def test_the_list_has_a_line_per_pass_and_says_what_cannot_act() -> None:
    lines = passes_text(list_passes(None, None, None)).splitlines()
    assert [
        line for line in lines if line.startswith("conv_bn_fusion ") and "Conv + BatchNormalization -> Conv" in line
    ]
    assert [line for line in lines if "unavailable: ONNX Runtime does this only to nodes on DirectML" in line]


def test_the_list_for_a_target_names_what_it_refuses() -> None:
    text = passes_text(list_passes("qnn/npu", None, None))
    assert "produces operators that qnn/npu is not known to support" in text
    assert "conv_activation_fusion          com.microsoft:FusedConv" in text

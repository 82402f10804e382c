from __future__ import annotations

from typing import Any

import pytest

from winml.modelkit.building.analysis.command import AnalyzeRequest, analyze, check
from winml.modelkit.building.analysis.result import (
    AnalyzeResult,
    Asked,
    ModelFacts,
    StatusCounts,
    TargetAnswer,
)
from winml.modelkit.building.events import AskingTarget, ReadingModel, TargetAnswered
from winml.modelkit.core.error_object import ErrorObject
from winml.modelkit.core.errors import CheckFailed, RequestError, UnavailableError, WorkerCrashed
from winml.modelkit.core.events import Event
from winml.modelkit.core.target import Target
from winml.modelkit.graph.description import Quantization

CRASH = ErrorObject(code="worker-crashed", message="it crashed with SIGSEGV", hint=None, exit=1)
FACTS = ModelFacts(
    nodes=1,
    ops={"Relu": 1},
    opsets={"ai.onnx": 21},
    conv_share=0.0,
    quantized=Quantization("none", {}),
    dynamic_axes={},
    contrib_ops=(),
    compiled_for=(),
)


def _target(name: str, status: Any, *, unsupported: int = 0, unknown: int = 0) -> TargetAnswer:
    ep, _, device = name.partition("/")
    return TargetAnswer(
        target=Target(ep, device or ep),  # type: ignore[arg-type]
        status=status,
        source=Asked(fixed_dims={}, sizes={}),
        counts=StatusCounts(0, 0, unsupported, unknown),
        ops=(),
        hazards=(),
        error=CRASH if status == "failed" else None,
    )


def _result(*targets: TargetAnswer) -> AnalyzeResult:
    supported = all(target.status == "supported" for target in targets)
    return AnalyzeResult(model="m.onnx", facts=FACTS, supported=supported, targets=targets, fusions=None)


def test_full_support_everywhere_passes() -> None:
    check(_result(_target("cpu", "supported"), _target("qnn/npu", "supported")))


def test_anything_less_is_a_no_with_the_result_beside_it() -> None:
    result = _result(
        _target("cpu", "supported"), _target("qnn/npu", "partial", unsupported=1),
        _target("dml/gpu", "unknown", unknown=3), _target("openvino/cpu", "refused"),
    )  # fmt: skip
    with pytest.raises(CheckFailed) as caught:
        check(result)
    assert caught.value.message == (
        "not fully supported: `qnn/npu` (1 unsupported); `openvino/cpu` refused; unknown on `dml/gpu`"
    )
    assert caught.value.result == result


def test_a_target_that_is_neither_installed_nor_in_a_table_is_unknown_not_unsupported() -> None:
    with pytest.raises(UnavailableError, match="cannot tell: `cuda/gpu` is not available on this machine") as caught:
        check(_result(_target("cuda/gpu", "unknown", unknown=3), _target("cpu", "supported")))
    assert caught.value.exit_code == 3


def test_a_crash_is_the_commands_own_failure_only_when_nobody_else_answered() -> None:
    with pytest.raises(WorkerCrashed, match="it crashed with SIGSEGV"):
        check(_result(_target("qnn/npu", "failed")))
    with pytest.raises(CheckFailed, match="`qnn/npu` failed"):
        check(_result(_target("cpu", "supported"), _target("qnn/npu", "failed")))


def test_the_steps_are_told_while_they_happen(zoo: Any) -> None:
    events: list[Event] = []
    request = AnalyzeRequest(model=str(zoo / "relu.onnx"), targets=("cpu",), fusions=False)
    assert analyze(request, events.append).supported is True
    assert events == [ReadingModel("relu.onnx"), AskingTarget("cpu", 0, 1), TargetAnswered("cpu", "supported")]


def test_options_of_an_ep_need_one_target(zoo: Any) -> None:
    request = AnalyzeRequest(model=str(zoo / "relu.onnx"), all_targets=True, ep_options={"soc_model": "60"})
    with pytest.raises(RequestError, match="needs one target"):
        analyze(request, lambda event: None)


def test_a_result_can_name_the_model_as_others_know_it(zoo: Any) -> None:
    request = AnalyzeRequest(
        model=str(zoo / "fused.onnx"), targets=("vitisai/npu",), fusions=False, shown_as="optimized.onnx"
    )
    result = analyze(request, lambda event: None)
    assert result.model == "optimized.onnx"
    assert str(zoo) not in str(result)

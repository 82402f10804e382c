from __future__ import annotations

from typing import Any

import pytest

from winml.modelkit.building.analysis.command import AnalyzeRequest, analyze, check
from winml.modelkit.core.errors import CheckFailed, RequestError, UnavailableError, WorkerCrashed

NONE = {"supported": 0, "partial": 0, "unsupported": 0, "unknown": 0}
CRASH = {"code": "worker-crashed", "message": "it crashed with SIGSEGV", "hint": None, "exit": 1}


def _target(name: str, status: str, **counts: int) -> dict[str, Any]:
    error = CRASH if status == "failed" else None
    return {"target": name, "status": status, "counts": {**NONE, **counts}, "error": error}


def _result(*targets: dict[str, Any]) -> dict[str, Any]:
    return {"supported": all(t["status"] == "supported" for t in targets), "targets": list(targets)}


def test_full_support_everywhere_passes() -> None:
    check(_result(_target("cpu", "supported"), _target("qnn/npu", "supported")))


def test_anything_less_is_a_no_with_the_result_beside_it() -> None:
    result = _result(
        _target("cpu", "supported"), _target("qnn/npu", "partial", supported=2, unsupported=1),
        _target("dml/gpu", "unknown", unknown=3), _target("openvino/cpu", "refused"),
    )  # fmt: skip
    with pytest.raises(CheckFailed) as caught:
        check(result)
    assert caught.value.message == (
        "not fully supported: `qnn/npu` (1 unsupported); `openvino/cpu` refused; unknown on `dml/gpu`"
    )
    assert caught.value.details == result


def test_a_target_that_is_not_here_and_of_which_nothing_is_known_is_no_no() -> None:
    with pytest.raises(UnavailableError, match="cannot tell: `cuda/gpu` is not here") as caught:
        check(_result(_target("cuda/gpu", "unknown", unknown=3), _target("cpu", "supported")))
    assert caught.value.exit_code == 3


def test_a_crash_is_the_commands_own_failure_only_when_nobody_else_answered() -> None:
    with pytest.raises(WorkerCrashed, match="it crashed with SIGSEGV"):
        check(_result(_target("qnn/npu", "failed")))
    with pytest.raises(CheckFailed, match="`qnn/npu` failed"):
        check(_result(_target("cpu", "supported"), _target("qnn/npu", "failed")))


def test_the_steps_are_told_while_they_happen(zoo: Any) -> None:
    events: list[dict[str, Any]] = []
    request = AnalyzeRequest(model=str(zoo / "relu.onnx"), target="cpu", fusions=False)
    assert analyze(request, events.append)["supported"] is True
    assert [event["event"] for event in events] == ["reading", "asking", "answered"]
    assert events[1] == {"event": "asking", "name": "cpu", "done": 0, "total": 1}


def test_options_of_an_ep_need_one_target(zoo: Any) -> None:
    request = AnalyzeRequest(model=str(zoo / "relu.onnx"), all_targets=True, ep_options={"soc_model": "60"})
    with pytest.raises(RequestError, match="needs one target"):
        analyze(request, lambda event: None)


def test_a_result_can_name_the_model_as_others_know_it(zoo: Any) -> None:
    request = AnalyzeRequest(
        model=str(zoo / "fused.onnx"), target="vitisai/npu", fusions=False, shown_as="optimized.onnx"
    )
    result = analyze(request, lambda event: None)
    assert result["model"] == "optimized.onnx"
    assert str(zoo) not in str(result)

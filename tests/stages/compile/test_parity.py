"""When a compiled model computes the same as its source."""

from __future__ import annotations

from typing import Any

import pytest

from winml.modelkit.core.config import CompileSection
from winml.modelkit.core.errors import CheckFailed, RunFailedError
from winml.modelkit.core.target import Target
from winml.modelkit.stages.compile.parity import checked, elsewhere, excused, judged, limits

EQUAL = {"same_shape": True, "equal": True, "max_abs": 0.0, "cosine": 1.0, "relative": 0.0, "float": True}


def _near(relative: float, cosine: float = 1.0, **changes: Any) -> dict[str, Any]:
    return {"same_shape": True, "equal": False, "max_abs": relative, "cosine": cosine, "relative": relative,
            "float": True, **changes}  # fmt: skip


def _answer(source: Any, cpu: Any) -> dict[str, Any]:
    comparisons = {
        name: {"reason": value, "outputs": {}} if isinstance(value, str) else {"reason": None, "outputs": {"y": value}}
        for name, value in (("source", source), ("cpu", cpu))
    }
    return {"opened": True, "reason": None, "comparisons": comparisons}


def test_equal_outputs_pass_and_have_no_noise() -> None:
    found = judged(_answer(EQUAL, _near(0.001)), "fp32")
    assert found["status"] == "passed"
    assert found["comparisons"]["source"]["sqnr_db"] is None
    assert found["comparisons"]["cpu"]["sqnr_db"] == pytest.approx(60.0)


@pytest.mark.parametrize(
    ("precision", "relative", "status"),
    [("fp32", 0.13, "passed"), ("fp32", 0.15, "failed"), ("w8a16", 0.3, "passed"), ("w8a16", 0.33, "failed"),
     ("w8a8", 0.45, "passed"), ("w8a8", 0.55, "failed"), ("dynamic", 0.55, "passed"), ("w4a16", 0.6, "failed")],
)  # fmt: skip
def test_the_noise_allowed_against_the_cpu_depends_on_the_precision(
    precision: str, relative: float, status: str
) -> None:
    assert judged(_answer(EQUAL, _near(relative)), precision)["status"] == status


def test_on_the_same_target_a_compiled_model_must_be_nearly_equal_whatever_its_precision() -> None:
    found = judged(_answer(_near(0.1, 0.995), _near(0.1, 0.995)), "w8a8")
    assert found["status"] == "failed"
    assert "on the same target" in found["reason"]


def test_a_wrong_scale_fails_although_the_angle_is_right() -> None:
    assert judged(_answer(EQUAL, _near(1.0, 1.0)), "w8a8")["status"] == "failed"


def test_outputs_without_a_number_fail() -> None:
    broken = {**EQUAL, "equal": False, "max_abs": None, "cosine": None, "relative": None}
    found = judged(_answer(broken, broken), "fp32")
    assert found["status"] == "failed"
    assert "same target and of its source on the CPU" in found["reason"]


def test_a_class_may_differ_from_the_cpu_but_not_on_the_same_target() -> None:
    other = _near(1.0, 0.0, float=False)
    assert judged(_answer({**EQUAL, "float": False}, other), "fp32")["status"] == "passed"
    assert judged(_answer(other, other), "fp32")["status"] == "failed"


def test_what_cannot_be_compared_is_not_a_pass() -> None:
    assert judged({"opened": False, "reason": "no", "comparisons": {}}, "fp32") == {
        "status": "not-validated", "reason": "no", "comparisons": {},
    }  # fmt: skip
    found = judged(_answer("no EP", "no kernel"), "fp32")
    assert (found["status"], found["reason"]) == ("not-validated", "no EP; no kernel")
    assert judged(_answer("no EP", EQUAL), "fp32")["status"] == "passed"


def test_a_death_counts_against_the_model_unless_something_else_explains_it() -> None:
    assert excused(["source"], elsewhere=False)
    assert excused(["source", "compiled"], elsewhere=True)
    assert not excused(["source", "compiled"], elsewhere=False)
    assert not excused(["source", "compiled", "running"], elsewhere=True)
    assert excused(["source", "compiled", "running", "reference"], elsewhere=False)
    assert not excused([], elsewhere=True)


def test_limits_grow_with_the_bits() -> None:
    ordered = [limits(p, "cpu").cosine for p in ("w4a16", "w8a8", "w8a16", "fp16", "fp32")]
    assert ordered == sorted(ordered)


def test_a_result_may_be_for_elsewhere_when_the_device_is_simulated_or_another_was_named() -> None:
    device, simulator = Target("qnn", "npu"), Target("qnn", "npu", simulated=True)
    assert elsewhere(simulator, CompileSection())
    assert elsewhere(device, CompileSection(provider_options={"soc_model": "60"}))
    assert not elsewhere(device, CompileSection(provider_options={"vtcm_mb": "8"}))


def test_what_its_own_device_does_not_open_is_an_error() -> None:
    closed = {"opened": False, "reason": "no", "comparisons": {}}
    assert checked("m", closed, "fp32", here=None)["status"] == "not-validated"
    with pytest.raises(RunFailedError, match="does not open on `qnn/npu`: no"):
        checked("m", closed, "fp32", here="qnn/npu")
    with pytest.raises(CheckFailed, match="outputs differ"):
        checked("m", _answer(_near(1.0, 0.0), EQUAL), "fp32", here="qnn/npu")
    assert checked("m", _answer(EQUAL, EQUAL), "fp32", here="qnn/npu")["status"] == "passed"

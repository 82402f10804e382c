"""When a compiled model computes the same as its source."""

from __future__ import annotations

from dataclasses import replace

import pytest

from winml.modelkit.building.compile.parity import check, elsewhere, is_excused, judge
from winml.modelkit.building.compile.result import ComparedOutput, Comparison, Validation, ValidationRun
from winml.modelkit.core.config import CompileSection
from winml.modelkit.core.errors import CheckFailed, RunFailedError
from winml.modelkit.core.target import Target

EQUAL = ComparedOutput(same_shape=True, equal=True, max_abs=0.0, cosine=1.0, relative=0.0, is_float=True)


def _near(relative: float, cosine: float = 1.0, *, is_float: bool = True) -> ComparedOutput:
    return ComparedOutput(
        same_shape=True, equal=False, max_abs=relative, cosine=cosine, relative=relative, is_float=is_float
    )


def _run(source: ComparedOutput) -> ValidationRun:
    return ValidationRun(opened=True, outputs={"y": source})


def _source(found: Validation) -> Comparison:
    assert found.comparisons.source is not None
    return found.comparisons.source


def test_equal_outputs_pass_and_have_no_noise() -> None:
    found = judge(_run(EQUAL))
    assert found.status == "passed"
    assert _source(found).sqnr_db is None
    assert _source(judge(_run(_near(0.001)))).sqnr_db == pytest.approx(60.0)


def test_on_the_same_target_a_compiled_model_must_be_nearly_equal() -> None:
    found = judge(_run(_near(0.1, 0.995)))
    assert found.status == "failed"
    assert "on the same target" in found.reason


def test_a_wrong_scale_fails_although_the_angle_is_right() -> None:
    assert judge(_run(_near(1.0, 1.0))).status == "failed"


def test_outputs_without_a_number_fail() -> None:
    unknown = replace(EQUAL, equal=False, max_abs=None, cosine=None, relative=None)
    assert judge(_run(unknown)).status == "failed"


def test_a_class_may_not_differ_on_the_same_target() -> None:
    assert judge(_run(replace(EQUAL, is_float=False))).status == "passed"
    assert judge(_run(_near(1.0, 0.0, is_float=False))).status == "failed"


def test_what_cannot_be_compared_is_not_a_pass() -> None:
    assert judge(ValidationRun(opened=False, reason="no")) == Validation("not-validated", "no")
    found = judge(ValidationRun(opened=True, reason="no EP"))
    assert (found.status, found.reason) == ("not-validated", "no EP")


def test_a_death_counts_against_the_model_unless_something_else_explains_it() -> None:
    assert is_excused(["source"], elsewhere=False)
    assert is_excused(["source", "compiled"], elsewhere=True)
    assert not is_excused(["source", "compiled"], elsewhere=False)
    assert not is_excused(["source", "compiled", "running"], elsewhere=True)
    assert is_excused(["source", "compiled", "running", "reference"], elsewhere=False)
    assert not is_excused([], elsewhere=True)


@pytest.mark.parametrize(
    ("simulated", "options", "shared", "reason"),
    [
        (True, {}, False, None),
        (True, {"soc_model": "87"}, False, None),
        (True, {}, True, "the simulator cannot load a context that several models share"),
        (True, {"soc_model": "60,87"}, False, "it is for several devices (soc_model=60,87)"),
        (False, {"soc_model": "60"}, False, "it is for another device (soc_model=60)"),
        (False, {"vtcm_mb": "8"}, True, None),
    ],
)
def test_a_result_has_to_open_here_unless_it_is_for_elsewhere(
    simulated: bool, options: dict[str, str], shared: bool, reason: str | None
) -> None:
    """The simulator loads what was compiled for any one SoC when it is told which."""
    target = Target("qnn", "npu", simulated=simulated)
    assert elsewhere(target, CompileSection(provider_options=options), shared=shared) == reason


def test_what_its_own_device_does_not_open_is_an_error() -> None:
    closed = ValidationRun(opened=False, reason="no")
    found = check("m", closed, on="qnn/npu", elsewhere="it is for several devices")
    assert (found.status, found.reason) == ("not-validated", "it is for several devices: no")
    with pytest.raises(RunFailedError, match="does not open on `qnn/npu`: no"):
        check("m", closed, on="qnn/npu", elsewhere=None)
    with pytest.raises(CheckFailed, match="outputs differ"):
        check("m", _run(_near(1.0, 0.0)), on="qnn/npu", elsewhere=None)
    assert check("m", _run(EQUAL), on="qnn/npu", elsewhere=None).status == "passed"

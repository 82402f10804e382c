"""The command that makes sense after another; each of them parses."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import get_args

import pytest
from tests.measured import ARM, ENVIRONMENT, perf_result
from tests.render.test_evaluate_text import result as eval_result
from tests.render.test_op_trace_text import TRACE

from winml.modelkit.cli.command_check import wrong_command
from winml.modelkit.cli.next_command import after_compare, after_eval, after_perf, model_option
from winml.modelkit.core.target import Target
from winml.modelkit.core.verdict import Outcome, Verdict
from winml.modelkit.measuring.compare_result import Candidate, ComparedArm, CompareResult

MODELS = ("fp32.onnx", "int8.onnx", "fp 16.onnx")
GIVEN = {"max_seconds": 60.0, "dims": (), "batch_size": None}
SIMULATED = Target("qnn", "npu", simulated=True)


def _compare(*candidates: tuple[Outcome, float | None]) -> CompareResult:
    made = tuple(
        Candidate(label=name, arm=ARM, verdict=Verdict(outcome, "because", gain_pct=gain))
        for name, (outcome, gain) in zip(MODELS[1:], candidates, strict=False)
    )
    return CompareResult(
        base=ComparedArm(label=MODELS[0], arm=ARM),
        candidates=made,
        calibrations={},
        fail_if_slower_pct=None,
        environment=ENVIRONMENT,
        warnings=(),
    )


def _parses(command: str | None) -> bool:
    assert command is not None
    return wrong_command(tuple(shlex.split(command)[1:]), True) is None


@pytest.mark.parametrize("outcome", get_args(Outcome))
def test_every_verdict_has_a_command_that_parses(outcome: Outcome) -> None:
    hint, command = after_compare(_compare((outcome, None)), MODELS[:2], GIVEN)
    assert _parses(command)
    assert (hint is not None) == (outcome == "DISCARD")


def test_a_discard_says_what_to_try() -> None:
    hint, command = after_compare(_compare(("DISCARD", -12.0)), MODELS[:2], GIVEN)
    assert hint is not None
    assert "`winml perf -m int8.onnx --target cpu --op-tracing basic` shows where its time goes" in hint
    assert command == "winml autoconfig -m fp32.onnx --target cpu -o DIR"


def test_the_best_of_several_decides_and_its_name_is_quoted() -> None:
    found = _compare(("DISCARD", -12.0), ("KEEP", 30.0))
    _, command = after_compare(found, MODELS, GIVEN)
    assert command is not None
    words = shlex.split(command)
    assert words[:6] == ["winml", "eval", "-m", "fp 16.onnx", "--reference", "fp32.onnx"]


def test_a_verdict_that_needs_more_rounds_asks_for_more_time() -> None:
    _, command = after_compare(_compare(("INCONCLUSIVE", 1.0)), MODELS[:2], GIVEN)
    assert command == "winml compare fp32.onnx int8.onnx --target cpu --max-seconds 180"


def test_one_model_on_several_targets_is_built_for_the_best() -> None:
    found = _compare(("KEEP", 50.0))
    fast = replace(found.candidates[0], arm=replace(ARM, target=Target("openvino", "gpu")))
    _, command = after_compare(replace(found, candidates=(fast,)), MODELS[:1], GIVEN)
    assert command == "winml build -m fp32.onnx --target openvino/gpu -o DIR"


def test_a_stored_comparison_names_no_models() -> None:
    assert after_compare(_compare(("KEEP", 50.0)), (), GIVEN) == (None, None)


@pytest.mark.parametrize(
    ("changes", "trace_path", "command"),
    [
        ({}, None, "winml perf --sample --target cpu --op-tracing basic"),
        ({"op_trace": TRACE}, None, "winml autoconfig --sample --target cpu -o DIR"),
        ({"op_trace": TRACE, "built_for": "cpu"}, None, "winml analyze --sample --target cpu"),
        ({"op_trace": TRACE, "target": SIMULATED}, None, "winml analyze --sample --target qnn/npu"),
        ({"op_trace": TRACE}, "a_op_trace.json", "winml trace diff a_op_trace.json OTHER_op_trace.json"),
    ],
)
def test_a_measurement_asks_where_the_time_goes_then_for_something_faster(
    changes: dict[str, object], trace_path: str | None, command: str
) -> None:
    assert after_perf(perf_result(**changes), "--sample", trace_path, {}) == command
    assert _parses(command)


def test_sizes_and_inputs_are_repeated_where_they_are_needed_again() -> None:
    given = {**GIVEN, "dims": ("height=8", "x y=2"), "batch_size": 4, "input_data": "in.npz"}
    asked = after_perf(perf_result(), "-m m.onnx", None, given)
    words = "--batch-size 4 --dim height=8 --dim 'x y=2' --input-data in.npz"
    assert shlex.split(asked) == shlex.split(f"winml perf -m m.onnx --target cpu {words} --op-tracing basic")
    only_sizes = after_perf(perf_result(op_trace=TRACE, built_for="cpu"), "-m m.onnx", None, given)
    assert "--batch-size" not in only_sizes
    assert "--dim height=8" in only_sizes
    _, more_time = after_compare(_compare(("INCONCLUSIVE", 1.0)), MODELS[:2], given)
    assert all(map(_parses, (asked, only_sizes, more_time)))


def test_accuracy_is_followed_by_speed_and_an_accuracy_alone_by_a_search() -> None:
    alone = eval_result(target="cpu", simulated=False)
    named = model_option("m.onnx", sample=False)
    searched = after_eval(alone, named, "test.npz")
    assert searched == "winml autoconfig -m m.onnx --target cpu --data test.npz --task image-classification -o DIR"
    other = replace(alone, reference=replace(alone, model="fp32.onnx"))
    compared = after_eval(other, named, "test.npz")
    assert compared == "winml compare fp32.onnx out/int8.onnx --target cpu"
    simulated = after_eval(eval_result(), named, "test.npz")
    assert simulated == "winml perf -m m.onnx --target qnn/npu"
    assert all(map(_parses, (searched, compared, simulated)))

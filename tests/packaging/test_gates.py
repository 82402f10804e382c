"""What the gates of a package say of evidence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from winml.modelkit.building.proof.proof import LeastAgreement, OutputDistance, Proof
from winml.modelkit.core.placement import Placement
from winml.modelkit.core.verdict import Verdict
from winml.modelkit.packaging.gates import (
    ArtifactEvidence,
    Limits,
    MetricEvidence,
    find_stopped,
    judge_artifact,
)

PLACED = Placement("QNNExecutionProvider", {"QNNExecutionProvider": 9, "CPUExecutionProvider": 1}, {}, {"Cast": 1})
PROOF = Proof(
    status="proven on target",
    on="qnn/npu",
    agreement=LeastAgreement(output="y", cosine=0.99),
    limit=0.95,
    outputs=(OutputDistance(name="y", is_float=True),),
    samples=4,
    placement=PLACED,
)
METRIC = MetricEvidence(metric="accuracy", value=0.9, interval=(0.88, 0.92), drop=0.01, drop_interval=(0.0, 0.02))
WHOLE = ArtifactEvidence(
    target="qnn/npu",
    simulated=False,
    changed_file=None,
    proof=PROOF,
    metrics=(METRIC,),
    against_cpu=(Verdict("KEEP", "faster", gain_pct=50.0),),
    bytes=100,
)
LIMITS = Limits(max_drop=0.02, max_bytes=100)


def _answers(evidence: ArtifactEvidence, limits: Limits = LIMITS, accepted: tuple[str, ...] = ()) -> dict[str, str]:
    return {one.gate: one.answer for one in judge_artifact(evidence, limits, accepted)}


def test_an_artifact_with_all_evidence_passes_every_gate() -> None:
    assert set(_answers(WHOLE).values()) == {"passed"}
    assert not find_stopped(judge_artifact(WHOLE, LIMITS))


@pytest.mark.parametrize(
    ("change", "gate", "answer"),
    [
        ({"changed_file": "model.onnx"}, "builds", "failed"),
        ({"proof": None}, "loads", "not known"),
        ({"proof": replace(PROOF, status="proven on cpu only (target not here)")}, "loads", "not known"),
        ({"proof": replace(PROOF, status="proven on cpu only (target not here)")}, "placed", "not known"),
        ({"proof": replace(PROOF, status="proven on cpu only (target not here)")}, "agrees", "not known"),
        ({"proof": replace(PROOF, placement=replace(PLACED, nodes={"CPUExecutionProvider": 9}))}, "placed", "failed"),
        ({"proof": replace(PROOF, agreement=LeastAgreement(output="y", cosine=0.9))}, "agrees", "failed"),
        ({"proof": replace(PROOF, agreement=None)}, "agrees", "not known"),
        ({"metrics": ()}, "accuracy", "not known"),
        ({"metrics": (replace(METRIC, drop=0.03, drop_interval=(0.021, 0.04)),)}, "accuracy", "failed"),
        ({"metrics": (replace(METRIC, drop_interval=(0.0, 0.03)),)}, "accuracy", "not known"),
        ({"metrics": (replace(METRIC, drop_interval=None),)}, "accuracy", "not known"),
        ({"metrics": (replace(METRIC, drop=None),)}, "accuracy", "not known"),
        ({"metrics": (replace(METRIC, unusable_drop="its reference ran on qnn/npu"),)}, "accuracy", "not known"),
        ({"metrics": (replace(METRIC, failed_checks=("no",)),)}, "accuracy", "failed"),
        ({"against_cpu": ()}, "latency", "not known"),
        ({"against_cpu": (), "simulated": True}, "latency", "not known"),
        ({"against_cpu": (Verdict("DISCARD", "", -30.0, (-40.0, -20.0)),)}, "latency", "failed"),
        ({"against_cpu": (Verdict("DISCARD", "3 times slower in a probe"),)}, "latency", "failed"),
        ({"against_cpu": (Verdict("FAILED", "it crashed"),)}, "latency", "not known"),
        ({"against_cpu": (Verdict("INCONCLUSIVE", "", 0.0, (-40.0, 20.0)),)}, "latency", "not known"),
        ({"against_cpu": (Verdict("DISCARD", "", 0.0, (-1.0, 1.0)),)}, "latency", "passed"),
        ({"bytes": 101}, "size", "failed"),
    ],
)
def test_a_gate_says_what_its_evidence_says(change: dict[str, object], gate: str, answer: str) -> None:
    evidence = replace(WHOLE, **change)  # type: ignore[arg-type]
    assert _answers(evidence)[gate] == answer
    assert find_stopped(judge_artifact(evidence, LIMITS)) or answer == "passed"


def test_only_an_unknown_latency_can_be_accepted() -> None:
    unknown = replace(WHOLE, against_cpu=(), proof=None, metrics=())
    stopped = find_stopped(judge_artifact(unknown, LIMITS, ("latency", "accuracy", "loads")))
    assert [one.gate for one in stopped] == ["loads", "placed", "agrees", "accuracy"]


def test_a_latency_that_was_imported_from_the_device_is_accepted_and_said() -> None:
    answers = judge_artifact(replace(WHOLE, against_cpu=(), measured_on_device=True), LIMITS)
    latency = next(one for one in answers if one.gate == "latency")
    assert (latency.answer, latency.accepted) == ("not known", "a latency of the device was imported")
    assert not find_stopped(answers)


def test_a_latency_that_is_worse_by_verdict_is_never_accepted() -> None:
    slower = replace(WHOLE, against_cpu=(Verdict("DISCARD", "", -30.0, (-40.0, -20.0)),), measured_on_device=True)
    assert [one.gate for one in find_stopped(judge_artifact(slower, LIMITS, ("latency",)))] == ["latency"]


def test_a_drop_that_does_not_count_matters_only_to_a_limit_of_the_drop() -> None:
    unusable = replace(METRIC, unusable_drop="its reference ran on qnn/npu")
    assert _answers(replace(WHOLE, metrics=(unusable,)), Limits(min_metric=0.85))["accuracy"] == "passed"
    own = replace(unusable, held_checks=("accuracy dropped by 0",), has_drop_check=True)
    assert _answers(replace(WHOLE, metrics=(own,)), Limits())["accuracy"] == "not known"


def test_results_that_do_not_count_are_named_with_the_reason() -> None:
    stale = replace(WHOLE, metrics=(), unusable=("`eval.json` is of another build",))
    answer = next(one for one in judge_artifact(stale, LIMITS) if one.gate == "accuracy")
    assert (answer.answer, answer.reason) == (
        "not known",
        "no evaluation of it was given; `eval.json` is of another build",
    )

"""Whether an artifact may be shipped: pure functions over evidence. What is not known does not pass."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Literal, get_args

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.values import key

if TYPE_CHECKING:
    from winml.modelkit.building.proof.proof import Proof
    from winml.modelkit.core.placement import Placement
    from winml.modelkit.core.verdict import Verdict

Gate = Literal["builds", "loads", "placed", "agrees", "accuracy", "latency", "size"]
GATES: tuple[Gate, ...] = get_args(Gate)
Answer = Literal["passed", "failed", "not known"]
MARGIN_PCT = 2.0
"""A loss below this is none: the project calls gains below it marginal, too."""


@dataclass(frozen=True, kw_only=True)
class GateAnswer:
    """What a gate says, and why."""

    gate: Gate
    answer: Answer
    reason: str
    accepted: str | None = key(omit=True)
    """Why an answer that is not known was let through."""

    @property
    def lets_through(self) -> bool:
        return self.answer == "passed" or (self.answer == "not known" and self.accepted is not None)


@dataclass(frozen=True, kw_only=True)
class MetricEvidence:
    """A metric of an evaluation of the artifact on its target."""

    metric: str
    value: float | None
    interval: tuple[float, float] | None
    drop: float | None
    drop_interval: tuple[float, float] | None
    unusable_drop: str | None = None
    """Why its drop does not say how much worse than the source on the CPU it is."""
    failed_checks: tuple[str, ...] = ()
    unknown_checks: tuple[str, ...] = ()
    held_checks: tuple[str, ...] = ()
    """Limits of the evaluation itself, as sentences, by what became of them."""
    has_drop_check: bool = False
    """Whether a limit of the evaluation itself is for the drop."""


@dataclass(frozen=True, kw_only=True)
class ArtifactEvidence:
    """What is known of one artifact, whatever files it comes from."""

    target: str
    simulated: bool
    changed_file: str | None
    """A file of the build that is not the one that was built."""
    proof: Proof | None
    metrics: tuple[MetricEvidence, ...] = ()
    against_cpu: tuple[Verdict, ...] = ()
    """Verdicts of comparisons on a real device, with the source or the packaged artifact on the CPU as the base."""
    unusable: tuple[str, ...] = ()
    """Results that name the build and do not count, each with the reason."""
    measured_on_device: bool = False
    """Whether a latency of the real device was imported."""
    bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What the user demands."""

    max_drop: float | None = None
    min_metric: float | None = None
    metric: str | None = None
    max_bytes: int | None = None


def _answer(gate: Gate, answer: Answer, reason: str) -> GateAnswer:
    return GateAnswer(gate=gate, answer=answer, reason=reason)


def judge_builds(evidence: ArtifactEvidence) -> GateAnswer:
    if evidence.changed_file is not None:
        return _answer("builds", "failed", f"`{evidence.changed_file}` was changed after the build")
    return _answer("builds", "passed", "every file is the one that was built")


def judge_loads(evidence: ArtifactEvidence) -> GateAnswer:
    proof = evidence.proof
    if proof is None:
        return _answer("loads", "not known", "the build was not proven")
    if proof.status == "proven on target":
        return _answer("loads", "passed", f"it was opened and run on {_where(evidence)}")
    return _answer("loads", "not known", proof.reason or proof.status)


def _where(evidence: ArtifactEvidence) -> str:
    return f"{evidence.target} (simulated)" if evidence.simulated else evidence.target


def judge_placed(evidence: ArtifactEvidence) -> GateAnswer:
    proof = evidence.proof
    placement = None if proof is None or proof.status != "proven on target" else proof.placement
    if placement is None:
        return _answer("placed", "not known", "where its nodes run was not seen on the target")
    if placement.took_nothing:
        return _answer("placed", "failed", f"{evidence.target} took none of its {placement.total} nodes")
    return _answer("placed", "passed", _describe_placement(placement))


def _describe_placement(placement: Placement) -> str:
    on_cpu = sum(placement.fell_back.values())
    taken = placement.nodes.get(placement.requested, 0)
    left = f", {on_cpu} stay on the CPU: {', '.join(placement.fell_back)}" if on_cpu else ""
    return f"{taken} of {placement.total} nodes{left}"


def judge_agrees(evidence: ArtifactEvidence) -> GateAnswer:
    proof = evidence.proof
    if proof is None or proof.status != "proven on target":
        return _answer("agrees", "not known", "its outputs on the target were not compared with the source's")
    if proof.agreement is None or proof.limit is None:
        return _answer("agrees", "not known", "its outputs were not compared with the source's")
    if any(not one.finite or not one.same_shape for one in proof.outputs):
        return _answer("agrees", "failed", "an output is not finite or has another shape")
    cosine = proof.agreement.cosine
    if cosine is None:
        equal = bool(proof.outputs) and all(one.equal for one in proof.outputs)
        return _answer("agrees", "passed" if equal else "not known",
                       "all outputs are equal" if equal else "an output has no direction to compare")  # fmt: skip
    answer: Answer = "passed" if cosine >= proof.limit else "failed"
    return _answer(
        "agrees", answer, f"least cosine {cosine:.5f} over {proof.samples} samples, the limit is {proof.limit:g}"
    )


def judge_accuracy(evidence: ArtifactEvidence, limits: Limits) -> GateAnswer:
    found = [m for m in evidence.metrics if limits.metric in (None, m.metric)]
    if not found:
        return _answer("accuracy", "not known", _add_unusable("no evaluation of it was given", evidence))
    if (
        limits.max_drop is None
        and limits.min_metric is None
        and not any(m.failed_checks or m.unknown_checks or m.held_checks for m in found)
    ):
        return _answer("accuracy", "not known", "no limit was given")
    worst: Answer = "passed"
    reasons = []
    for metric in found:
        answer, reason = _judge_metric(metric, limits)
        reasons.append(reason)
        worst = max(worst, answer, key=("passed", "not known", "failed").index)
    return _answer("accuracy", worst, "; ".join(reasons))


def _add_unusable(why: str, evidence: ArtifactEvidence) -> str:
    return "; ".join((why, *evidence.unusable))


def _judge_metric(metric: MetricEvidence, limits: Limits) -> tuple[Answer, str]:
    name, value, drop = metric.metric, metric.value, metric.drop
    if metric.failed_checks:
        return "failed", f"{name}: {metric.failed_checks[0]}"
    if metric.unknown_checks:
        return "not known", f"{name}: {metric.unknown_checks[0]}"
    said = f"{name} {value:.4f}" if value is not None else name
    answers: list[tuple[Answer, str]] = []
    if limits.min_metric is not None:
        answer = _beside(metric.interval, limits.min_metric, above=True)
        answers.append((answer, f"{said}{_spread(metric.interval)}, the least is {limits.min_metric:g}"))
    if metric.unusable_drop is not None and (limits.max_drop is not None or metric.has_drop_check):
        answers.append(("not known", f"{said}; {metric.unusable_drop}"))
    elif limits.max_drop is not None and drop is None:
        answers.append(("not known", f"{said}; it was not compared with a reference"))
    elif limits.max_drop is not None:
        answer = _beside(metric.drop_interval, limits.max_drop, above=False)
        answers.append(
            (answer, f"{said}, drop {drop:.4f}{_spread(metric.drop_interval)}, the limit is {limits.max_drop:g}")
        )
    worst = max(answers, key=lambda one: ("passed", "not known", "failed").index(one[0]), default=("passed", said))
    if worst[0] != "passed":
        return worst
    return "passed", "; ".join((*(reason for _, reason in answers), *metric.held_checks)) or said


def _beside(interval: tuple[float, float] | None, limit: float, *, above: bool) -> Answer:
    """On which side of a limit a whole interval lies; one that holds the limit decides nothing, as in `winml eval`."""
    if interval is None:
        return "not known"
    low, high = interval
    if above:
        return "passed" if low >= limit else "failed" if high < limit else "not known"
    return "passed" if high <= limit else "failed" if low > limit else "not known"


def _spread(interval: tuple[float, float] | None) -> str:
    return " (no interval)" if interval is None else f" ({interval[0]:.4f} … {interval[1]:.4f})"


def judge_latency(evidence: ArtifactEvidence) -> GateAnswer:
    if evidence.target == "cpu":
        return _answer("latency", "passed", "it is the artifact for the CPU")
    if not evidence.against_cpu:
        why = "the times of a simulator mean nothing" if evidence.simulated else "it was not compared with the CPU"
        return _answer("latency", "not known", _add_unusable(why, evidence))
    answers = [_judge_verdict(verdict) for verdict in evidence.against_cpu]
    worst = max((answer for answer, _ in answers), key=("passed", "not known", "failed").index)
    return _answer("latency", worst, next(reason for answer, reason in answers if answer == worst))


def _judge_verdict(verdict: Verdict) -> tuple[Answer, str]:
    """A verdict that keeps it, or an interval that ends above the margin, says that it is not worse."""
    if verdict.kept or verdict.verdict == "IDENTICAL":
        gain = "" if verdict.gain_pct is None else f", {verdict.gain_pct:+.1f} %"
        return "passed", f"{verdict.verdict} against the CPU{gain}"
    interval = verdict.interval_pct
    if interval is None and verdict.verdict == "DISCARD":
        return "failed", f"DISCARD against the CPU: {verdict.reason}"
    if interval is None or verdict.verdict == "FAILED":
        return "not known", f"{verdict.verdict} against the CPU: {verdict.reason}"
    words = f"{verdict.verdict} against the CPU, gain {interval[0]:+.1f} … {interval[1]:+.1f} %"
    if interval[1] < -MARGIN_PCT or (interval[1] < 0 and verdict.verdict == "DISCARD" and interval[0] < -MARGIN_PCT):
        return "failed", words
    return ("passed", words) if interval[0] > -MARGIN_PCT else ("not known", words)


def judge_size(evidence: ArtifactEvidence, limits: Limits) -> GateAnswer:
    if limits.max_bytes is None:
        return _answer("size", "passed", f"{evidence.bytes} bytes, there is no limit")
    answer: Answer = "passed" if evidence.bytes <= limits.max_bytes else "failed"
    return _answer("size", answer, f"{evidence.bytes} bytes, the limit is {limits.max_bytes}")


def judge_artifact(
    evidence: ArtifactEvidence, limits: Limits, accepted: Collection[str] = ()
) -> tuple[GateAnswer, ...]:
    """All gates in their order; `accepted` are those that may be not known because the user says so."""
    answers = (
        judge_builds(evidence),
        judge_loads(evidence),
        judge_placed(evidence),
        judge_agrees(evidence),
        judge_accuracy(evidence, limits),
        judge_latency(evidence),
        judge_size(evidence, limits),
    )
    return tuple(_accept(answer, evidence, accepted) for answer in answers)


def _accept(answer: GateAnswer, evidence: ArtifactEvidence, accepted: Collection[str]) -> GateAnswer:
    if answer.answer != "not known" or answer.gate != "latency":
        return answer
    why = None
    if evidence.measured_on_device:
        why = "a latency of the device was imported"
    elif answer.gate in accepted:
        why = "accepted by the user"
    return GateAnswer(gate=answer.gate, answer=answer.answer, reason=answer.reason, accepted=why)


def find_stopped(answers: Sequence[GateAnswer]) -> tuple[GateAnswer, ...]:
    """The gates that keep an artifact out."""
    return tuple(answer for answer in answers if not answer.lets_through)

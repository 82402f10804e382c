"""Verdicts and reasons from the results of commands; the same for a producer and a reviewer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from winml.modelkit.building.export.result import ExportResult
from winml.modelkit.building.inspect import Inspection
from winml.modelkit.core.support import RungVerdict
from winml.modelkit.graph.description import GraphFacts
from winml.modelkit.support.review import derive
from winml.modelkit.support.review.evidence import verdict_of
from winml.modelkit.support.review.ladder import StepVerdict
from winml.modelkit.support.review.plan import Step
from winml.modelkit.support.review.results import (
    Failure,
    MetricEvidence,
    ParityEvidence,
    PerfEvidence,
    Results,
    error_of,
    find,
)


def judge_steps(
    steps: Sequence[Step], results: Results, exits: Mapping[str, int | None], precision: str
) -> list[StepVerdict]:
    """Every command of the ladder with its verdict."""
    return [
        StepVerdict(step, *_judge(step, results, exits[step.id], precision)) for step in steps if step.rung is not None
    ]


def _judge(step: Step, results: Results, exit_code: int | None, precision: str) -> tuple[RungVerdict, str]:
    result = results[step.id]
    error = error_of(result)
    verdict = verdict_of(exit_code, error.code)
    if verdict != "PASS" or result is None or isinstance(result, Failure):
        return verdict, error.message or "it gave no result"
    numbers = derive.numbers(result)
    match result:
        case Inspection():
            return _judge_structure(step, result, results)
        case ParityEvidence():
            return _judge_parity(numbers, precision)
        case ExportResult() if "difference" not in numbers:
            return "FAIL", "the export was not compared with PyTorch"
        case ExportResult():
            return "PASS", f"the export differs from PyTorch by {numbers['difference']:.2g} of its largest number"
        case MetricEvidence() if not numbers:
            return "CLI-BLOCKED", "the task has no metric"
        case MetricEvidence():
            return "PASS", f"{result.metric} {numbers['metric']:.4f} on {numbers['samples']:.0f} samples"
        case PerfEvidence():
            simulated = ", simulated" if result.simulated else ""
            return "PASS", f"{step.part} {numbers['latency_p50_ms']:.3f} ms on {step.target}{simulated}"
    return "PASS", "done"


def _judge_structure(step: Step, result: Inspection, results: Results) -> tuple[RungVerdict, str]:
    """Inputs and outputs are those of the default build; where that failed, there are some."""
    facts = result.description.facts
    default = find(results, step.id.replace("inspect-recipe", "inspect-default"), Inspection)
    if default is not None and _signature(default.description.facts) != _signature(facts):
        return "FAIL", f"{step.part} has other inputs or outputs than the default build"
    if not facts.inputs or not facts.outputs:
        return "FAIL", f"{step.part} has no inputs or no outputs"
    return "PASS", f"{step.part} has {facts.nodes} nodes, {len(facts.inputs)} inputs, {len(facts.outputs)} outputs"


def _signature(facts: GraphFacts) -> list[list[tuple[str, int | None]]]:
    """Names and ranks: a recipe may fix sizes and change number types, but not inputs and outputs."""
    return [
        [(value.name, None if value.shape is None else len(value.shape)) for value in side]
        for side in (facts.inputs, facts.outputs)
    ]


def _judge_parity(numbers: derive.Numbers, precision: str) -> tuple[RungVerdict, str]:
    if precision not in derive.COSINE:
        return "FAIL", f"precision `{precision}` is unknown"
    words = f"cosine {numbers['cosine']:.6f}"
    if "max_abs" in numbers:
        words += f", largest difference {numbers['max_abs']:.3g}"
    if derive.agrees(numbers, precision):
        return "PASS", words
    return "FAIL", f"{words}; {precision} needs a cosine of {derive.COSINE[precision]:g}"

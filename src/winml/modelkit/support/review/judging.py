"""From what commands came to, to verdicts with their reasons; a producer and a reviewer judge alike."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from winml.modelkit.core.support import RungVerdict
from winml.modelkit.support.review import derive
from winml.modelkit.support.review.evidence import error_of, verdict_of
from winml.modelkit.support.review.ladder import Judged
from winml.modelkit.support.review.plan import Step, Subject

Results = Mapping[str, dict[str, Any] | None]


def judged(
    subject: Subject, steps: Sequence[Step], results: Results, exits: Mapping[str, int | None], precision: str
) -> list[Judged]:
    """Every command of the ladder with its verdict."""
    found = []
    for step in steps:
        if step.rung is None:
            continue
        verdict, reason = _verdict(subject, step, results, exits[step.id], precision)
        found.append(Judged(step, verdict, reason))
    return found


def _verdict(
    subject: Subject, step: Step, results: Results, exit_code: int | None, precision: str
) -> tuple[RungVerdict, str]:
    result = results[step.id]
    verdict = verdict_of(exit_code, error_of(result).get("code"))
    if verdict != "PASS" or result is None:
        return verdict, str(error_of(result).get("message") or "it gave no result")
    if step.purpose == "inspect":
        return _structure(subject, step, result, results)
    if step.purpose == "parity":
        return _parity(result, precision)
    if step.purpose == "export":
        return _exported(result)
    if step.purpose == "metric" and not derive.numbers("metric", result):
        return "CLI-BLOCKED", "the task has no metric"
    return "PASS", _told(step, result)


def _exported(result: Mapping[str, Any]) -> tuple[RungVerdict, str]:
    apart = derive.numbers("export", result)["difference"]
    if not math.isfinite(apart):
        return "FAIL", "the export was not compared with PyTorch"
    return "PASS", f"the export differs from PyTorch by {apart:.2g} of its largest number"


def _told(step: Step, result: Mapping[str, Any]) -> str:
    numbers = derive.numbers(step.purpose, result)
    if step.purpose == "perf":
        simulated = ", simulated" if result["simulated"] else ""
        return f"{step.part} {numbers['latency_p50_ms']:.3f} ms on {step.target}{simulated}"
    if step.purpose == "metric":
        return f"{result['metric']} {numbers['metric']:.4f} on {numbers['samples']:.0f} samples"
    return "done"


def _structure(subject: Subject, step: Step, result: Mapping[str, Any], results: Results) -> tuple[RungVerdict, str]:
    """Inputs and outputs are those of the default build; where that failed, those that the model was built with."""
    facts = result["facts"]
    default = results.get(step.id.replace("inspect-recipe", "inspect-default"))
    if default and default.get("ok"):
        before, now = _signature(default["facts"]), _signature(facts)
        if before != now:
            return "FAIL", f"{step.part} has other inputs or outputs than the default build"
    if not facts["inputs"] or not facts["outputs"]:
        return "FAIL", f"{step.part} has no inputs or no outputs"
    return (
        "PASS",
        f"{step.part} has {facts['nodes']} nodes, {len(facts['inputs'])} inputs, {len(facts['outputs'])} outputs",
    )


def _signature(facts: Mapping[str, Any]) -> list[Any]:
    """Names and ranks: a recipe may fix sizes and change number types, not what goes in and out."""
    return [[(value["name"], len(value["shape"])) for value in facts[side]] for side in ("inputs", "outputs")]


def _parity(result: Mapping[str, Any], precision: str) -> tuple[RungVerdict, str]:
    numbers = derive.numbers("parity", result)
    words = f"cosine {numbers['cosine']:.6f}, largest difference {numbers['max_abs']:.3g}"
    if derive.agrees(numbers, precision):
        return "PASS", words
    return "FAIL", f"{words}; {precision} needs a cosine of {derive.COSINE[precision]:g}"

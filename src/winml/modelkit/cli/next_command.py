"""The command that makes sense after another, decided by its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from winml.modelkit.core.plain_text import shell_word

if TYPE_CHECKING:
    from winml.modelkit.building.analysis.result import AnalyzeResult
    from winml.modelkit.building.inspect import Inspection
    from winml.modelkit.building.result import BuildResult
    from winml.modelkit.evaluation.result import EvalResult
    from winml.modelkit.feed.feed_command import PullResult
    from winml.modelkit.measuring.compare_result import Candidate, CompareResult
    from winml.modelkit.measuring.perf import PerfResult


def model_option(model: str, *, sample: bool) -> str:
    """The model as it was given."""
    return "--sample" if sample else f"-m {shell_word(model)}"


def after_inspect(result: Inspection, named: str) -> str:
    """What the target makes of the operators; a compiled model can only be run."""
    return f"winml {'perf' if result.description.facts.compiled else 'analyze'} {named}"


def after_analyze(result: AnalyzeResult, named: str) -> str:
    """The first fix, or a look at what failed, or a measurement."""
    fixes = [hazard.fix for answer in result.targets for hazard in answer.hazards if hazard.fix]
    if fixes:
        return fixes[0]
    if all(answer.status == "unknown" for answer in result.targets):
        return "winml sys"
    if any(answer.error for answer in result.targets):
        return f"winml inspect {named}"
    here = [answer.target for answer in result.targets if answer.source.kind == "asked"]
    return f"winml perf {named}" + (f" --target {here[0]}" if len(result.targets) == 1 and here else "")


def after_perf(result: PerfResult, named: str, trace_path: str | None) -> str:
    """Where the time goes, then a search for something faster."""
    if trace_path is not None:
        return f"winml trace diff {shell_word(trace_path)} OTHER_op_trace.json"
    if result.op_trace is None:
        return f"winml perf {named} --target {result.target} --op-tracing basic"
    # Times of a simulator decide nothing, and a search starts from a model, not from its build.
    if result.target.simulated or result.built_for is not None:
        return f"winml analyze {named} --target {result.target}"
    return f"winml autoconfig {named} --target {result.target} -o DIR"


def after_build(result: BuildResult, trust: str) -> str:
    """Whether it is faster than its source, where both can be measured, or how fast it is."""
    measured = result.proof.status == "proven on target" and not result.target.simulated
    quantized = any(stage.stage == "quantize" for stage in result.stages)
    folder = shell_word(result.folder)
    if measured and quantized and result.model.endswith(".onnx"):
        return f"winml compare {shell_word(result.model)} {folder} --target {result.target}{trust}"
    return f"winml perf -m {folder} --target {result.target}{trust}"


def after_compare(result: CompareResult, models: Sequence[str], max_seconds: float) -> tuple[str | None, str | None]:
    """What to try, as a hint and as a command; None where a stored comparison names no models."""
    best = _best(result)
    target = best.arm.target
    if not models:
        return None, None
    base = shell_word(models[0])
    if len(models) == 1:
        return None, f"winml build -m {base} --target {target if best.verdict.kept else result.base.arm.target} -o DIR"
    candidate = shell_word(models[1 + result.candidates.index(best)])
    match best.verdict.verdict:
        case "KEEP" | "MARGINAL_KEEP":
            return None, f"winml eval -m {candidate} --reference {base} --data DATA --task TASK --max-drop 0.01"
        case "INCONCLUSIVE":
            pair = f"{base} {candidate} --target {target}"
            return None, f"winml compare {pair} --max-seconds {3 * max_seconds:g}"
        case "DISCARD":
            trace = f"winml perf -m {candidate} --target {target} --op-tracing basic"
            hint = f"`{trace}` shows where its time goes; `winml autoconfig` searches for what is faster on this target"
            return hint, f"winml autoconfig -m {base} --target {target} -o DIR"
        case "FAILED":
            return None, f"winml analyze -m {candidate} --target {target}"
        case _:  # the same graph
            return None, f"winml autoconfig -m {base} --target {target} -o DIR"


def _best(result: CompareResult) -> Candidate:
    ranked = {label: i for i, label in enumerate(result.ranking)}
    return min(result.candidates, key=lambda candidate: ranked.get(candidate.label, len(ranked)))


def after_eval(result: EvalResult, named: str, data: str | None) -> str:
    """Whether the model is also faster than its reference, or a search within this accuracy."""
    reference = result.reference
    if reference is not None and reference.model != result.model:
        return f"winml compare {shell_word(reference.model)} {shell_word(result.model)} --target {result.target}"
    if reference is not None or result.simulated or (data is None and named != "--sample"):
        return f"winml perf {named} --target {result.target}"
    labelled = "" if data is None else f" --data {shell_word(data)} --task {result.task}"
    return f"winml autoconfig {named} --target {result.target}{labelled} -o DIR"


def after_pull(result: PullResult) -> str | None:
    """A look at the first model that was received."""
    models = [v.folder for v in result.versions if any(name.endswith(".onnx") for name in v.files)]
    return f"winml inspect -m {shell_word(models[0])}" if models else None

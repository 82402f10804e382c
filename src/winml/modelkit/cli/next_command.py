"""The command that makes sense after another, decided by its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from winml.modelkit.core.build_folder import PACKAGE, kind_of_parts
from winml.modelkit.core.model_file import part_names
from winml.modelkit.core.plain_text import shell_word

if TYPE_CHECKING:
    from winml.modelkit.building.analysis.result import AnalyzeResult
    from winml.modelkit.building.inspect import Inspection
    from winml.modelkit.building.result import BuildResult
    from winml.modelkit.evaluation.result import EvalResult
    from winml.modelkit.feed.feed_command import PullResult
    from winml.modelkit.measuring.compare_result import Candidate, CompareResult
    from winml.modelkit.measuring.generation import GenerationPerf
    from winml.modelkit.measuring.perf import PerfResult


SIZES = {"dims": "--dim", "shapes": "--shape"}
"""Parameters that every command with sizes has -> their options."""
INPUTS = {"batch_size": "--batch-size", **SIZES, "int_ranges": "--int-range", "input_data": "--input-data"}
"""Parameters that every command with inputs has -> their options."""


def repeat_options(given: Mapping[str, Any], options: Mapping[str, str]) -> str:
    """The options as they were given, for a command that takes them too."""
    words = []
    for name, option in options.items():
        values = given.get(name)
        for value in values if isinstance(values, tuple) else [values]:
            words += [] if value is None else [f" {option} {shell_word(str(value))}"]
    return "".join(words)


def model_option(model: str, *, sample: bool) -> str:
    """The model as it was given."""
    return "--sample" if sample else f"-m {shell_word(model)}"


def short_path(path: str) -> str:
    """A path as it is written from here: relative when it lies below this folder."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return path


def after_inspect(result: Inspection, named: str) -> str:
    """What the target makes of the operators; a compiled model can only be run, and one that generates is measured."""
    if result.generation is not None:
        return f"winml perf {named}"
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


def after_perf(result: PerfResult, named: str, trace_path: str | None, given: Mapping[str, Any]) -> str:
    """Where the time goes, then a search for something faster."""
    if trace_path is not None:
        return f"winml trace diff {shell_word(trace_path)} OTHER_op_trace.json"
    where = f"{named} --target {result.target}"
    if result.op_trace is None:
        return f"winml perf {where}{repeat_options(given, INPUTS)} --op-tracing basic"
    # Times of a simulator decide nothing, and a search starts from a model, not from its build.
    if result.target.simulated or result.built_for is not None:
        return f"winml analyze {where}{repeat_options(given, SIZES)}"
    return f"winml autoconfig {where}{repeat_options(given, INPUTS)} -o DIR"


def after_generation(result: GenerationPerf, named: str, trace_path: str | None) -> str:
    """Where the time of a prompt and of a step goes, then what another folder gains."""
    if trace_path is not None:
        return f"winml trace diff {shell_word(trace_path)} OTHER_op_trace.json"
    parts = kind_of_parts(part_names(Path(result.model)))
    if parts == "pair":  # a trace is of one part
        part = shell_word(str(Path(result.model) / "decode"))
        return f"winml perf -m {part} --target {result.target} --op-tracing basic"
    if result.op_traces is None:
        return f"winml perf {named} --target {result.target} --op-tracing basic"
    if parts is not None:
        return f"winml eval {named} --target {result.target} --data TEXTS.jsonl"
    return f"winml compare {shell_word(result.model)} OTHER --metric tokens-per-second"


def after_build(result: BuildResult, trust: str) -> str:
    """Whether it is faster than its source, where both can be measured, or how fast it is."""
    measured = result.proof.status == "proven on target" and not result.target.simulated
    quantized = any(stage.stage == "quantize" for stage in result.stages)
    folder = shell_word(short_path(result.folder))
    if measured and quantized and result.model.endswith(".onnx"):
        return f"winml compare {shell_word(short_path(result.model))} {folder} --target {result.target}{trust}"
    return f"winml perf -m {folder} --target {result.target}{trust}"


def after_compare(
    result: CompareResult, models: Sequence[str], given: Mapping[str, Any]
) -> tuple[str | None, str | None]:
    """What to try, as a hint and as a command; None where a stored comparison names no models."""
    best = _best(result)
    target = best.arm.target
    if not models:
        return None, None
    base = shell_word(models[0])
    if len(models) == 1 and best.arm.generation is not None:
        runtime = (best.arm if best.verdict.kept else result.base.arm).generation
        return None, f"winml perf -m {base} --target {target}" + (f" --runtime {runtime.runtime}" if runtime else "")
    if len(models) == 1:
        return None, f"winml build -m {base} --target {target if best.verdict.kept else result.base.arm.target} -o DIR"
    candidate = shell_word(models[1 + result.candidates.index(best)])
    if result.base.arm.generation is not None:
        return None, f"winml perf -m {candidate} --target {target}"
    sizes, inputs = repeat_options(given, SIZES), repeat_options(given, INPUTS)
    search = f"winml autoconfig -m {base} --target {target}{inputs} -o DIR"
    match best.verdict.verdict:
        case "KEEP" | "MARGINAL_KEEP":
            return None, f"winml eval -m {candidate} --reference {base} --data DATA --task TASK --max-drop 0.01{sizes}"
        case "INCONCLUSIVE":
            more = f"--max-seconds {3 * given['max_seconds']:g}"
            return None, f"winml compare {base} {candidate} --target {target}{inputs} {more}"
        case "DISCARD":
            trace = f"winml perf -m {candidate} --target {target}{inputs} --op-tracing basic"
            hint = f"`{trace}` shows where its time goes; `winml autoconfig` searches for what is faster on this target"
            return hint, search
        case "FAILED":
            return None, f"winml analyze -m {candidate} --target {target}{sizes}"
        case _:  # the same graph
            return None, search


def _best(result: CompareResult) -> Candidate:
    ranked = {label: i for i, label in enumerate(result.ranking)}
    return min(result.candidates, key=lambda candidate: ranked.get(candidate.label, len(ranked)))


def after_eval(result: EvalResult, named: str, data: str | None) -> str:
    """Whether the model is also faster than its reference, or a search within this accuracy."""
    reference = result.reference
    if reference is not None and reference.model != result.model and not result.simulated:
        return f"winml compare {shell_word(reference.model)} {shell_word(result.model)} --target {result.target}"
    # A search takes neither a custom metric nor options of a task, nor a folder that is built already.
    more = result.custom_metric or result.task_options or result.state or result.generation
    if reference is not None or result.simulated or more or (data is None and named != "--sample"):
        return f"winml perf {named} --target {result.target}"
    labelled = "" if data is None else f" --data {shell_word(data)} --task {result.task}"
    return f"winml autoconfig {named} --target {result.target}{labelled} -o DIR"


def after_pull(result: PullResult) -> str | None:
    """A look at the first model that was received; the check of the first package."""
    packages = [v.folder for v in result.versions if PACKAGE in v.files]
    if packages:
        return f"winml package verify {shell_word(packages[0])}"
    models = [v.folder for v in result.versions if any(name.endswith(".onnx") for name in v.files)]
    return f"winml inspect -m {shell_word(models[0])}" if models else None

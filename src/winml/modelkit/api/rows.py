"""Rows of results, one mapping of plain values each; classes of results are known as types only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from winml.modelkit.core.measurement import NS_PER_MS
from winml.modelkit.core.values import to_json

if TYPE_CHECKING:
    from winml.modelkit.accuracy.mend_result import MendResult
    from winml.modelkit.accuracy.result import DebugResult
    from winml.modelkit.accuracy.sensitivity_result import SensitivityResult
    from winml.modelkit.build_matrix.command import PlanResult, RunState
    from winml.modelkit.building.analysis.result import AnalyzeResult
    from winml.modelkit.building.compile.result import CompileResult
    from winml.modelkit.building.inspect import Inspection
    from winml.modelkit.building.optimize.result import OptimizeResult
    from winml.modelkit.building.result import BuildResult
    from winml.modelkit.core.latency import Interval
    from winml.modelkit.core.result import CommandResult
    from winml.modelkit.core.verdict import Verdict
    from winml.modelkit.ep.sys_command import SysResult
    from winml.modelkit.evaluation.result import EvalResult
    from winml.modelkit.measuring.compare_result import CompareResult
    from winml.modelkit.measuring.generation import GenerationPerf
    from winml.modelkit.measuring.perf import PerfResult
    from winml.modelkit.measuring.perf_parts import PerfParts
    from winml.modelkit.measuring.trace import TraceDiffResult
    from winml.modelkit.search.result import SearchResult, SweepResult
    from winml.modelkit.serving.prediction import PredictionResult

Row = dict[str, Any]


def rows_of(result: CommandResult) -> list[Row] | None:
    """The rows of a result; None for one that has none."""
    make = _ROWS.get(type(result).__name__)
    return None if make is None else list(make(result))


def _ends(interval: Interval | tuple[float, float] | None) -> tuple[float | None, float | None]:
    if interval is None:
        return None, None
    return interval if isinstance(interval, tuple) else (interval.low, interval.high)


def _verdict(verdict: Verdict | None) -> Row:
    low, high = _ends(None if verdict is None else verdict.interval_pct)
    return {
        "verdict": None if verdict is None else verdict.verdict,
        "gain_pct": None if verdict is None else verdict.gain_pct,
        "gain_low_pct": low,
        "gain_high_pct": high,
    }


def _perf(result: PerfResult) -> Iterable[Row]:
    """One row for each timed run."""
    for taken in result.measurement.rounds:
        for run, (wall_ns, cpu_ns) in enumerate(zip(taken.wall_ns, taken.cpu_ns, strict=True)):
            yield {
                "session": taken.round,
                "run": run,
                "wall_ms": wall_ns / NS_PER_MS,
                "cpu_ms": cpu_ns / NS_PER_MS,
            }


def _perf_parts(result: PerfParts) -> Iterable[Row]:
    return ({"part": part.part, **row} for part in result.parts for row in _perf(part.result))


def _generation(result: GenerationPerf) -> Iterable[Row]:
    """One row for each token of the timed texts."""
    for number, session in enumerate(result.sessions):
        for prompt in session.prompts:
            for text, times in enumerate(prompt.texts):
                for token, ns in enumerate((times.first_token_ns, *times.step_ns)):
                    yield {
                        "session": number,
                        "prompt_tokens": prompt.prompt_tokens,
                        "text": text,
                        "token": token,
                        "ms": ns / NS_PER_MS,
                    }


def _compare(result: CompareResult) -> Iterable[Row]:
    """One row for each candidate."""
    for one in result.candidates:
        times = one.times
        yield {
            "candidate": one.label,
            "target": str(one.arm.target),
            **_verdict(one.verdict),
            "speedup": one.speedup,
            "base_ms": None if times is None else times.base_ms.median,
            "candidate_ms": None if times is None else times.candidate_ms.median,
            "clock": None if times is None else times.metric,
            "rounds": one.verdict.rounds,
            "reason": one.verdict.reason,
        }


def _evaluate(result: EvalResult) -> Iterable[Row]:
    """One row for each metric."""
    for name, found in result.metrics.items():
        low, high = _ends(found.interval)
        reference = None if result.reference is None else result.reference.metrics.get(name)
        drop = (result.drop or {}).get(name)
        drop_low, drop_high = _ends(None if drop is None else drop.interval)
        yield {
            "metric": name,
            "value": found.value,
            "low": low,
            "high": high,
            "samples": found.n,
            "reference": None if reference is None else reference.value,
            "drop": None if drop is None else drop.value,
            "drop_low": drop_low,
            "drop_high": drop_high,
        }
    for name, found in (result.comparison or {}).items():
        low, high = _ends(found.interval)
        yield {"metric": name, "value": found.value, "low": low, "high": high, "samples": found.n}


def _debug(result: DebugResult) -> Iterable[Row]:
    """One row for each layer, the one that loses most first."""
    for layer in result.layers:
        yield {
            "layer": layer.label,
            "operators": layer.kind,
            "state": layer.state,
            "outputs_db": None if layer.effect is None else layer.effect.sqnr_db,
            "own_db": None if layer.own is None else layer.own.sqnr_db,
            "own_db_on_cpu": None if layer.on_cpu is None else layer.on_cpu.sqnr_db,
            "accumulated_db": None if layer.accumulated is None else layer.accumulated.sqnr_db,
            "clipped": layer.clipped,
            "ep": layer.ep,
        }


def _sensitivity(result: SensitivityResult) -> Iterable[Row]:
    """One row for each group, the one that does most first."""
    for group in result.groups:
        worst = group.effect.worst
        yield {
            "group": group.label,
            "operators": group.kind,
            "nodes": len(group.nodes),
            "state": group.effect.state,
            "outputs_db": None if worst is None else worst.sqnr_db,
            "cosine": None if worst is None else worst.cosine,
            "metric": group.effect.metric,
            "drop": group.effect.drop,
            "seconds": group.effect.seconds,
        }


def _mend(result: MendResult) -> Iterable[Row]:
    """One row for each attempt."""
    for attempt in result.attempts:
        yield {
            "layers_in_float": attempt.kept,
            "layers_with_16_bits": attempt.raised,
            "answer": attempt.answer,
            "metric": attempt.metric,
            "value": attempt.value,
            "drop": attempt.drop,
            "agreement": attempt.agreement,
            "bytes": attempt.bytes,
            "seconds": attempt.seconds,
        }


def _search(result: SearchResult) -> Iterable[Row]:
    """One row for each trial."""
    for trial in result.trials:
        times = trial.times
        yield {
            "trial": trial.id,
            "config": trial.label,
            "target": trial.target,
            "outcome": trial.outcome,
            **_verdict(trial.deciding_verdict),
            "confirmed": None if trial.confirmation is None else trial.confirmation.word == "KEEP_CONFIRMED",
            "ms": None if times is None else times.candidate_ms.median,
            "base_ms": None if times is None else times.base_ms.median,
            "rounds": trial.rounds,
            "accuracy": None if trial.accuracy is None else trial.accuracy.value,
            "bytes": None if trial.artifact is None else trial.artifact.bytes,
            "seconds": trial.seconds,
            "reason": trial.reason,
        }


def _sweep(result: SweepResult) -> Iterable[Row]:
    """One row for each model."""
    for row in result.models:
        best = row.champion
        yield {
            "model": row.model,
            "folder": row.folder,
            "champion": None if best is None else best.trial.label,
            "gain_pct": None if best is None else best.gain_pct,
            "trials": row.trials,
            "error": None if row.error is None else row.error.message,
        }


def _cells(result: RunState | PlanResult) -> Iterable[Row]:
    """One row for each cell."""
    return (to_json(cell) for cell in result.cells)


def _analyze(result: AnalyzeResult) -> Iterable[Row]:
    """One row for each operator on each target."""
    return (
        {
            "target": str(answer.target),
            "op": one.op,
            "status": one.status,
            "nodes": one.nodes,
            "on_target": one.taken,
            "reason": one.reason,
        }
        for answer in result.targets
        for one in answer.ops
    )


def _trace_diff(result: TraceDiffResult) -> Iterable[Row]:
    """One row for each change."""
    for change in result.diff.changes:
        moved = change.moved
        yield {
            "before": " + ".join(operator.op_path for operator in change.before),
            "after": " + ".join(operator.op_path for operator in change.after),
            "kind": change.kind,
            "direction": change.direction,
            "moved": None if moved is None else f"{moved.source} -> {moved.target}",
            "unit": change.unit,
            "before_value": change.before_value,
            "after_value": change.after_value,
            "delta": change.delta,
        }


def _build(result: BuildResult) -> Iterable[Row]:
    """One row for each stage."""
    return (
        {
            "stage": stage.stage,
            "cache": stage.cache,
            "seconds": stage.seconds,
            "file": stage.file,
            "digest": stage.digest,
            "reason": stage.reason,
        }
        for stage in result.stages
    )


def _optimize(result: OptimizeResult) -> Iterable[Row]:
    """One row for each pass."""
    return (to_json(one) for one in result.report.passes)


def _compile(result: CompileResult) -> Iterable[Row]:
    """One row for each model."""
    return (
        {
            "model": row.model,
            "status": row.status,
            "output": row.output if row.status == "compiled" else None,
            "cpu_nodes": row.cpu_nodes if row.status == "compiled" else None,
            "validation": None if row.validation is None else row.validation.status,
            "error": None if row.error is None else row.error.message,
        }
        for row in result.models
    )


def _inspect(result: Inspection) -> Iterable[Row]:
    """One row for each operator."""
    return ({"op": op, "nodes": count} for op, count in result.description.facts.ops.items())


def _sys(result: SysResult) -> Iterable[Row]:
    """One row for each target of the table."""
    for ep in result.eps:
        states = [state for found in ep.installations for state in found.targets]
        yield from ({"ep": ep.ep, **to_json(state)} for state in (*states, *ep.missing))


def _prediction(result: PredictionResult) -> Iterable[Row]:
    """One row for each label, entity, box or area; the answer itself where it has none of these."""
    answer = to_json(result.answer)
    for name in ("labels", "entities", "boxes", "areas"):
        if name in answer:
            return answer[name]  # type: ignore[no-any-return]  # a list of objects
    return [answer]


_ROWS: dict[str, Callable[[Any], Iterable[Row]]] = {
    "AnalyzeResult": _analyze,
    "BuildResult": _build,
    "CompareResult": _compare,
    "CompileResult": _compile,
    "DebugResult": _debug,
    "SensitivityResult": _sensitivity,
    "EvalResult": _evaluate,
    "MendResult": _mend,
    "Inspection": _inspect,
    "OptimizeResult": _optimize,
    "GenerationPerf": _generation,
    "PerfParts": _perf_parts,
    "PerfResult": _perf,
    "PlanResult": _cells,
    "PredictionResult": _prediction,
    "RunResult": _cells,
    "SearchResult": _search,
    "StatusResult": _cells,
    "SweepResult": _sweep,
    "SysResult": _sys,
    "TraceDiffResult": _trace_diff,
}
"""Results that have rows, by the names of their classes."""

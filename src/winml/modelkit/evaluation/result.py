"""The result of an evaluation, from the scores of its models: metrics, drop, agreement, checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.environment import Environment
from winml.modelkit.core.errors import CheckFailed, RunFailedError
from winml.modelkit.core.metric_source import MetricSource
from winml.modelkit.core.placement import Placement
from winml.modelkit.core.result import CommandResult
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import key
from winml.modelkit.evaluation import checks
from winml.modelkit.evaluation.checks import Check
from winml.modelkit.evaluation.corpus import Records
from winml.modelkit.evaluation.distance_report import DistanceReport, KeptArray, OutputDistance
from winml.modelkit.evaluation.metrics import Estimate, MetricEstimate, estimate, estimate_drop, share
from winml.modelkit.evaluation.report import DataFacts, GenerationFacts, RunReport
from winml.modelkit.session.notes import dims_notes, fallback_notes, saturation_notes, simulator_notes


@dataclass(frozen=True)
class Judging:
    """The limits for the result."""

    metric: str | None = None
    """The metric the limits are for; None means the task's first."""
    min_metric: float | None = None
    max_drop: float | None = None
    by: checks.By = "interval"
    min_agreement: float | None = None
    """The minimum median cosine of an output to the reference's."""
    max_metric: float | None = None
    """The maximum of a metric that is better when it is lower."""


@dataclass(frozen=True)
class Side:
    """A model on its target, and the report of its run."""

    model: str
    target: Target
    report: RunReport
    saved: Path | None
    """Its outputs, when there is something to compare them with."""
    build: str | None = None
    """The identity of its build."""


@dataclass(frozen=True, kw_only=True)
class EvaluatedModel:
    """A model on its target, and how right it is."""

    model: str
    target: str
    simulated: bool
    metrics: Mapping[str, MetricEstimate]
    placement: Placement
    provider_options: Mapping[str, str]
    fixed_dims: Mapping[str, int]
    environment: Environment
    generation: GenerationFacts | None = key(omit=True)
    """How it was run, of a model that generates text."""
    build: str | None = key(omit=True)
    """The identity of the build that it is, where it is one."""


@dataclass(frozen=True, kw_only=True)
class KeptFile:
    """Outputs that were kept; what is not whole are values chosen by a seed."""

    file: str
    digest: str
    arrays: Mapping[str, KeptArray]


@dataclass(frozen=True, kw_only=True)
class Scores:
    series: Mapping[str, str | tuple[Any, ...]]
    """Scores per sample in the order of the data; zeros and ones are one text; for metrics of classes a record of each
    class. What a custom metric notes about samples for a number of all of them is not kept."""
    predictions: tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class Samples:
    n: int
    candidate: Scores
    reference: Scores | None


@dataclass(frozen=True, kw_only=True, repr=False)
class EvalResult(CommandResult, EvaluatedModel):
    """The result of `winml eval`."""

    schema: Literal["winml/eval/1"] = "winml/eval/1"
    ok: Literal[True] = True
    task: str
    metric: str | None
    """The metric that limits are for."""
    custom_metric: MetricSource | None = key(omit=True)
    """The user's own function that made the metrics."""
    task_options: Mapping[str, str] | None = key(omit=True)
    state: Mapping[str, str] | None = key(omit=True)
    """Input -> output, of a model that was run over sequences."""
    reference: EvaluatedModel | None
    drop: Mapping[str, MetricEstimate] | None
    """By how much the model is worse than the reference: for wer its value minus the reference's, else the other way
    round."""
    agreement: Estimate | None
    """The share of samples for which both predict the same."""
    comparison: Mapping[str, MetricEstimate] | None = key(omit=True)
    """Numbers about both models, of those that generate text: agreement of their tokens, divergence of the next one."""
    distance: tuple[OutputDistance, ...] | None
    outputs: KeptFile | None
    data: DataFacts
    samples: Samples
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    checks: tuple[Check, ...]

    def find_metric(self, name: str) -> MetricEstimate | None:
        """A metric of the model, or a number about it and its reference."""
        return self.metrics.get(name) or (self.comparison or {}).get(name)


def _scores(report: RunReport) -> Scores:
    return Scores(
        series={
            # Zeros and ones as one text, anything else as it is.
            name: "".join("1" if v else "0" for v in values) if all(v in (0.0, 1.0) for v in values) else values
            for name, values in report.series.items()
            if not isinstance(values, Records)
        },
        predictions=report.predictions,
    )


def _take(report: RunReport, count: int) -> dict[str, tuple[Any, ...]]:
    return {
        name: values.first(count) if isinstance(values, Records) else values[:count]
        for name, values in report.series.items()
    }


def _estimate_agreement(candidate: RunReport, reference: RunReport, count: int) -> Estimate | None:
    """The share of samples for which both predict the same; a prediction that is missing agrees with nothing."""
    if not candidate.agreement:
        return None
    pairs = zip(candidate.predictions[:count], reference.predictions[:count], strict=True)
    return share([float(mine is not None and mine == theirs) for mine, theirs in pairs])


def _describe(side: Side) -> EvaluatedModel:
    report = side.report
    return EvaluatedModel(
        model=side.model,
        target=str(side.target),
        simulated=side.target.simulated,
        metrics={m.name: estimate(m, report.series) for m in report.metrics},
        placement=report.placement,
        provider_options=report.provider_options,
        fixed_dims=report.fixed_dims,
        environment=report.environment,
        generation=report.generation,
        build=side.build,
    )


def _warnings(side: Side, prefix: str) -> list[str]:
    report = side.report
    found = [
        *fallback_notes(side.target, report.placement),
        *saturation_notes(report.weights_at_risk),
        *dims_notes(side.target, report.fixed_dims),
    ]
    if side.target.simulated:
        found += simulator_notes(report.added_options)
    silent = 0 if report.custom or not report.metrics else sum(p is None for p in report.predictions)
    if silent:
        found.append(f"{silent} of {len(report.predictions)} samples gave NaN or nothing usable and count as wrong")
    return [f"{prefix}{text}" for text in found]


def _notes(candidate: Side, reference: Side | None) -> list[str]:
    """Notes of both models, each once."""
    notes = [*candidate.report.notes, *(reference.report.notes if reference else ())]
    if reference is not None and reference.report.data.digest != candidate.report.data.digest:
        notes.append("the two models read the data differently: their inputs have other names or files")
    return list(dict.fromkeys(notes))


def least_cosine(distance: Sequence[OutputDistance] | None) -> float | None:
    """The median cosine of the output that is furthest from the reference's; None when one is not known."""
    medians = [None if output.cosine is None else output.cosine.median for output in distance or ()]
    known = [median for median in medians if median is not None]
    return min(known) if known and len(known) == len(medians) else None


def _make_checks(
    judging: Judging,
    metric: str | None,
    metrics: Mapping[str, MetricEstimate],
    drops: Mapping[str, MetricEstimate] | None,
    distance: Sequence[OutputDistance] | None,
) -> tuple[Check, ...]:
    made = []
    if judging.min_agreement is not None:
        cosine = Estimate(value=least_cosine(distance), interval=None, n=0, method="", reason=None)
        answer = checks.judge_metric(cosine, judging.min_agreement, "value")
        made.append(
            Check(
                check="min-agreement",
                metric="cosine",
                limit=judging.min_agreement,
                by="value",
                answer=answer,
                needed=None,
            )
        )
    if metric is not None and judging.min_metric is not None:
        made.append(_check("min-metric", judging.min_metric, metrics.get(metric), metric, judging))
    if metric is not None and judging.max_metric is not None:
        made.append(_check("max-metric", judging.max_metric, metrics.get(metric), metric, judging))
    if metric is not None and judging.max_drop is not None:
        made.append(_check("max-drop", judging.max_drop, (drops or {}).get(metric), metric, judging))
    return tuple(made)


def _check(
    name: Literal["min-metric", "max-metric", "max-drop"],
    limit: float,
    found: Estimate | None,
    metric: str,
    judging: Judging,
) -> Check:
    judge = checks.judge_metric if name == "min-metric" else checks.judge_drop
    answer: checks.Answer = "inconclusive" if found is None else judge(found, limit, judging.by)
    needed = checks.samples_needed(found, limit) if answer == "inconclusive" else None
    return Check(check=name, metric=metric, limit=limit, by=judging.by, answer=answer, needed=needed)


def make_result(
    judging: Judging,
    candidate: Side,
    reference: Side | None,
    distance: DistanceReport | None,
    warnings: Sequence[str],
    *,
    kept_in: str | None = None,
    custom_metric: MetricSource | None = None,
    task_options: Mapping[str, str] | None = None,
    comparison: Mapping[str, MetricEstimate] | None = None,
) -> EvalResult:
    """Metrics, drops, agreement and checks; `kept_in` is the file with outputs that were kept."""
    report = candidate.report
    metric = judging.metric or (report.metrics[0].name if report.metrics else None)
    drops: dict[str, MetricEstimate] | None = None
    agreement = None
    if reference is not None:
        count = min(len(report.predictions), len(reference.report.predictions))
        mine, theirs = _take(report, count), _take(reference.report, count)
        drops = {m.name: estimate_drop(m, theirs, mine) for m in report.metrics} if count else {}
        agreement = _estimate_agreement(report, reference.report, count) if count else None
    described = _describe(candidate)
    kept = None if distance is None else distance.kept
    outputs = None if distance is None else distance.outputs
    return EvalResult(
        **vars(described),
        task=report.task,
        metric=metric,
        custom_metric=custom_metric,
        task_options=dict(task_options) if task_options else None,
        state=dict(report.state) or None,
        reference=None if reference is None else _describe(reference),
        drop=drops,
        agreement=agreement,
        comparison=comparison,
        distance=outputs,
        outputs=None if kept is None else KeptFile(file=str(kept_in), digest=kept.digest, arrays=kept.arrays),
        data=report.data,
        samples=Samples(
            n=len(report.predictions),
            candidate=_scores(report),
            reference=None if reference is None else _scores(reference.report),
        ),
        notes=(*_notes(candidate, reference), *(distance.notes if distance else ())),
        warnings=(
            *warnings,
            *_warnings(candidate, ""),
            *(_warnings(reference, "reference: ") if reference else ()),
        ),
        checks=_make_checks(judging, metric, {**described.metrics, **(comparison or {})}, drops, outputs),
    )


def _numbers(found: Estimate | None) -> str:
    if found is None or found.value is None:
        return "unknown"
    interval = found.interval
    if interval is None:
        return f"{found.value:.4f} (no interval: {found.reason})"
    return f"{found.value:.4f} ({interval.low:.4f} … {interval.high:.4f}, {100 * interval.level:.0f} %)"


def sentence(check: Check, result: EvalResult) -> str:
    """What a check found and its limit."""
    name, limit = check.metric, f"{check.limit:g}"
    if check.check == "min-agreement":
        cosine = least_cosine(result.distance)
        found = "unknown" if cosine is None else f"{cosine:.4f}"
        return f"agreement with the reference (median cosine) is {found}, the minimum is {limit}"
    if check.check == "max-drop":
        return f"{name} dropped by {_numbers((result.drop or {}).get(name))}, the limit is {limit}"
    least = "maximum" if check.check == "max-metric" else "minimum"
    return f"{name} is {_numbers(result.find_metric(name))}, the {least} is {limit}"


def raise_for_checks(result: EvalResult) -> None:
    """The answers of the checks as errors, with the whole result."""
    failed = [c for c in result.checks if c.answer == "exceeded"]
    if failed:
        raise CheckFailed("; ".join(sentence(c, result) for c in failed), result=result)
    unknown = [c for c in result.checks if c.answer == "inconclusive"]
    if unknown:
        raise RunFailedError(
            f"cannot tell: {'; '.join(sentence(c, result) for c in unknown)}",
            hint=explain_too_few(unknown, result.samples.n),
            result=result,
        )


def explain_too_few(unknown: Sequence[Check], count: int) -> str:
    """What would decide checks that are inconclusive."""
    alone = "`--judge value` compares only the value"
    needed = [c.needed for c in unknown if c.needed is not None]
    if len(needed) < len(unknown):
        return f"more samples may decide it; {alone}"
    return f"{count} samples are too few: about {max(needed)} samples like these would decide; {alone}"

"""What an evaluation comes to, from the scores of its models: metrics, drop, agreement, checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from winml.modelkit.core.errors import CheckFailed, RunFailedError
from winml.modelkit.core.placement import Placement
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import read
from winml.modelkit.evaluation import checks
from winml.modelkit.evaluation.metrics import Metric, drop, metric_from_json, share, summary
from winml.modelkit.session.notes import fixed_dims, left_on_cpu, saturated_weights, simulator_options

SCHEMA = "winml/eval/1"


@dataclass(frozen=True)
class Judging:
    """What the result is held against."""

    metric: str | None = None
    """The metric the limits are for; None means the task's first."""
    min_metric: float | None = None
    max_drop: float | None = None
    by: checks.By = "interval"
    min_agreement: float | None = None
    """The least that the median cosine of an output to the reference's may be."""

    @property
    def limits(self) -> bool:
        """Whether a metric is held against something."""
        return self.min_metric is not None or self.max_drop is not None


@dataclass(frozen=True)
class Side:
    """A model on its target, and what came of running it."""

    model: str
    target: Target
    report: dict[str, Any]
    saved: Path | None
    """Its outputs, when there is something to hold them against."""


def _metrics(report: dict[str, Any]) -> list[Metric]:
    return [metric_from_json(m) for m in report["metrics"]]


def _compact(values: Sequence[Any]) -> str | list[Any]:
    """Zeros and ones as one text, anything else as it is."""
    return "".join("1" if v else "0" for v in values) if all(v in (0.0, 1.0) for v in values) else list(values)


def _samples(report: dict[str, Any]) -> dict[str, Any]:
    return {
        "series": {name: _compact(values) for name, values in report["series"].items()},
        "predictions": report["predictions"],
    }


def _first(report: dict[str, Any], count: int) -> dict[str, list[Any]]:
    return {name: values[:count] for name, values in report["series"].items()}


def _agreement(candidate: dict[str, Any], reference: dict[str, Any], count: int) -> dict[str, Any] | None:
    """The share of samples that both say the same about; a prediction that is missing agrees with nothing."""
    if not candidate["agreement"]:
        return None
    pairs = zip(candidate["predictions"][:count], reference["predictions"][:count], strict=True)
    return share([float(mine is not None and mine == theirs) for mine, theirs in pairs])


def _side(side: Side) -> dict[str, Any]:
    report = side.report
    return {
        "model": side.model,
        **side.target.to_json(),
        "metrics": {m.name: {"kind": m.kind, **summary(m, report["series"])} for m in _metrics(report)},
        "placement": report["placement"],
        "provider_options": report["provider_options"],
        "fixed_dims": report["fixed_dims"],
        "environment": report["environment"],
    }


def _warnings(side: Side, word: str) -> list[str]:
    report = side.report
    found = [
        *left_on_cpu(side.target, read(Placement, report["placement"])),
        *saturated_weights(report["weights_at_risk"]),
        *fixed_dims(side.target, report["fixed_dims"]),
    ]
    if side.target.simulated:
        found += simulator_options(report["added_options"])
    silent = sum(p is None for p in report["predictions"]) if report["metrics"] else 0
    if silent:
        found.append(f"{silent} of {len(report['predictions'])} samples gave NaN or nothing usable and count as wrong")
    return [f"{word}{text}" for text in found]


def _notes(candidate: Side, reference: Side | None) -> list[str]:
    """Notes of both models, each once."""
    notes = [*candidate.report["notes"], *(reference.report["notes"] if reference else [])]
    if reference is not None and reference.report["data"]["digest"] != candidate.report["data"]["digest"]:
        notes.append("the two models read the data differently: their inputs have other names or files")
    return list(dict.fromkeys(notes))


def _check(word: str, limit: float, found: dict[str, Any] | None, metric: str, judging: Judging) -> dict[str, Any]:
    judge = checks.max_drop if word == "max-drop" else checks.min_metric
    answer = "inconclusive" if found is None else judge(found, limit, judging.by)
    needed = checks.samples_needed(found, limit) if answer == "inconclusive" else None
    return {"check": word, "metric": metric, "limit": limit, "by": judging.by, "answer": answer, "needed": needed}


def _cosine(result: dict[str, Any]) -> float | None:
    """The median cosine of the output that is furthest from the reference's; None when one is not known."""
    medians = [output["cosine"] and output["cosine"]["median"] for output in result["distance"] or ()]
    return None if not medians or None in medians else min(medians)


def _agreement_check(limit: float, result: dict[str, Any]) -> dict[str, Any]:
    found = _cosine(result)
    answer = checks.min_metric({"value": found, "interval": None}, limit, "value")
    return {
        "check": "min-agreement", "metric": "cosine", "limit": limit, "by": "value", "answer": answer, "needed": None
    }  # fmt: skip


def _checks(judging: Judging, metric: str | None, result: dict[str, Any]) -> list[dict[str, Any]]:
    made = []
    if judging.min_agreement is not None:
        made.append(_agreement_check(judging.min_agreement, result))
    if metric is None:
        return made
    if judging.min_metric is not None:
        made.append(_check("min-metric", judging.min_metric, result["metrics"].get(metric), metric, judging))
    if judging.max_drop is not None:
        found = (result["drop"] or {}).get(metric)
        made.append(_check("max-drop", judging.max_drop, found, metric, judging))
    return made


def result_of(
    judging: Judging,
    candidate: Side,
    reference: Side | None,
    distance: dict[str, Any] | None,
    warnings: Sequence[str],
) -> dict[str, Any]:
    """The JSON object of the contract."""
    report = candidate.report
    metrics = _metrics(report)
    metric = judging.metric or (metrics[0].name if metrics else None)
    drops, agreement = None, None
    if reference is not None:
        count = min(len(report["predictions"]), len(reference.report["predictions"]))
        mine, theirs = _first(report, count), _first(reference.report, count)
        drops = {m.name: {"kind": m.kind, **drop(m, theirs, mine)} for m in metrics} if count else {}
        agreement = _agreement(report, reference.report, count) if count else None
    result = {
        "schema": SCHEMA,
        "ok": True,
        "task": report["task"],
        "metric": metric,
        **_side(candidate),
        "reference": None if reference is None else _side(reference),
        "drop": drops,
        "agreement": agreement,
        "distance": None if distance is None else distance["outputs"],
        "outputs": None if distance is None else distance["kept"],
        "data": report["data"],
        "samples": {
            "n": len(report["predictions"]),
            "candidate": _samples(report),
            "reference": None if reference is None else _samples(reference.report),
        },
        "notes": [*_notes(candidate, reference), *(distance["notes"] if distance else [])],
        "warnings": [*warnings, *_warnings(candidate, ""), *(_warnings(reference, "reference: ") if reference else [])],
    }
    return {**result, "checks": _checks(judging, metric, result)}


def _numbers(found: dict[str, Any] | None) -> str:
    if found is None or found["value"] is None:
        return "unknown"
    interval = found["interval"]
    if interval is None:
        return f"{found['value']:.4f} (no interval: {found['reason']})"
    return f"{found['value']:.4f} ({interval['low']:.4f} … {interval['high']:.4f}, {100 * interval['level']:.0f} %)"


def sentence(check: dict[str, Any], result: dict[str, Any]) -> str:
    """What a check found and the limit it was held against."""
    name, limit = check["metric"], f"{check['limit']:g}"
    if check["check"] == "min-agreement":
        cosine = _cosine(result)
        found = "unknown" if cosine is None else f"{cosine:.4f}"
        return f"the median cosine to the outputs of the reference is {found}, the least is {limit}"
    if check["check"] == "max-drop":
        return f"{name} dropped by {_numbers((result['drop'] or {}).get(name))}, the limit is {limit}"
    return f"{name} is {_numbers(result['metrics'].get(name))}, the least is {limit}"


def raise_for(result: dict[str, Any]) -> None:
    """The answers of the checks as errors, with the whole result as details."""
    failed = [c for c in result["checks"] if c["answer"] == "exceeded"]
    if failed:
        raise CheckFailed("; ".join(sentence(c, result) for c in failed), details=result)
    unknown = [c for c in result["checks"] if c["answer"] == "inconclusive"]
    if unknown:
        raise RunFailedError(
            f"cannot tell: {'; '.join(sentence(c, result) for c in unknown)}",
            hint=too_few(unknown, result["samples"]["n"]),
            details=result,
        )


def too_few(unknown: Sequence[dict[str, Any]], count: int) -> str:
    """What would make checks tell that the data leave open."""
    alone = "`--judge value` goes by the value alone"
    needed = [c["needed"] for c in unknown]
    if None in needed:
        return f"more samples may tell; {alone}"
    return f"{count} samples are too few: about {max(needed)} that go on like these would decide; {alone}"

"""The text of `winml eval`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from winml.modelkit.render.marks import mark
from winml.modelkit.render.table import table
from winml.modelkit.render.units import PLAIN_METRICS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from winml.modelkit.evaluation.distance_report import LeastSpread, MostSpread
    from winml.modelkit.evaluation.metrics import Estimate, MetricEstimate
    from winml.modelkit.evaluation.result import EvalResult, EvaluatedModel

_DIGEST = len("sha256:") + 12
_DISTANCE_HEAD = ("output", "cosine: min", "median", "max abs: max", "median", "SQNR dB: min", "median", "equal")
_DISTANCE_NAMES = (
    "output", "smallest cosine", "median cosine", "largest difference", "median difference", "smallest SQNR",
    "median SQNR", "equal",
)  # fmt: skip


def _where(side: EvaluatedModel) -> str:
    return f"{Path(side.model).name} on {side.target}{' (simulated)' if side.simulated else ''}"


def _headline(result: EvalResult) -> str:
    runtime, data, count = result.environment.runtime, result.data, result.samples.n
    of = "" if count == data.samples else f" of {data.samples}"
    return (
        f"{_where(result)} ({runtime.name} {runtime.version}) · {result.task} · "
        f"{count}{of} samples of {Path(data.source).name}"
    )


def _number(kind: str, value: float, *, signed: bool = False) -> str:
    """A fraction in percent, anything else as it is."""
    sign = "+" if signed else ""
    return f"{value:{sign}.4f}" if kind in PLAIN_METRICS else f"{100 * value:{sign}.2f}"


def _cell(found: Estimate | None, kind: str, *, signed: bool = False, short: bool = False) -> str:
    """`99.40 % (98.25 … 99.80)`; a drop states its level, which differs from that of the other columns.

    `short` leaves the reason for no interval to a line below the table.
    """
    if found is None:
        return ""
    if found.value is None:
        return f"unknown: {found.reason}"
    unit = "" if kind in PLAIN_METRICS else " points" if signed else " %"
    value, interval = f"{_number(kind, found.value, signed=signed)}{unit}", found.interval
    if interval is None:
        return f"{value} (no interval)" if short else f"{value} (no interval: {found.reason})"
    low, high = (_number(kind, end, signed=signed) for end in (interval.low, interval.high))
    level = f", {100 * interval.level:.0f} %" if signed else ""
    return f"{value} ({low} … {high}{level})"


def _metrics(result: EvalResult) -> list[str]:
    reference = result.reference
    if reference is None:
        alone = [(name, _cell(found, found.kind)) for name, found in result.metrics.items()]
        return [table([("", "model"), *alone], indent="  ", head=True)] if alone else []
    rows: list[tuple[str, ...]] = [("", "model", "reference", "drop")]
    drops: Mapping[str, MetricEstimate] = result.drop or {}
    reasons = list[str | None]()
    for name, found in result.metrics.items():
        three = (found, reference.metrics.get(name), drops.get(name))
        rows.append((name, *(_cell(one, found.kind, signed=at == 2, short=True) for at, one in enumerate(three))))
        reasons += [one.reason for one in three if one and one.value is not None and one.interval is None]
    said = [f"  no interval: {reason}" for reason in dict.fromkeys(reasons)]
    return [table(rows, indent="  ", head=True), *said] if len(rows) > 1 else []


def _least(found: LeastSpread | None, form: str) -> tuple[str, str]:
    return ("", "") if found is None else (format(found.min, form), format(found.median, form))


def _most(found: MostSpread | None, form: str) -> tuple[str, str]:
    return ("", "") if found is None else (format(found.max, form), format(found.median, form))


def _distance(result: EvalResult) -> list[str]:
    if result.distance is None or result.reference is None:
        return []
    rows: list[tuple[str, ...]] = [_DISTANCE_HEAD]
    for found in result.distance:
        unknown = f", {found.incomparable} not comparable" if found.incomparable else ""
        rows.append(
            (
                found.output,
                *_least(found.cosine, ".6f"),
                *_most(found.max_abs, ".3g"),
                *_least(found.sqnr_db, ".1f"),
                f"{found.equal} of {found.runs}{unknown}",
            )
        )
    listed = table(rows, indent="  ", head=True, names=_DISTANCE_NAMES, drop=(4, 6, 2, 5, 3))
    return [f"compared with {_where(result.reference)}", listed]


_TOGETHER = {
    "perplexity_ratio": "perplexity over the reference's",
    "kl_divergence": "divergence of the next token from the reference's (nats)",
    "same_next_token": "same likeliest next token",
    "equal_tokens": "same generated tokens",
    "first_difference": "tokens before the first difference",
}
"""What numbers about both models are, in words."""


def _comparison(result: EvalResult) -> list[str]:
    """Numbers about both models together."""
    rows = [(_TOGETHER.get(name, name), _cell(found, found.kind)) for name, found in (result.comparison or {}).items()]
    return [table(rows, indent="  ")] if rows else []


def _generation(result: EvalResult) -> list[str]:
    """What ran the steps of a model that generates text, and how many there were."""
    lines = []
    for label, side in (("", result), ("reference: ", result.reference)):
        found = None if side is None else side.generation
        if found is None or (side is not result and found == result.generation):
            continue
        made = f"{found.tokens} tokens"
        if found.window is not None:
            made += f" in windows of {found.window}, {found.stride} apart"
        if found.new_tokens is not None:
            made += f", at most {found.new_tokens} for a prompt"
        lines.append(f"  {label}{made}; run by {found.runtime} ({found.reason})")
    return lines


def _metric_source(result: EvalResult) -> list[str]:
    source = result.custom_metric
    if source is None:
        return []
    file = "" if source.file is None else f" of {Path(source.file).name}"
    return [f"  scored by {source.function}{file} ({(source.digest or 'its text is unknown')[:_DIGEST]})"]


def _same_answers(result: EvalResult) -> list[str]:
    found = result.agreement
    return [] if found is None else [f"  same answers for {_cell(found, 'share')} of samples"]


def _change_lines(result: EvalResult) -> list[str]:
    """How many answers changed, for drops of a fraction."""
    return [
        f"  {name}: {found.worse + found.better} of {found.n} answers changed, "
        f"{found.worse} to wrong and {found.better} to right"
        for name, found in (result.drop or {}).items()
        if found.worse is not None and found.better is not None
    ]


def _checks(result: EvalResult) -> list[str]:
    words = {"within": "yes", "exceeded": "no", "inconclusive": "cannot tell"}
    questions = {
        "min-metric": "at least",
        "max-metric": "at most",
        "max-drop": "dropped by at most",
        "min-agreement": "at least",
    }
    lines = []
    for c in result.checks:
        needed = "" if c.needed is None else f"; about {c.needed} samples would decide"
        name = "agreement (median cosine)" if c.check == "min-agreement" else c.metric
        lines.append(
            f"  {name} {questions[c.check]} {c.limit:g}: {mark(c.answer, words[c.answer])} (by its {c.by}{needed})"
        )
    return lines


def evaluate_text(result: EvalResult) -> str:
    """Metrics with their intervals, then the comparison with the reference, then the checks."""
    parts = (_generation, _metric_source, _metrics, _change_lines, _same_answers, _comparison, _distance, _checks)
    return "\n".join([_headline(result), *(line for part in parts for line in part(result))])

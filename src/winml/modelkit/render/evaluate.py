"""The text of `winml eval`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from winml.modelkit.render.table import table

_CORRELATIONS = ("pearson", "spearman")


def _where(side: dict[str, Any]) -> str:
    return f"{Path(side['model']).name} on {side['target']}{' (simulated)' if side['simulated'] else ''}"


def _headline(result: dict[str, Any]) -> str:
    runtime, data, count = result["environment"]["runtime"], result["data"], result["samples"]["n"]
    of = "" if count == data["samples"] else f" of {data['samples']}"
    return (
        f"{_where(result)} ({runtime['name']} {runtime['version']}) · {result['task']} · "
        f"{count}{of} samples of {Path(data['source']).name}"
    )


def _number(kind: str, value: float, *, signed: bool = False) -> str:
    """A share in percent, a correlation as it is."""
    sign = "+" if signed else ""
    return f"{value:{sign}.4f}" if kind in _CORRELATIONS else f"{100 * value:{sign}.2f}"


def _cell(found: dict[str, Any] | None, *, signed: bool = False) -> str:
    """`99.40 % (98.25 … 99.80)`; a drop says its level, which is not that of the other columns."""
    if found is None:
        return ""
    if found["value"] is None:
        return f"unknown: {found['reason']}"
    kind, interval = found["kind"], found["interval"]
    unit = "" if kind in _CORRELATIONS else " points" if signed else " %"
    if interval is None:
        return f"{_number(kind, found['value'], signed=signed)}{unit} (no interval: {found['reason']})"
    low, high = (_number(kind, interval[end], signed=signed) for end in ("low", "high"))
    level = f", {100 * interval['level']:.0f} %" if signed else ""
    return f"{_number(kind, found['value'], signed=signed)}{unit} ({low} … {high}{level})"


def _metrics(result: dict[str, Any]) -> list[str]:
    reference = result["reference"]
    rows: list[tuple[str, ...]] = [("", "model", "reference", "drop") if reference else ("", "model")]
    for name, found in result["metrics"].items():
        row: tuple[str, ...] = (name, _cell(found))
        if reference:
            row = (*row, _cell(reference["metrics"].get(name)), _cell(result["drop"].get(name), signed=True))
        rows.append(row)
    return [table(rows, indent="  ")] if len(rows) > 1 else []


def _spread(found: dict[str, float] | None, worst: str, form: str) -> tuple[str, str]:
    return ("", "") if found is None else (format(found[worst], form), format(found["median"], form))


def _distance(result: dict[str, Any]) -> list[str]:
    if result["distance"] is None:
        return []
    head = ("output", "cosine: least", "median", "max abs: most", "median", "SQNR dB: least", "median", "equal")
    rows = [head]
    for found in result["distance"]:
        unknown = f", {found['incomparable']} not comparable" if found["incomparable"] else ""
        rows.append(
            (
                found["output"],
                *_spread(found["cosine"], "min", ".6f"),
                *_spread(found["max_abs"], "max", ".3g"),
                *_spread(found["sqnr_db"], "min", ".1f"),
                f"{found['equal']} of {found['runs']}{unknown}",
            )
        )
    return [f"against {_where(result['reference'])}", table(rows, indent="  ")]


def _agreement(result: dict[str, Any]) -> list[str]:
    found = result["agreement"]
    return [] if found is None else [f"  both say the same about {_cell({'kind': 'share', **found})} of samples"]


def _changed(result: dict[str, Any]) -> list[str]:
    """How many answers a drop of a share is made of."""
    return [
        f"  {name}: {found['worse'] + found['better']} of {found['n']} answers changed, "
        f"{found['worse']} to wrong and {found['better']} to right"
        for name, found in (result["drop"] or {}).items()
        if "worse" in found
    ]


def _checks(result: dict[str, Any]) -> list[str]:
    words = {"within": "yes", "exceeded": "no", "inconclusive": "cannot tell"}
    questions = {"min-metric": "at least", "max-drop": "dropped by at most", "min-agreement": "at least"}
    return [
        f"  {c['metric']} {questions[c['check']]} {c['limit']:g}: {words[c['answer']]} (by its {c['by']}{_needed(c)})"
        for c in result["checks"]
    ]


def _needed(check: dict[str, Any]) -> str:
    return "" if check["needed"] is None else f"; about {check['needed']} samples would decide"


def evaluate_text(result: dict[str, Any]) -> str:
    """Metrics with their intervals, then what the reference adds, then the answers of checks."""
    parts = (_metrics, _changed, _agreement, _distance, _checks)
    return "\n".join([_headline(result), *(line for part in parts for line in part(result))])

"""The text of `winml compare`."""

from __future__ import annotations

from typing import Any

from winml.modelkit.core.statistics import std
from winml.modelkit.render.table import table
from winml.modelkit.render.times import faster, milliseconds


def _pct(value: float | None) -> str:
    return "" if value is None else f"{value:+.1f} %"


def _interval(verdict: dict[str, Any]) -> str:
    if verdict["interval_pct"] is None:
        return ""
    low, high = verdict["interval_pct"]
    return f"({low:+.1f} … {high:+.1f})"


def _row(candidate: dict[str, Any]) -> tuple[str, ...]:
    verdict = candidate["verdict"]
    confirmed = candidate["confirmation"] is not None and verdict["verdict"] in ("KEEP", "MARGINAL_KEEP")
    word = verdict["verdict"] + (" confirmed" if confirmed else "")
    times = candidate.get("times") or {}
    return (
        candidate["label"],
        milliseconds(times.get("candidate_ms")),
        milliseconds(times.get("base_ms")),
        faster(candidate.get("speedup")),
        _pct(verdict["gain_pct"]),
        _interval(verdict),
        word,
        str(verdict["rounds"]) if verdict["rounds"] else "",
        f"{verdict['seconds']:.1f} s",
        verdict["reason"],
    )


def _spread(values: list[float]) -> str:
    spread = std(values)
    return "unknown" if spread is None else f"{100 * spread:.2f} %"


def _calibrations(result: dict[str, Any]) -> list[str]:
    lines = []
    for used in result["calibrations"].values():
        source = "from the cache" if used["cached"] else f"measured in {used['seconds']:.0f} s"
        values = used["values"]
        lines.append(
            f"A/A rounds of the base vary by {_spread(values['cpu'])} (CPU time), {_spread(values['wall'])} (wall), "
            + source
        )
    return lines


def compare_text(result: dict[str, Any]) -> str:
    """A ranked table, then how it was measured."""
    ranked = {label: i for i, label in enumerate(result["ranking"])}
    candidates = sorted(result["candidates"], key=lambda c: ranked.get(c["label"], len(ranked)))
    rows = [
        ("candidate", "ms", "base ms", "speed", "time saved", "95 %", "verdict", "rounds", "took", "why"),
        *map(_row, candidates),
    ]
    base = result["base"]
    metrics = {c["verdict"]["metric"] for c in candidates if c["verdict"]["metric"]}
    words = {"cpu": "CPU time", "wall": "wall time"}
    how = " and ".join(words[m] for m in sorted(metrics))
    lines = [
        f"base  {base['label']} on {base['target']}" + (f" · judged by {how}" if how else ""),
        table(rows, indent="  "),
    ]
    return "\n".join([*lines, *_calibrations(result)])

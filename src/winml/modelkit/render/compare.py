"""The text of `winml compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from winml.modelkit.core.statistics import std
from winml.modelkit.render.table import table
from winml.modelkit.render.times import milliseconds, speedup_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from winml.modelkit.measuring.calibration import Calibration
    from winml.modelkit.measuring.compare_result import Candidate, CompareResult

_CLOCKS = {"cpu": "CPU time", "wall": "wall time"}


def _row(candidate: Candidate) -> tuple[str, ...]:
    verdict, times = candidate.verdict, candidate.times
    confirmed = candidate.confirmation is not None and verdict.kept
    gain, interval = verdict.gain_pct, verdict.interval_pct
    return (
        candidate.label,
        milliseconds(None if times is None else times.candidate_ms),
        milliseconds(None if times is None else times.base_ms),
        speedup_text(candidate.speedup),
        "" if gain is None else f"{gain:+.1f} %",
        "" if interval is None else f"({interval[0]:+.1f} … {interval[1]:+.1f})",
        verdict.verdict + (" confirmed" if confirmed else ""),
        str(verdict.rounds) if verdict.rounds else "",
        f"{verdict.seconds:.1f} s",
        verdict.reason,
    )


def _spread(values: Sequence[float]) -> str:
    spread = std(values)
    return "unknown" if spread is None else f"{100 * spread:.2f} %"


def _calibration(used: Calibration) -> str:
    source = "from the cache" if used.cached else f"measured in {used.seconds:.0f} s"
    cpu, wall = _spread(used.values.cpu), _spread(used.values.wall)
    return f"A/A rounds of the base vary by {cpu} (CPU time), {wall} (wall), {source}"


def compare_text(result: CompareResult) -> str:
    """A ranked table, then how it was measured."""
    ranked = {label: i for i, label in enumerate(result.ranking)}
    candidates = sorted(result.candidates, key=lambda c: ranked.get(c.label, len(ranked)))
    rows = [
        ("candidate", "ms", "base ms", "speed", "time saved", "95 %", "verdict", "rounds", "took", "why"),
        *map(_row, candidates),
    ]
    metrics = sorted({c.verdict.metric for c in candidates if c.verdict.metric})
    how = " and ".join(_CLOCKS[m] for m in metrics)
    head = f"base  {result.base.label} on {result.base.arm.target}" + (f" · judged by {how}" if how else "")
    return "\n".join([head, table(rows, indent="  "), *map(_calibration, result.calibrations.values())])

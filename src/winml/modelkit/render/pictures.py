"""Pictures of results for notebooks, as inline SVG; classes of results are known as types only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from winml.modelkit.core import plain_text
from winml.modelkit.core.measurement import NS_PER_MS
from winml.modelkit.render.row_plot import Bar, bars, dots

if TYPE_CHECKING:
    from winml.modelkit.measuring.compare_result import CompareResult
    from winml.modelkit.measuring.perf import PerfResult


def perf_picture(result: PerfResult) -> str:
    """Every run of every session."""
    rows = [
        (f"session {taken.round + 1}", [wall_ns / NS_PER_MS for wall_ns in taken.wall_ns])
        for taken in result.measurement.rounds
    ]
    simulated = " on the simulator" if result.target.simulated else ""
    return dots(rows, f"latency{simulated}, ms")


def compare_picture(result: CompareResult) -> str:
    """How much time each candidate saves, with its interval."""
    rows = []
    for one in plain_text.values(result).candidates:
        gain, interval = one.verdict.gain_pct, one.verdict.interval_pct
        if gain is not None and interval is not None:
            rows.append(Bar(one.label, interval[0], gain, interval[1], one.verdict.kept))
    return bars(rows, "time saved against the base, % (95 % interval)")

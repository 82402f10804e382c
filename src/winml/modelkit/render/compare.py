"""The text of `winml compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from winml.modelkit.core.statistics import median, std
from winml.modelkit.render.generation import spread_text, whole_size
from winml.modelkit.render.marks import mark, sparkline
from winml.modelkit.render.table import table
from winml.modelkit.render.times import milliseconds, speedup_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from winml.modelkit.measuring.calibration import Calibration
    from winml.modelkit.measuring.compare_result import Candidate, CompareResult

SIZES = ("same size", "smaller", "larger")
_CLOCKS = {"cpu": "CPU time", "wall": "wall time", "memory": "peak memory of the process"}


def _row(candidate: Candidate) -> tuple[str, ...]:
    verdict, times = candidate.verdict, candidate.times
    confirmed = candidate.confirmation is not None and verdict.kept
    gain, interval, memory = verdict.gain_pct, verdict.interval_pct, candidate.memory
    own, base = (None, None) if times is None else (times.candidate_ms, times.base_ms)
    return (
        candidate.label,
        milliseconds(own) if memory is None else spread_text(memory.candidate_bytes, whole_size),
        milliseconds(base) if memory is None else spread_text(memory.base_bytes, whole_size),
        speedup_text(candidate.speedup) if memory is None else speedup_text(candidate.speedup, SIZES),
        "" if gain is None else f"{gain:+.1f} %",
        "" if interval is None else f"({interval[0]:+.1f} … {interval[1]:+.1f})",
        mark(verdict.verdict, verdict.verdict + (" confirmed" if confirmed else "")),
        f"{verdict.rounds} {sparkline(round_speedups(candidate))}".rstrip() if verdict.rounds else "",
        f"{verdict.seconds:.1f} s",
        verdict.reason,
    )


def round_speedups(candidate: Candidate) -> list[float]:
    """How many times as fast as the base it was in each round, on the clock that decided."""
    taken = (candidate.confirmation or candidate).measurement
    if taken is None:
        return []
    times: dict[int, dict[int, float]] = {}
    for one in taken.rounds:
        samples = one.on(candidate.verdict.metric or "wall")
        if samples:
            times.setdefault(one.round, {})[one.arm] = median(samples)
    return [of[0] / of[1] for _, of in sorted(times.items()) if of.keys() >= {0, 1} and of[1] > 0]


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
    names = ("ms", "base ms", "speed", "time saved")
    if any(candidate.memory is not None for candidate in candidates):
        names = ("memory", "base memory", "ratio", "memory saved")
    rows = [("candidate", *names, "95 %", "verdict", "rounds", "took", "why"), *map(_row, candidates)]
    metrics = sorted({c.verdict.metric for c in candidates if c.verdict.metric})
    how = " and ".join(_CLOCKS[m] for m in metrics)
    head = f"base  {result.base.label} on {result.base.arm.target}" + (f" · judged by {how}" if how else "")
    text = result.base.arm.generation
    if text is not None:
        head += f" · {text.metric}: prompt of {text.prompt_tokens}, {text.new_tokens} new tokens"
    return "\n".join(
        [
            head,
            table(rows, indent="  ", head=True, drop=(8, 7, 4, 5, 2), below=9),
            *map(_calibration, result.calibrations.values()),
        ]
    )

"""Times and speedups as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from winml.modelkit.core.latency import Spread


def milliseconds(spread: Spread | None) -> str:
    """A median with its interval: `1.93 (1.90 … 1.97)`."""
    if spread is None or spread.median is None:
        return ""
    interval = spread.interval
    between = "" if interval is None else f" ({_short(interval.low)} … {_short(interval.high)})"
    return f"{_short(spread.median)}{between}"


def _short(ms: float) -> str:
    """Three significant digits."""
    return f"{ms:.0f}" if ms >= 100 else f"{ms:#.3g}".rstrip(".")


def speedup_text(speedup: float | None) -> str:
    """How many times as fast: `1.93x faster`."""
    if speedup is None:
        return ""
    factor = max(speedup, 1 / speedup)
    if f"{factor:.2f}" == "1.00":
        return "same speed"
    return f"{factor:.2f}x {'faster' if speedup > 1 else 'slower'}"

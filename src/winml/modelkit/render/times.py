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


def median_ms(spread: Spread | None) -> str:
    """A median alone: `1.93 ms`."""
    return "" if spread is None or spread.median is None else f"{_short(spread.median)} ms"


def _short(ms: float) -> str:
    """Three significant digits."""
    return f"{ms:.0f}" if ms >= 100 else f"{ms:#.3g}".rstrip(".")


def speedup_text(speedup: float | None, words: tuple[str, str, str] = ("same speed", "faster", "slower")) -> str:
    """How many times as fast: `1.93x faster`; `words` are for something other than time."""
    if speedup is None:
        return ""
    factor = max(speedup, 1 / speedup)
    if f"{factor:.2f}" == "1.00":
        return words[0]
    return f"{factor:.2f}x {words[1] if speedup > 1 else words[2]}"


def duration(seconds: float) -> str:
    """`42 s`, `3 min`, `2.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def clock(seconds: float) -> str:
    """A time that is still running: `0:07`, `12:40`, `1:02:03`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def speedup_interval(speedup: float, bounds: tuple[float, float]) -> str:
    """The bounds of a speedup as factors of the word that `speedup_text` has for it: `(1.90 … 1.97)`."""
    low, high = bounds if speedup >= 1 else (1 / bounds[1], 1 / bounds[0])
    return f"({low:.2f} … {high:.2f})"

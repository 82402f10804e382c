"""A verdict: is the candidate faster, by how much, and how sure is that."""

from __future__ import annotations

import math
from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.values import key

Outcome = Literal["KEEP", "MARGINAL_KEEP", "DISCARD", "INCONCLUSIVE", "IDENTICAL", "FAILED"]
Clock = Literal["cpu", "wall", "memory"]
"""What decides: a clock, or the peak of a process's memory."""
Tendency = Literal["faster", "slower"]


def gain_pct(log_ratio: float) -> float:
    """Share of the base's time that is saved, in percent, from log(base / candidate); negative when slower."""
    return 100.0 * (1.0 - math.exp(-log_ratio))


def speedup(gain: float) -> float:
    """How many times as fast something is that saves this much of the time, in percent.

    A bound of two rounds may be so far off that nothing of the time is left in a float.
    """
    return 1.0 / max(1.0 - gain / 100.0, 1e-12)


@dataclass(frozen=True)
class OtherClock:
    """Gain and interval on the clock that did not decide; empty where it says nothing."""

    clock: Clock | None = key(omit=True)
    gain_pct: float | None = key(omit=True)
    interval_pct: tuple[float, float] | None = key(omit=True)


@dataclass(frozen=True)
class Verdict:
    """An outcome with its evidence in numbers; None where nothing was measured."""

    verdict: Outcome
    reason: str
    gain_pct: float | None = None
    interval_pct: tuple[float, float] | None = None
    """95 % interval of the gain at the last look."""
    rounds: int = 0
    seconds: float = 0.0
    metric: Clock | None = None
    error_rate: float | None = None
    """Design rate at which a candidate that gains nothing is kept."""
    other_clock: OtherClock = OtherClock()

    @property
    def kept(self) -> bool:
        return self.verdict in ("KEEP", "MARGINAL_KEEP")

    @property
    def tendency(self) -> Tendency | None:
        """The side that the whole interval lies on; None when it contains zero or the other clock contradicts it."""
        side = _side(self.interval_pct)
        other = _side(self.other_clock.interval_pct)
        return side if other in (None, side) else None


def _side(interval_pct: tuple[float, float] | None) -> Tendency | None:
    if interval_pct is None:
        return None
    return "faster" if interval_pct[0] > 0 else "slower" if interval_pct[1] < 0 else None

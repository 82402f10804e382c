"""How much longer counted work takes: an estimate from what is done so far, and a time left that moves smoothly."""

from __future__ import annotations

MIN_ELAPSED_S = 1.0
"""What was done in less time says little about the rest."""
HALF_LIFE_S = 4.0
MAX_WEIGHT = 0.5


def estimate_left(done: float, total: float | None, elapsed_s: float) -> float | None:
    """Seconds left if the rest is as fast as what was done in `elapsed_s`; None where that is unknown."""
    if total is None or done <= 0 or elapsed_s < MIN_ELAPSED_S:
        return None
    return max(0.0, elapsed_s * (total - done) / done)


class TimeLeft:
    """A time left that runs down with the clock and approaches every new estimate; the caller passes the clock."""

    def __init__(self) -> None:
        self._left_s: float | None = None
        self._at = 0.0
        """When that was estimated."""

    def correct(self, estimate_s: float | None, now: float) -> None:
        """Take a new estimate into account: half of the difference at most, less of estimates that come often."""
        before = self.left_s(now)
        if estimate_s is None or before is None:
            self._left_s = estimate_s
        else:
            weight = min(MAX_WEIGHT, 1 - 0.5 ** ((now - self._at) / HALF_LIFE_S))
            self._left_s = before + weight * (estimate_s - before)
        self._at = now

    def left_s(self, now: float) -> float | None:
        """Seconds left; None where that is unknown, also when an estimate has run out and work still goes on."""
        if self._left_s is None:
            return None
        left = self._left_s - (now - self._at)
        return left if left > 0 else None


class Count:
    """Work that is counted up to a total; its speed is measured from the first count on."""

    def __init__(self, done: float, total: float, now: float) -> None:
        self.done = self._first = done
        self.total = total
        self._since = now
        self._left = TimeLeft()

    def advance(self, done: float, total: float, now: float) -> None:
        """Go on to `done`; a total may change while its work goes on."""
        if (done, total) == (self.done, self.total):
            return
        self.done, self.total = done, total
        self._left.correct(estimate_left(done - self._first, total - self._first, now - self._since), now)

    def left_s(self, now: float) -> float | None:
        """Seconds left, or None where that is unknown and where nothing is left to count."""
        return self._left.left_s(now) if self.done < self.total else None

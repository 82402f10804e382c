"""From numbers to places on an axis, with ticks at round numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.render.figures.text_size import text_width

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_ROUNDING = 1e-9
"""Part of a step by which a computed number may miss a tick."""
_SHORT = 10.0
"""A logarithmic axis whose end is less than so many times its begin."""


@dataclass(frozen=True)
class Scale:
    """Places of numbers between two pixels; `log` for a logarithmic axis."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """The place of a number, also outside the axis."""
        low, high, value = (_log(v) if self.log else v for v in (self.low, self.high, value))
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def ticks(self, most: int = 6) -> list[float]:
        """Round numbers on the axis, at most `most` of them."""
        return log_ticks(self.low, self.high, most) if self.log else round_ticks(self.low, self.high, most)


def _log(value: float) -> float:
    return math.log10(value) if value > 0 else -12.0


def round_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Multiples of 1, 2, 2.5 or 5 times a power of ten in an interval."""
    if high <= low:
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    for step in (factor * power * scale for scale in (1.0, 10.0) for factor in _STEPS):
        first = math.ceil(low / step - _ROUNDING)
        last = math.floor(high / step + _ROUNDING)
        if last - first + 1 <= most:
            return [_clean(n * step) for n in range(first, last + 1)]
    return [low]


def log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Powers of ten, with 2 and 5 times them where there is room; multiples of one step where the axis is short."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for factors in ((1, 2, 5), (1, 3), (1,)):
        found = [_clean(f * 10.0**n) for n in range(first, last + 1) for f in factors]
        found = [value for value in found if low <= value <= high]
        if 4 <= len(found) <= most:
            return found
    if high < _SHORT * low:
        return round_ticks(low, high, most)
    step = math.ceil((last - first + 1) / most)
    return [10.0**n for n in range(first, last + 1, step) if low <= 10.0**n <= high]


def _clean(value: float) -> float:
    """A number without the last digits of its computation."""
    return float(f"{value:.12g}")


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """The ticks as text, all with the decimals that tell them apart."""
    for decimals in range(7):
        texts = [f"{tick:,.{decimals}f}" for tick in ticks]
        if all(math.isclose(float(t.replace(",", "")), v, rel_tol=1e-6)
               for t, v in zip(texts, ticks, strict=True)):  # fmt: skip
            return ["0" if float(text.replace(",", "")) == 0 else text for text in texts]
    return [f"{tick:g}" for tick in ticks]


def axis_room(scale: Scale, size: float, most: int = 6) -> float:
    """Pixels that the numbers of an upright axis need left of it."""
    return 12.0 + max(text_width(text, size) for text in tick_labels(scale.ticks(most)) or ["0"])


def padded_range(values: Iterable[float], *, part: float = 0.06) -> tuple[float, float]:
    """An interval around numbers with room at both ends."""
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return 0.0, 1.0
    low, high = min(known), max(known)
    room = (high - low) * part or abs(high) * part or 1.0
    return low - room, high + room


def log_range(values: Iterable[float], *, part: float = 0.06) -> tuple[float, float]:
    """An interval around positive numbers on a logarithmic axis, with room at both ends."""
    known = [math.log10(value) for value in values if math.isfinite(value) and value > 0]
    if not known:
        return 0.1, 10.0
    room = (max(known) - min(known)) * part or 0.1
    return 10 ** (min(known) - room), 10 ** (max(known) + room)

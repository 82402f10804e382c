"""From the histogram of a tensor to the range that is quantized: percentile, entropy and least squared error."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass

SIDE = 2048
"""Bins on either side of zero."""
NARROW = 1e-30
"""Values nearer to zero are counted as zero: float32 cannot scale them into bins."""
LEVELS = 128
"""Steps the search shows a histogram in. With as many as uint8 has, narrow ranges lose nothing in it and always win."""
KEPT = 0.99
"""Share of the values that entropy keeps at least. Values that repeat (a flat background) make spikes in a histogram,
which wide steps blur and narrow ranges do not, so that the search would cut off most of the rest."""

NARROWEST = 1 / 64
"""Share of the whole range that the search for the least squared error goes down to on each side."""

_CANDIDATES = 128
_TINY = 1e-10

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Range:
    """The lowest and highest value of a tensor that quantization keeps apart."""

    low: float
    high: float

    def within(self, other: Range) -> Range:
        return Range(max(self.low, other.low), min(self.high, other.high))


@dataclass(frozen=True)
class Histogram:
    """Counts of values in equal bins over a range."""

    range: Range
    counts: Counts

    @property
    def width(self) -> float:
        return (self.range.high - self.range.low) / len(self.counts)


class Collector:
    """A histogram that grows: values come in one array at a time, and none of them is kept.

    It reaches to a power of two on both sides of zero. When values go beyond, pairs of bins become one, which is exact.
    """

    def __init__(self) -> None:
        self.low, self.high = float("inf"), float("-inf")
        self._limit = NARROW
        self._counts = np.zeros(2 * SIDE, np.int64)

    def add(self, values: npt.NDArray[Any], *, limit: float) -> None:
        """Count the values; from `limit` on only how far they reach is recorded."""
        if not values.size:
            return
        low, high = float(values.min()), float(values.max())
        self.low, self.high = min(self.low, low), max(self.high, high)
        reach = max(-low, high)
        if not reach <= limit:
            return
        self._grow(reach)
        bins = values.ravel().astype(np.float32, copy=False) * np.float32(SIDE / self._limit)
        bins += np.float32(SIDE)
        counted = np.bincount(bins.astype(np.int32), minlength=2 * SIDE + 1)
        counted[-2] += counted[-1]  # the highest value itself
        self._counts += counted[:-1]

    def _grow(self, reach: float) -> None:
        while self._limit < reach:
            if not self._counts.any():
                self._limit = 2.0 ** math.ceil(math.log2(reach))
                return
            merged = self._counts.reshape(-1, 2).sum(axis=1)
            self._counts = np.pad(merged, SIDE // 2)
            self._limit *= 2.0

    def histogram(self) -> Histogram:
        """The bins that hold the values seen so far."""
        width = self._limit / SIDE
        first = min(int((self.low + self._limit) / width), 2 * SIDE - 1)
        last = min(int((self.high + self._limit) / width) + 1, 2 * SIDE)
        inside = Range(first * width - self._limit, last * width - self._limit)
        return Histogram(inside, self._counts[first:last])


def percentile(histogram: Histogram, percent: float) -> Range:
    """The range that holds `percent` of all values, with equally many cut off on both sides."""
    total = int(histogram.counts.sum())
    below = np.cumsum(histogram.counts)
    cut = (100.0 - percent) / 200.0 * total
    low_bin = int(np.searchsorted(below, cut, side="right"))
    high_bin = int(np.searchsorted(below, total - cut, side="left")) + 1
    low = histogram.range.low + low_bin * histogram.width
    high = histogram.range.low + high_bin * histogram.width
    return Range(low, high).within(histogram.range)


def entropy(histogram: Histogram) -> Range:
    """The range whose 8-bit version says most about the values (least Kullback-Leibler divergence).

    The limit is sought on absolute values, so that both sides are cut at the same distance from zero.
    """
    counts = _fold(histogram)
    bins = len(counts)
    fewest = max(LEVELS, int(np.searchsorted(np.cumsum(counts), KEPT * counts.sum())) + 1)
    if bins <= fewest:
        return histogram.range
    step = max(1, (bins - fewest) // _CANDIDATES)
    best = min((*range(fewest, bins, step), bins), key=_divergence_of(counts))
    limit = best * histogram.width
    return Range(-limit, limit).within(histogram.range)


def least_error(histogram: Histogram, *, levels: int, symmetric: bool) -> Range:
    """The range with the least mean squared error: rounding to `levels` steps inside it, and what is cut off outside.

    Both sides are sought at once, so that a range may be cut on one side only. Zero is exact in every range, so the
    bin that has it counts for no more than its neighbours.
    """
    low, high = min(histogram.range.low, 0.0), max(histogram.range.high, 0.0)
    if symmetric:
        low, high = -max(-low, high), max(-low, high)
    centres = histogram.range.low + (np.arange(len(histogram.counts)) + 0.5) * histogram.width
    shares = np.geomspace(1.0, NARROWEST, _CANDIDATES)
    lows, highs = low * shares, high * shares
    below, above = _cut_off(-centres, histogram.counts, -lows), _cut_off(centres, histogram.counts, highs)
    if symmetric:
        noise = ((highs - lows) / (levels - 1)) ** 2 / 12 * _count_rounded(histogram, centres) + below + above
        best = int(np.argmin(noise))
        return Range(float(lows[best]), float(highs[best]))
    steps = (highs[None, :] - lows[:, None]) / (levels - 1)
    noise = steps**2 / 12 * _count_rounded(histogram, centres) + below[:, None] + above[None, :]
    first, second = np.unravel_index(int(np.argmin(noise)), noise.shape)
    return Range(float(lows[first]), float(highs[second]))


def _cut_off(values: npt.NDArray[np.floating], counts: Counts, limits: npt.NDArray[np.floating]) -> Any:
    """The squared error of values that are cut off at each limit."""
    return np.array([(np.maximum(values - limit, 0.0) ** 2 * counts).sum() for limit in limits])


def _count_rounded(histogram: Histogram, centres: npt.NDArray[np.floating]) -> float:
    """How many values are rounded at all."""
    counts = histogram.counts
    zero = int(np.argmin(np.abs(centres)))
    beside = max((int(counts[i]) for i in (zero - 1, zero + 1) if 0 <= i < len(counts)), default=0)
    return float(counts.sum() - counts[zero] + min(int(counts[zero]), beside))


def _fold(histogram: Histogram) -> Counts:
    """The histogram of the absolute values, in bins of the same width.

    Zero is exact in every range. After a Relu it is half of all values, so that counting it would leave the search
    nothing but zeros to keep; its bin gets the height of its neighbour.
    """
    centres = histogram.range.low + (np.arange(len(histogram.counts)) + 0.5) * histogram.width
    bins = (np.abs(centres) / histogram.width).astype(np.int64)
    folded = np.zeros(int(bins.max()) + 1, np.int64)
    np.add.at(folded, bins, histogram.counts)
    folded[:1] = folded[1:2]
    return folded


def _divergence_of(counts: Counts) -> Callable[[int], float]:
    def divergence(bins: int) -> float:
        """How much is lost when the first `bins` bins are kept and shown in `LEVELS` steps."""
        kept = counts[:bins].astype(np.float64)
        filled = kept > 0
        starts = np.linspace(0, bins, LEVELS, endpoint=False).astype(np.int64)
        sizes = np.diff(np.append(starts, bins))
        per_bin = np.add.reduceat(kept, starts) / np.maximum(np.add.reduceat(filled.astype(np.float64), starts), 1.0)
        shown = np.repeat(per_bin, sizes) * filled
        kept[-1] += counts[bins:].sum()
        p = kept / kept.sum()
        q = np.maximum(shown / shown.sum(), _TINY) if shown.any() else np.full(bins, _TINY)
        some = p > 0
        return float((p[some] * np.log(p[some] / q[some])).sum())

    return divergence

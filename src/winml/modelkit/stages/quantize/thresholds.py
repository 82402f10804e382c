"""From the histogram of a tensor to the range that is quantized: percentile and entropy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

BINS = 2048
LEVELS = 128
"""Steps the search shows a histogram in. With as many as uint8 has, narrow ranges lose nothing in it and always win."""

_CANDIDATES = 128
_TINY = 1e-10

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Range:
    """The lowest and highest value of a tensor that quantization keeps apart."""

    low: float
    high: float


@dataclass(frozen=True)
class Histogram:
    """Counts of values in equal bins over a range."""

    range: Range
    counts: Counts

    @property
    def width(self) -> float:
        return (self.range.high - self.range.low) / len(self.counts)


def percentile(histogram: Histogram, percent: float) -> Range:
    """The range that holds `percent` of all values, with equally many cut off on both sides."""
    total = int(histogram.counts.sum())
    below = np.cumsum(histogram.counts)
    cut = (100.0 - percent) / 200.0 * total
    low_bin = int(np.searchsorted(below, cut, side="right"))
    high_bin = int(np.searchsorted(below, total - cut, side="left")) + 1
    low = histogram.range.low + low_bin * histogram.width
    high = histogram.range.low + high_bin * histogram.width
    return Range(max(low, histogram.range.low), min(high, histogram.range.high))


def entropy(histogram: Histogram) -> Range:
    """The range whose 8-bit version says most about the values (least Kullback-Leibler divergence).

    The limit is sought on absolute values, so that both sides are cut at the same distance from zero.
    """
    counts = _folded(histogram)
    bins = len(counts)
    if bins <= LEVELS:
        return histogram.range
    step = max(1, (bins - LEVELS) // _CANDIDATES)
    best = min((*range(LEVELS, bins, step), bins), key=_divergence_of(counts))
    limit = best * histogram.width
    return Range(max(histogram.range.low, -limit), min(histogram.range.high, limit))


def _folded(histogram: Histogram) -> Counts:
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

"""How far values are from what they should be, added up sample by sample."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass


@dataclass(frozen=True, kw_only=True)
class Noise:
    """How far a value is from its reference, over all samples."""

    sqnr_db: float | None
    """Signal to noise ratio; null where there is no noise, or no signal."""
    cosine: float | None
    equal: bool
    not_finite: int
    """Numbers that are NaN or infinite where the reference has none; they are in none of the ratios."""

    @property
    def rank(self) -> float:
        """Lower is worse: values that are not numbers first, then by the ratio."""
        if self.not_finite:
            return -math.inf
        if self.equal:
            return math.inf
        return self.sqnr_db if self.sqnr_db is not None else math.inf


class NoiseSum:
    """Sums from which a ratio and a cosine follow, so that no sample has to be kept."""

    def __init__(self) -> None:
        self._signal = self._noise = self._found = self._product = 0.0
        self._not_finite = 0
        self._count = 0

    def add(self, expected: npt.NDArray[Any], found: npt.NDArray[Any]) -> None:
        """A sample; the shapes must be the same."""
        a, b = expected.astype(np.float64).ravel(), found.astype(np.float64).ravel()
        known = np.isfinite(a)
        broken = known & ~np.isfinite(b)
        self._not_finite += int(broken.sum())
        usable = known & ~broken
        if not usable.all():
            a, b = a[usable], b[usable]
        difference = a - b
        self._signal += float(a @ a)
        self._noise += float(difference @ difference)
        self._found += float(b @ b)
        self._product += float(a @ b)
        self._count += a.size

    def result(self) -> Noise | None:
        """What the samples so far come to; None where there was no number to compare."""
        if not self._count + self._not_finite:
            return None
        equal = self._noise == 0.0 and not self._not_finite
        ratio = None
        if self._signal > 0.0 and self._noise > 0.0:
            ratio = 10.0 * math.log10(self._signal / self._noise)
        norms = math.sqrt(self._signal * self._found)
        cosine = 1.0 if equal else (self._product / norms if norms > 0.0 else None)
        return Noise(sqnr_db=ratio, cosine=cosine, equal=equal, not_finite=self._not_finite)


def worst_of(sums: Iterable[NoiseSum]) -> Noise | None:
    """The noise of the worst; None where nothing was compared."""
    found = [noise for one in sums if (noise := one.result()) is not None]
    return min(found, key=lambda noise: noise.rank, default=None)

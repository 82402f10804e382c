"""A model of the speedup of choices, from the trials so far.

The log of a speed-up is a sum over the levels of a choice plus a smaller sum over pairs of them, all unknown and
normal: two choices have in common what their common levels and pairs are worth. That is a Gaussian process with a
kernel that counts; with pairs worth nothing it is log-additive ridge regression.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from winml.modelkit.search.space import Choice

LEVEL_SD = 0.3
"""How much levels change the log of a time."""
PAIR_SD = 0.05
"""How much two levels together differ from the sum of both."""
ROUND_SD = 0.01
"""How much the score of a trial varies."""


def _kernel(a: Choice, b: Choice) -> float:
    common = len(set(a) & set(b))
    return LEVEL_SD**2 * common + PAIR_SD**2 * common * (common - 1) / 2


def _cholesky(matrix: list[list[float]]) -> list[list[float]]:
    """The lower triangle whose square a positive definite matrix is."""
    lower: list[list[float]] = []
    for size, row in enumerate(matrix):
        done = _forward(lower, row[:size])
        lower.append([*done, math.sqrt(row[size] - sum(x * x for x in done))])
    return lower


def _forward(lower: list[list[float]], right: Sequence[float]) -> list[float]:
    """The solution of a lower triangular system."""
    solved: list[float] = []
    for row, value in zip(lower, right, strict=True):
        solved.append((value - sum(x * y for x, y in zip(row, solved, strict=False))) / row[len(solved)])
    return solved


class SpeedupModel:
    """Predicts log speedups from some trials; the baseline is zero by definition."""

    def __init__(self, scores: Sequence[tuple[Choice, float]]) -> None:
        self._choices = [choice for choice, _ in scores if choice]
        values = [score for choice, score in scores if choice]
        matrix = [[_kernel(a, b) for b in self._choices] for a in self._choices]
        for index, row in enumerate(matrix):
            row[index] += ROUND_SD**2
        self._lower = _cholesky(matrix)
        self._weights = _forward(self._lower, values)

    def predict(self, choice: Choice) -> tuple[float, float]:
        """Mean and standard deviation of the log speed-up of a choice."""
        reach = _forward(self._lower, [_kernel(choice, other) for other in self._choices])
        mean = sum(x * y for x, y in zip(reach, self._weights, strict=True))
        return mean, math.sqrt(max(0.0, _kernel(choice, choice) - sum(x * x for x in reach)))

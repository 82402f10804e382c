"""A log-additive model of what levels are worth, from the trials so far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from winml.modelkit.search.space import Choice

RIDGE = 1e-3
"""Rounds vary by about 1 % and levels change a time by about 30 %: the square of their ratio."""

Option = tuple[str, str]


def _solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """The solution of a positive definite system by elimination."""
    size = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for pivot in range(size):
        for below in range(pivot + 1, size):
            factor = rows[below][pivot] / rows[pivot][pivot]
            if factor:
                rows[below] = [b - factor * p for b, p in zip(rows[below], rows[pivot], strict=True)]
    solution = [0.0] * size
    for index in reversed(range(size)):
        known = sum(rows[index][later] * solution[later] for later in range(index + 1, size))
        solution[index] = (rows[index][size] - known) / rows[index][index]
    return solution


def fitted(scores: Sequence[tuple[Choice, float]]) -> Mapping[Option, float]:
    """What each level adds to the log of the speed-up, by ridge regression; the baseline is zero by definition."""
    options = sorted({option for choice, _ in scores for option in choice})
    place = {option: index for index, option in enumerate(options)}
    matrix = [[RIDGE if row == column else 0.0 for column in range(len(options))] for row in range(len(options))]
    right = [0.0] * len(options)
    for choice, score in scores:
        present = [place[option] for option in choice]
        for row in present:
            right[row] += score
            for column in present:
                matrix[row][column] += 1.0
    return dict(zip(options, _solved(matrix, right), strict=True))


def predicted(worth: Mapping[Option, float], choice: Iterable[Option]) -> float:
    return sum(worth.get(option, 0.0) for option in choice)

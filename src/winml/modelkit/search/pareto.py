"""Which of several trials no other one beats in everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def _dominates(a: Sequence[float], b: Sequence[float]) -> bool:
    return all(x >= y for x, y in zip(a, b, strict=True)) and any(x > y for x, y in zip(a, b, strict=True))


def front(points: Mapping[str, Sequence[float]]) -> list[str]:
    """Names of points that no other one dominates, in the order given; larger is better in every coordinate."""
    return [
        name
        for name, point in points.items()
        if not any(_dominates(other, point) for key, other in points.items() if key != name)
    ]

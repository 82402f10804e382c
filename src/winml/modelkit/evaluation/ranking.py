"""How good an order of texts is: what users of a search see."""

from __future__ import annotations

import math
from collections.abc import Sequence

DEPTH = 10
"""Places that count."""


def ndcg(grades: Sequence[float], known: Sequence[float]) -> float:
    """Discounted gain of the first places over that of the best order; `grades` in the order found, `known` all."""

    def gain(ordered: Sequence[float]) -> float:
        return math.fsum(grade / math.log2(place + 2) for place, grade in enumerate(ordered[:DEPTH]))

    best = gain(sorted(known, reverse=True))
    return gain(grades) / best if best else 0.0


def reciprocal_rank(grades: Sequence[float]) -> float:
    """One over the first place with something relevant; 0 when there is none among those that count."""
    return next((1.0 / (place + 1) for place, grade in enumerate(grades[:DEPTH]) if grade > 0), 0.0)


def recall(grades: Sequence[float], known: Sequence[float]) -> float:
    """The share of what is relevant that is among the first places."""
    relevant = sum(grade > 0 for grade in known)
    return sum(grade > 0 for grade in grades[:DEPTH]) / relevant if relevant else 0.0

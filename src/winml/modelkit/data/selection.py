"""Which samples are used when there are more than requested: chosen with a seed, none twice, in their own order."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable, Sequence


def _numbers(seed: int) -> Callable[[], float]:
    # Of all methods only `random()` promises the same numbers in every version of Python.
    return random.Random(seed).random  # noqa: S311 - a choice, not a secret


def choose(count: int, limit: int | None, seed: int) -> Sequence[int]:
    """Indices of `limit` out of `count` samples, ascending; memory grows with the limit. Without one, all."""
    if limit is None or limit >= count:
        return range(count)
    draw = _numbers(seed)
    return sorted(heapq.nsmallest(limit, range(count), key=lambda _: draw()))


def choose_stratified(classes: Sequence[str], limit: int | None, seed: int) -> Sequence[int]:
    """Like `choose`, with every class in its share, rounded to whole samples."""
    if limit is None or limit >= len(classes):
        return range(len(classes))
    draw = _numbers(seed)
    order = sorted(range(len(classes)), key=[draw() for _ in classes].__getitem__)
    left = _shares(Counter(classes[index] for index in order), limit)
    taken = []
    for index in order:
        if left[classes[index]]:
            left[classes[index]] -= 1
            taken.append(index)
    return sorted(taken)


def _shares(sizes: Counter[str], limit: int) -> dict[str, int]:
    """How many of each class: its share rounded down, and one more for the largest remainders."""
    total = sizes.total()
    shares = {name: limit * size // total for name, size in sizes.items()}
    by_remainder = sorted(sizes, key=lambda name: -(limit * sizes[name] % total))
    for name in by_remainder[: limit - sum(shares.values())]:
        shares[name] += 1
    return shares

"""Which samples are used when there are more than asked for: chosen with a seed, none twice, in their own order."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable, Sequence


def _numbers(seed: int) -> Callable[[], float]:
    # Of all methods only `random()` promises the same numbers in every version of Python.
    return random.Random(seed).random  # noqa: S311 - a choice, not a secret


def chosen(count: int, limit: int | None, seed: int) -> Sequence[int]:
    """Indices of `limit` out of `count` samples, ascending; memory grows with the limit. Without one, all."""
    if limit is None or limit >= count:
        return range(count)
    draw = _numbers(seed)
    return sorted(heapq.nsmallest(limit, range(count), key=lambda _: draw()))


def stratified(classes: Sequence[str], limit: int | None, seed: int) -> Sequence[int]:
    """Like `chosen`, with every class in its share as far as whole samples allow."""
    if limit is None or limit >= len(classes):
        return range(len(classes))
    draw, sizes = _numbers(seed), Counter(classes)
    keys = [draw() for _ in classes]
    taken: Counter[str] = Counter()
    depth = {}
    for index in sorted(range(len(classes)), key=keys.__getitem__):
        name = classes[index]
        # The middle of each class comes at the same time, so a prefix of the order holds equal shares.
        depth[index] = (taken[name] + 0.5) / sizes[name]
        taken[name] += 1
    return sorted(sorted(depth, key=lambda i: (depth[i], keys[i]))[:limit])

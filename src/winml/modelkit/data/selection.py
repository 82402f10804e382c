"""Which samples are used when there are more than asked for: chosen with a seed, none twice, in their own order."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence


def _keys(count: int, seed: int) -> list[float]:
    # Of all methods only `random()` promises the same numbers in every version of Python.
    numbers = random.Random(seed).random  # noqa: S311 - a choice, not a secret
    return [numbers() for _ in range(count)]


def chosen(count: int, limit: int | None, seed: int) -> Sequence[int]:
    """Indices of `limit` out of `count` samples, ascending; all of them without a limit."""
    if limit is None or limit >= count:
        return range(count)
    keys = _keys(count, seed)
    return sorted(sorted(range(count), key=keys.__getitem__)[:limit])


def stratified(classes: Sequence[str], limit: int | None, seed: int) -> Sequence[int]:
    """Like `chosen`, with every class in its share as far as whole samples allow."""
    if limit is None or limit >= len(classes):
        return range(len(classes))
    keys, sizes = _keys(len(classes), seed), Counter(classes)
    taken: Counter[str] = Counter()
    depth = {}
    for index in sorted(range(len(classes)), key=keys.__getitem__):
        name = classes[index]
        # The middle of each class comes at the same time, so a prefix of the order holds equal shares.
        depth[index] = (taken[name] + 0.5) / sizes[name]
        taken[name] += 1
    return sorted(sorted(depth, key=lambda i: (depth[i], keys[i]))[:limit])

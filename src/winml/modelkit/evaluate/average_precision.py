"""COCO's average precision over records of images, without numpy: stored records can be judged again."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

OVERLAPS = tuple((50 + 5 * step) / 100 for step in range(10))
"""How much of a box must be right for it to count, from loose to strict."""
_RECALLS = 101
"""Points of recall, 0 to 1, at which precision is looked at."""

Record = Mapping[str, Any]
"""Per class of an image: `objects`, how many there are, and `found`, [score, hits, ignored] of each box.

`hits` and `ignored` are whole numbers with a bit per overlap: right there, neither right nor wrong there.
"""


def _ranked(records: Sequence[Mapping[str, Record]], name: str) -> tuple[int, list[Sequence[Any]]]:
    """How many objects of a class there are, and all boxes, the surest first."""
    mine = [record[name] for record in records if name in record]
    found = [box for one in mine for box in one["found"]]
    return sum(one["objects"] for one in mine), sorted(found, key=lambda box: -box[0])


def _precision(found: Sequence[Sequence[Any]], objects: int, bit: int) -> float:
    """The mean over recalls of the best precision that is had at that recall or above."""
    ignored = [place for place, box in enumerate(found) if box[2] >> bit & 1]
    places = [place for place, box in enumerate(found) if box[1] >> bit & 1 and not box[2] >> bit & 1]
    # Only a hit can raise precision, so that the boxes between two hits need no look.
    precisions = [(hits + 1) / (place + 1 - bisect_left(ignored, place)) for hits, place in enumerate(places)]
    best = 0.0
    for index in reversed(range(len(precisions))):
        best = precisions[index] = max(best, precisions[index])
    recalls = [(hits + 1) / objects for hits in range(len(precisions))]
    total = 0.0
    for point in range(_RECALLS):
        # The product, as COCO has it: a recall that is a point exactly falls to the same side.
        reached = bisect_left(recalls, point * 0.01)
        total += precisions[reached] if reached < len(precisions) else 0.0
    return total / _RECALLS


def average_precision(records: Sequence[Mapping[str, Record]], overlaps: Iterable[int]) -> float | None:
    """The mean over classes that occur and over overlaps, by their number; None where no class occurs."""
    bits = list(overlaps)
    values = []
    for name in sorted({name for record in records for name in record}):
        objects, found = _ranked(records, name)
        if objects:
            values += [_precision(found, objects, bit) for bit in bits]
    return sum(values) / len(values) if values else None

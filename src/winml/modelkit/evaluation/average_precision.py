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


Marked = Sequence[tuple[int, int, int]]
"""Place, hits and ignored of the boxes that are right, or do not count, at some overlap."""


class Ranking:
    """All boxes of all images, class by class, the surest first: ranked once, asked for many parts of the images."""

    def __init__(self, records: Sequence[Mapping[str, Record]]) -> None:
        self._objects: dict[str, list[tuple[int, int]]] = {}
        self._boxes: dict[str, list[tuple[int, int, int]]] = {}
        for name in sorted({name for record in records for name in record}):
            mine = [(index, record[name]) for index, record in enumerate(records) if name in record]
            self._objects[name] = [(index, one["objects"]) for index, one in mine]
            boxes = [(score, index, hits, ignored) for index, one in mine for score, hits, ignored in one["found"]]
            self._boxes[name] = [box[1:] for box in sorted(boxes, key=lambda box: -box[0])]

    def precision(self, images: Iterable[int], overlaps: Sequence[int]) -> float | None:
        """The mean over classes that occur in the images and over overlaps, by number; None where no class occurs."""
        kept, values = set(images), list[float]()
        for name, boxes in self._boxes.items():
            objects = sum(count for index, count in self._objects[name] if index in kept)
            if objects:
                ranked = enumerate((hits, ignored) for index, hits, ignored in boxes if index in kept)
                marked = [(place, hits, ignored) for place, (hits, ignored) in ranked if hits or ignored]
                values += [_precision(marked, objects, bit) for bit in overlaps]
        return sum(values) / len(values) if values else None


def _precision(marked: Marked, objects: int, bit: int) -> float:
    """The mean over recalls of the best precision that is had at that recall or above."""
    passed = [place for place, _, ignored in marked if ignored >> bit & 1]
    places = [place for place, hits, ignored in marked if hits >> bit & 1 and not ignored >> bit & 1]
    # Only a hit can raise precision, so that the boxes between two hits need no look.
    precisions = [(hits + 1) / (place + 1 - bisect_left(passed, place)) for hits, place in enumerate(places)]
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

"""What was found against what there is, as COCO matches them: boxes, masks and keypoints alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.evaluation.average_precision import OVERLAPS

MOST = 100
"""Finds per image and class that count, the surest first."""
_ALMOST_1 = 1 - 1e-10

Floats = npt.NDArray[np.float64]
Found = tuple[Floats, Floats]
"""Scores of finds, and how much each of them overlaps with each of the objects of its class."""


def softmax(logits: Floats) -> Floats:
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=-1, keepdims=True)
    return shares


def sigmoid(logits: Floats) -> Floats:
    made: Floats = 0.5 * (1 + np.tanh(logits / 2))
    return made


def _matches(overlap: Floats, crowd: npt.NDArray[np.bool_], least: float) -> tuple[list[bool], list[bool]]:
    """Which finds, the surest first, are right at an overlap, and which are in a crowd only."""
    free = np.ones(len(crowd), bool)
    right, ignored = [], []
    for row in overlap:
        enough = row >= min(least, _ALMOST_1)
        single = np.flatnonzero(enough & free & ~crowd)
        if single.size:
            # Of equals the last, as COCO has it.
            best = single[len(single) - 1 - int(row[single][::-1].argmax())]
            free[best] = False
        right.append(bool(single.size))
        ignored.append(not single.size and bool((enough & crowd).any()))
    return right, ignored


def _score_found(found: Found, crowd: npt.NDArray[np.bool_]) -> list[list[float]]:
    """Score, overlaps at which it is right and at which it does not count, of each find of a class."""
    scores, overlap = found
    order = np.argsort(-scores, kind="stable")[:MOST]
    hits, passed = np.zeros(len(order), int), np.zeros(len(order), int)
    for bit, least in enumerate(OVERLAPS):
        right, ignored = _matches(overlap[order], crowd, least)
        hits |= np.asarray(right, int) << bit
        passed |= np.asarray(ignored, int) << bit
    return [[float(scores[i]), int(h), int(p)] for i, h, p in zip(order, hits, passed, strict=True)]


def match_record(crowds: Mapping[int, Sequence[bool]], found: Mapping[int, Found]) -> dict[str, Any]:
    """Per class that is present or found: how many objects there are, and the score of each find.

    `crowds` has, by class, whether each object is too many to count: finds inside are neither right nor wrong.
    """
    made = {}
    for number in sorted({*crowds, *found}):
        crowd = np.asarray(crowds.get(number, ()), bool)
        listed = _score_found(found[number], crowd) if number in found else []
        made[str(number)] = {"objects": int((~crowd).sum()), "found": listed}
    return made

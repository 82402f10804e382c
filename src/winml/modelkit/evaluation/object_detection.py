"""Object detection: COCO's average precision of boxes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.data.samples import Sample
from winml.modelkit.evaluation.average_precision import OVERLAPS
from winml.modelkit.evaluation.labels import ClassNames, class_names
from winml.modelkit.evaluation.metrics import Metric
from winml.modelkit.evaluation.task import Outputs, Scored, Setting, Task

LOGITS, BOXES = "logits", "pred_boxes"
MOST = 100
"""Boxes per image and class that count, the surest first."""
SHOWN = 0.5
"""Boxes that are at least this sure are kept as the prediction."""
_ALMOST_1 = 1 - 1e-10

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Object:
    """What there is to find: a class, and left, top, width and height in pixels."""

    number: int
    box: tuple[float, float, float, float]
    crowd: bool
    """Too many to count: boxes inside are neither right nor wrong."""


def _rows(label: Any, where: str) -> list[dict[str, Any]]:
    """A list of objects, also from an object of lists."""
    if isinstance(label, dict) and label and all(isinstance(v, list) for v in label.values()):
        if len({len(v) for v in label.values()}) > 1:
            raise DataError(f"the objects of {where} have lists of different lengths")
        label = [dict(zip(label, values, strict=True)) for values in zip(*label.values(), strict=True)]
    if not isinstance(label, list) or not all(isinstance(row, dict) for row in label):
        raise DataError(
            f"the objects of {where} must be a list but are {label!r:.80}",
            hint='an object is {"bbox": [left, top, width, height], "category": NAME}',
        )
    return label


def _box(row: dict[str, Any], where: str) -> tuple[float, float, float, float]:
    box: Any = row.get("bbox")
    numbers = isinstance(box, list) and len(box) == 4 and all(isinstance(v, int | float) for v in box)
    if not numbers or not all(map(math.isfinite, box)) or min(box[2:]) <= 0:
        raise DataError(f"`bbox` of an object of {where} must be left, top, width, height in pixels but is {box!r:.80}")
    return box[0], box[1], box[2], box[3]


def objects(sample: Sample, names: ClassNames, classes: int) -> list[Object]:
    """The objects of a sample's label."""
    found = []
    for row in _rows(sample.label, sample.where):
        category = next((row[name] for name in ("category", "category_id", "label") if name in row), None)
        number = names.number(category, classes, sample.where)
        found.append(Object(number, _box(row, sample.where), bool(row.get("iscrowd", False))))
    return found


def _overlap(found: Floats, there: Floats, crowd: npt.NDArray[np.bool_]) -> Floats:
    """Shared area over joint area of each pair of boxes; over the found box's own where there is a crowd."""
    low = np.maximum(found[:, None, :2], there[None, :, :2])
    high = np.minimum(found[:, None, :2] + found[:, None, 2:], there[None, :, :2] + there[None, :, 2:])
    shared = np.clip(high - low, 0, None).prod(axis=2)
    mine, theirs = found[:, 2:].prod(axis=1)[:, None], there[:, 2:].prod(axis=1)[None]
    joint = np.where(crowd[None], mine, mine + theirs - shared)
    made: Floats = np.divide(shared, joint, out=np.zeros_like(shared), where=joint > 0)
    return made


def _matches(overlap: Floats, crowd: npt.NDArray[np.bool_], least: float) -> tuple[list[bool], list[bool]]:
    """Which boxes, the surest first, are right at an overlap, and which are in a crowd only."""
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


def _score_boxes(scores: Floats, boxes: Floats, there: Sequence[Object]) -> list[list[float]]:
    """Score, overlaps at which it is right and at which it does not count, of each box of a class."""
    order = np.argsort(-scores, kind="stable")[:MOST]
    crowd = np.asarray([o.crowd for o in there], bool)
    overlap = _overlap(boxes[order], np.asarray([o.box for o in there], np.float64).reshape(-1, 4), crowd)
    hits, passed = np.zeros(len(order), int), np.zeros(len(order), int)
    for bit, least in enumerate(OVERLAPS):
        right, ignored = _matches(overlap, crowd, least)
        hits |= np.asarray(right, int) << bit
        passed |= np.asarray(ignored, int) << bit
    return [[float(scores[i]), int(h), int(p)] for i, h, p in zip(order, hits, passed, strict=True)]


def _softmax(logits: Floats) -> Floats:
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=-1, keepdims=True)
    return shares


def _numbers(run: Outputs, name: str) -> Floats:
    """Rows of numbers, one per query."""
    values = np.asarray(run[name], np.float64)
    if values.ndim != 3:
        raise DataError(f"output `{name}` must be batch, query and number but has {values.ndim} dimensions")
    rows: Floats = values[0]
    return rows


@dataclass(frozen=True)
class BoxScorer:
    """Judges boxes of models like DETR: a class or none, and a box, for each of some queries."""

    names: ClassNames
    notes: tuple[str, ...] = ()

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored:
        logits, boxes = (_numbers(runs[0], name) for name in (LOGITS, BOXES))
        classes = logits.shape[-1] - 1
        there = objects(sample, self.names, classes)
        if sample.size is None:
            raise DataError(
                "object detection needs images: ready inputs do not hold the sizes of the images",
                hint="give a JSONL file with image and objects",
            )
        if not np.isfinite(logits).all() or not np.isfinite(boxes).all():
            return Scored({"boxes": record(there, {})}, None)
        shares = _softmax(logits)[:, :-1]
        numbers, scores = shares.argmax(axis=1), shares.max(axis=1)
        placed = _scale_boxes(boxes, sample.size)
        predicted = {int(n): (scores[numbers == n], placed[numbers == n]) for n in np.unique(numbers)}
        shown = [
            {"category": int(numbers[i]), "score": float(scores[i]), "bbox": placed[i].tolist()}
            for i in np.flatnonzero(scores >= SHOWN)
        ]
        return Scored({"boxes": record(there, predicted)}, shown)


def _scale_boxes(boxes: Floats, size: tuple[int, int]) -> Floats:
    """Left, top, width and height in pixels, from centre, width and height as shares of the image."""
    height, width = size
    corners = np.concatenate([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, 2:]], axis=1)
    placed: Floats = corners * np.asarray([width, height, width, height], np.float64)
    return placed


def record(there: Sequence[Object], predicted: dict[int, tuple[Floats, Floats]]) -> dict[str, Any]:
    """Per class that is present or predicted: how many objects there are, and the score of each box."""
    made = {}
    for number in sorted({o.number for o in there} | set(predicted)):
        mine = [o for o in there if o.number == number]
        found = _score_boxes(*predicted[number], mine) if number in predicted else []
        made[str(number)] = {"objects": sum(not o.crowd for o in mine), "found": found}
    return made


def _scorer(setting: Setting) -> BoxScorer:
    missing = [name for name in (LOGITS, BOXES) if name not in setting.outputs]
    if missing:
        raise DataError(
            f"object detection needs the outputs {LOGITS} and {BOXES}, as DETR and YOLOS have them; "
            f"the model has {', '.join(setting.outputs)}"
        )
    return BoxScorer(class_names(setting.folder))


TASK = Task(
    name="object-detection",
    summary="boxes with a class per image",
    metrics=(Metric("map", "map", "boxes"), Metric("map_50", "map_50", "boxes")),
    scorer=_scorer,
    agreement=False,
)

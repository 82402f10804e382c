"""Object detection: COCO's average precision of boxes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.data.samples import Sample
from winml.modelkit.evaluation.labels import ClassNames, class_names
from winml.modelkit.evaluation.matching import Floats, Found, match_record, sigmoid, softmax
from winml.modelkit.evaluation.metrics import Metric
from winml.modelkit.evaluation.task import Outputs, Scored, Setting, Task

LOGITS, BOXES = "logits", "pred_boxes"
SHOWN = 0.5
"""Boxes that are at least this sure are kept as the prediction."""
PAIRS = 300
"""Pairs of a query and a class that count where a query may be several classes, the surest first."""


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


def read_rows(run: Outputs, name: str) -> Floats:
    """Rows of numbers, one per query."""
    values = np.asarray(run[name], np.float64)
    if values.ndim != 3:
        raise DataError(f"output `{name}` must be batch, query and number but has {values.ndim} dimensions")
    rows: Floats = values[0]
    return rows


@dataclass(frozen=True)
class BoxScorer:
    """Judges boxes of models like DETR: a class or none, and a box, for each of some queries.

    Where there are as many numbers as classes, none of them stands for no class and each is a share of its own.
    """

    names: ClassNames
    prompted: bool = False
    """Whether the classes are those of the prompts."""
    notes: tuple[str, ...] = ()

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored:
        logits, boxes = (read_rows(runs[0], name) for name in (LOGITS, BOXES))
        names = ClassNames({name: i for i, name in enumerate(sample.classes)}) if self.prompted else self.names
        apart = len(names.numbers) == logits.shape[-1]
        classes = logits.shape[-1] - (not apart)
        there = objects(sample, names, classes)
        if sample.size is None:
            raise DataError(
                "object detection needs images: ready inputs do not hold the sizes of the images",
                hint="give a JSONL file with image and objects",
            )
        if not np.isfinite(logits).all() or not np.isfinite(boxes).all():
            return Scored({"boxes": record(there, {})}, None)
        queries, numbers, scores = find_surest(logits, apart=apart)
        placed = scale_boxes(boxes, sample.size)[queries]
        predicted = {int(n): (scores[numbers == n], placed[numbers == n]) for n in np.unique(numbers)}
        shown = [
            {"category": int(numbers[i]), "score": float(scores[i]), "bbox": placed[i].tolist()}
            for i in np.flatnonzero(scores >= SHOWN)
        ]
        return Scored({"boxes": record(there, predicted)}, shown)


def find_surest(logits: Floats, *, apart: bool) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], Floats]:
    """Queries, their classes and how sure they are: the surest class of each, or the surest of all pairs."""
    if not apart:
        shares = softmax(logits)[:, :-1]
        return np.arange(len(shares)), shares.argmax(axis=1), shares.max(axis=1)
    shares = sigmoid(logits)
    order = np.argsort(-shares, axis=None, kind="stable")[:PAIRS]
    queries, numbers = np.unravel_index(order, shares.shape)
    return queries, numbers, shares[queries, numbers]


def scale_boxes(boxes: Floats, size: tuple[int, int]) -> Floats:
    """Left, top, width and height in pixels, from centre, width and height as shares of the image."""
    height, width = size
    corners = np.concatenate([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, 2:]], axis=1)
    placed: Floats = corners * np.asarray([width, height, width, height], np.float64)
    return placed


def record(there: Sequence[Object], predicted: dict[int, tuple[Floats, Floats]]) -> dict[str, Any]:
    """Per class that is present or predicted: how many objects there are, and the score of each box."""
    mine: dict[int, list[Object]] = {}
    for one in there:
        mine.setdefault(one.number, []).append(one)
    found: dict[int, Found] = {}
    for number, (scores, boxes) in predicted.items():
        objects_of = mine.get(number, [])
        crowd = np.asarray([o.crowd for o in objects_of], bool)
        placed = np.asarray([o.box for o in objects_of], np.float64).reshape(-1, 4)
        found[number] = (scores, _overlap(boxes, placed, crowd))
    return match_record({number: [o.crowd for o in ones] for number, ones in mine.items()}, found)


def _scorer(setting: Setting) -> BoxScorer:
    missing = [name for name in (LOGITS, BOXES) if name not in setting.outputs]
    if missing:
        raise DataError(
            f"object detection needs the outputs {LOGITS} and {BOXES}, as DETR and YOLOS have them; "
            f"the model has {', '.join(setting.outputs)}"
        )
    return BoxScorer(class_names(setting.folder))


def _prompted_scorer(setting: Setting) -> BoxScorer:
    return replace(_scorer(setting), names=ClassNames({}), prompted=True)


TASK = Task(
    name="object-detection",
    summary="boxes with a class per image",
    metrics=(Metric("map", "map", "boxes"), Metric("map_50", "map_50", "boxes")),
    scorer=_scorer,
    agreement=False,
)

ZERO_SHOT_TASK = Task(
    name="zero-shot-object-detection",
    summary="boxes with a class of the data per image, from the texts of all",
    metrics=(Metric("map", "map", "boxes"), Metric("map_50", "map_50", "boxes")),
    scorer=_prompted_scorer,
    form="prompts",
    agreement=False,
)

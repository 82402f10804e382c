"""Instance and panoptic segmentation with models like MaskFormer: a class and a mask for each of some queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.data.samples import Sample
from winml.modelkit.evaluation.labels import ClassNames, class_names
from winml.modelkit.evaluation.matching import MOST, Floats, Found, match_record, sigmoid, softmax
from winml.modelkit.evaluation.metrics import Metric
from winml.modelkit.evaluation.segmentation import upsample
from winml.modelkit.evaluation.task import Outputs, Scored, Setting, Task

CLASSES, MASKS = "class_queries_logits", "masks_queries_logits"
SURE, KEPT = 0.5, 0.8
"""Of panoptic segments: how sure a query must be, and how much of its mask must not belong to surer ones."""
MATCHED = 0.5
"""A segment is found when more than this share of both is shared."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Segment:
    """What there is: a class and its pixels."""

    number: int
    mask: Mask
    crowd: bool
    thing: bool


def segments_of(sample: Sample, names: ClassNames, classes: int) -> tuple[list[Segment], Mask]:
    """The segments of a sample's label, and the pixels that belong to none."""
    label: Any = sample.label
    ids = label.get("ids") if isinstance(label, dict) else None
    listed = label.get("segments") if isinstance(label, dict) else None
    if not isinstance(ids, np.ndarray) or not isinstance(listed, list) or not all(isinstance(s, dict) for s in listed):
        raise DataError(
            f"the segments of {sample.where} must be an image of numbers and a list of what they are",
            hint='a row has {"image": ..., "segments": "a.png", "segments_info": [{"id": 1, "category": NAME}]}',
        )
    found, known = [], np.zeros(ids.shape, bool)
    for one in listed:
        category = next((one[key] for key in ("category", "category_id", "label") if key in one), None)
        mask = ids == one.get("id")
        known |= mask
        if mask.any():
            number = names.number(category, classes, sample.where)
            found.append(Segment(number, mask, bool(one.get("iscrowd", False)), bool(one.get("isthing", True))))
    return found, ~known


def _queries(run: Outputs) -> tuple[Floats, npt.NDArray[np.float32]]:
    logits, masks = np.asarray(run[CLASSES], np.float64), np.asarray(run[MASKS], np.float32)
    if logits.ndim != 3 or masks.ndim != 4 or logits.shape[1] != masks.shape[1]:
        raise DataError(
            f"outputs `{CLASSES}` and `{MASKS}` have shapes {list(logits.shape)} and {list(masks.shape)}; they need "
            "batch, query, class and batch, query, height, width"
        )
    return logits[0], masks[0]


def find_instances(
    logits: Floats, masks: npt.NDArray[np.float32], size: tuple[int, int]
) -> list[tuple[int, float, Mask]]:
    """Class, score and pixels of the surest pairs of query and class, as Mask2Former's processor has it."""
    shares = softmax(logits)[:, :-1]
    order = np.argsort(-shares, axis=None, kind="stable")[: min(MOST, len(shares))]
    grown: dict[int, tuple[Mask, float]] = {}
    found = []
    for place in order:
        query, number = divmod(int(place), shares.shape[1])
        if query not in grown:
            values = upsample(masks[query : query + 1], size)[0]
            mask = values > 0
            sure = float(sigmoid(values[mask].astype(np.float64)).mean()) if mask.any() else 0.0
            grown[query] = (mask, sure)
        mask, sure = grown[query]
        if mask.any():
            found.append((number, float(shares[query, number]) * sure, mask))
    return found


@dataclass(frozen=True)
class InstanceScorer:
    """Judges the masks of things."""

    names: ClassNames
    notes: tuple[str, ...] = ()

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored:
        logits, masks = _queries(runs[0])
        everything, _ = segments_of(sample, self.names, logits.shape[1] - 1)
        there: dict[int, list[Segment]] = {}
        for segment in everything:
            if segment.thing:
                there.setdefault(segment.number, []).append(segment)
        crowds = {number: [s.crowd for s in ones] for number, ones in there.items()}
        if not np.isfinite(logits).all() or not np.isfinite(masks).all():
            return Scored({"masks": match_record(crowds, {})}, None)
        instances = find_instances(logits, masks, _size(sample))
        found: dict[int, Found] = {}
        for number in {number for number, _, _ in instances}:
            mine = [(score, mask) for n, score, mask in instances if n == number]
            overlap = np.asarray([[_overlap(mask, s) for s in there.get(number, [])] for _, mask in mine], np.float64)
            scores = np.asarray([score for score, _ in mine])
            found[number] = (scores, overlap.reshape(len(mine), len(there.get(number, []))))
        shown = [{"category": n, "score": s, "pixels": int(m.sum())} for n, s, m in instances if s >= SURE]
        return Scored({"masks": match_record(crowds, found)}, shown)


def _size(sample: Sample) -> tuple[int, int]:
    height, width = sample.label["ids"].shape
    return height, width


def _overlap(mask: Mask, segment: Segment) -> float:
    """Shared pixels over those of either; over the find's own where there is a crowd."""
    shared = float((mask & segment.mask).sum())
    whole = float(mask.sum() if segment.crowd else (mask | segment.mask).sum())
    return shared / whole if whole else 0.0


def find_segments(
    logits: Floats, masks: npt.NDArray[np.float32], size: tuple[int, int], stuff: set[int]
) -> list[tuple[int, Mask]]:
    """Class and pixels of segments that do not overlap, as MaskFormer's processor has it; stuff is one per class."""
    shares = softmax(logits)
    numbers, scores = shares.argmax(axis=1), shares.max(axis=1)
    kept = np.flatnonzero((numbers < shares.shape[1] - 1) & (scores > SURE))
    if not len(kept):
        return []
    grown = upsample(sigmoid(masks[kept].astype(np.float64)).astype(np.float32), size).astype(np.float64)
    winner = (grown * scores[kept][:, None, None]).argmax(axis=0)
    found: list[tuple[int, Mask]] = []
    fused: dict[int, int] = {}
    for place, query in enumerate(kept):
        own, mine = grown[place] >= SURE, winner == place
        if not mine.any() or not own.any() or mine.sum() / own.sum() <= KEPT:
            continue
        number = int(numbers[query])
        if number in stuff and number in fused:
            found[fused[number]] = (number, found[fused[number]][1] | mine)
            continue
        fused[number] = len(found)
        found.append((number, mine))
    return found


def panoptic_record(there: Sequence[Segment], void: Mask, found: Sequence[tuple[int, Mask]]) -> dict[str, list[float]]:
    """Per class: sum of overlaps of matched segments, and how many are matched, found alone and there alone."""
    made: dict[int, list[float]] = {}
    open_there = [s for s in there if not s.crowd]
    for number, mask in found:
        counts = made.setdefault(number, [0.0] * 4)
        for segment in [s for s in open_there if s.number == number]:
            shared = float((mask & segment.mask).sum())
            either = float(mask.sum() + segment.mask.sum() - (mask & void).sum()) - shared
            if either and shared / either > MATCHED:
                counts[0] += shared / either
                counts[1] += 1
                open_there = [s for s in open_there if s is not segment]
                break
        else:
            passed = void | np.any([s.mask for s in there if s.crowd and s.number == number], axis=0)
            counts[2] += float((mask & passed).sum() / mask.sum() <= MATCHED)
    for segment in open_there:
        made.setdefault(segment.number, [0.0] * 4)[3] += 1
    return {str(number): counts for number, counts in sorted(made.items()) if any(counts)}


@dataclass(frozen=True)
class PanopticScorer:
    """Judges segments of things and stuff that do not overlap."""

    names: ClassNames
    notes: tuple[str, ...] = ()

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored:
        logits, masks = _queries(runs[0])
        there, void = segments_of(sample, self.names, logits.shape[1] - 1)
        if not np.isfinite(logits).all() or not np.isfinite(masks).all():
            return Scored({"segments": panoptic_record(there, void, [])}, None)
        stuff = {s.number for s in there if not s.thing}
        found = find_segments(logits, masks, _size(sample), stuff)
        shown = [{"category": number, "pixels": int(mask.sum())} for number, mask in found]
        return Scored({"segments": panoptic_record(there, void, found)}, shown)


def _check(setting: Setting) -> ClassNames:
    missing = [name for name in (CLASSES, MASKS) if name not in setting.outputs]
    if missing:
        raise DataError(
            f"segments need the outputs {CLASSES} and {MASKS}, as MaskFormer and Mask2Former have them; the model has "
            f"{', '.join(setting.outputs)}"
        )
    return class_names(setting.folder)


INSTANCE_TASK = Task(
    name="instance-segmentation",
    summary="masks with a class per image",
    metrics=(Metric("mask_map", "map", "masks"), Metric("mask_map_50", "map_50", "masks")),
    scorer=lambda setting: InstanceScorer(_check(setting)),
    form="segments",
    agreement=False,
)
PANOPTIC_TASK = Task(
    name="panoptic-segmentation",
    summary="a segment with a class per pixel",
    metrics=(Metric("pq", "pq", "segments"),),
    scorer=lambda setting: PanopticScorer(_check(setting)),
    form="segments",
    agreement=False,
)

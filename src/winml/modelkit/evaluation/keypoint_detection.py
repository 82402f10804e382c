"""Keypoint detection with heat maps: how near the points of a person are to those that people marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.data.keypoint_crops import Crop
from winml.modelkit.data.samples import Sample
from winml.modelkit.evaluation.matching import match_record
from winml.modelkit.evaluation.metrics import Metric
from winml.modelkit.evaluation.task import Outputs, Scored, Setting, Task

NEAR = 0.1
"""A point is right within this share of the larger edge of the person's box."""
SIGMAS = np.asarray(
    [
        0.026,
        0.025,
        0.025,
        0.035,
        0.035,
        0.079,
        0.079,
        0.072,
        0.072,
        0.062,
        0.062,
        0.107,
        0.107,
        0.087,
        0.087,
        0.089,
        0.089,
    ]
)
"""How far people differ about each of COCO's 17 points, as a share of the size of the person."""
SIGMA = 0.05
"""For other points."""

Floats = npt.NDArray[np.float64]


def peaks(maps: Floats) -> tuple[Floats, Floats]:
    """Where each heat map is highest, a quarter of a pixel towards the higher neighbour, and how high."""
    count, height, width = maps.shape
    flat = maps.reshape(count, -1)
    down, across = np.divmod(flat.argmax(axis=1), width)
    points = np.stack([across, down], axis=1).astype(np.float64)
    for index, (x, y) in enumerate(zip(across, down, strict=True)):
        if 0 < x < width - 1:
            points[index, 0] += 0.25 * np.sign(maps[index, y, x + 1] - maps[index, y, x - 1])
        if 0 < y < height - 1:
            points[index, 1] += 0.25 * np.sign(maps[index, y + 1, x] - maps[index, y - 1, x])
    return points, flat.max(axis=1)


def keypoint_similarity(points: Floats, right: Floats, area: float) -> float:
    """COCO's OKS: 1 where all visible points are exact, less the farther they are off for the size of the person."""
    seen = right[:, 2] > 0
    sigmas = SIGMAS if len(right) == len(SIGMAS) else np.full(len(right), SIGMA)
    squares = ((points - right[:, :2]) ** 2).sum(axis=1)
    exponents = squares / (2 * (2 * sigmas) ** 2 * (area + np.spacing(1)))
    return float(np.exp(-exponents[seen]).mean())


@dataclass(frozen=True)
class PointsScorer:
    """Judges the highest place of each heat map, in pixels of the image."""

    output: str
    notes: tuple[str, ...]

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored:
        right, box, area = _label(sample)
        maps = np.asarray(runs[0][self.output], np.float64)
        crop = sample.about.get("crop")
        if maps.ndim != 4 or maps.shape[1] != len(right) or not isinstance(crop, Crop):
            raise DataError(
                f"output `{self.output}` has shape {list(maps.shape)}; {sample.where} needs a heat map for each of "
                f"{len(right)} keypoints",
                hint="models that give points are not supported; `--task outputs` compares their outputs",
            )
        seen = right[:, 2] > 0
        values: dict[str, Any] = {"right": 0.0, "points": float(seen.sum())}
        if not np.isfinite(maps).all():
            return Scored({**values, "persons": match_record({0: [False]}, {})}, None)
        found, heights = peaks(maps[0])
        points = crop.back(found, (maps.shape[2], maps.shape[3]))
        near = np.sqrt(((points - right[:, :2]) ** 2).sum(axis=1)) <= NEAR * max(box[2:])
        similarity = np.asarray([[keypoint_similarity(points, right, area)]])
        persons = match_record({0: [False]}, {0: (np.asarray([heights[seen].mean()]), similarity)})
        return Scored({**values, "right": float((near & seen).sum()), "persons": persons}, points.round(2).tolist())


def _label(sample: Sample) -> tuple[Floats, Sequence[float], float]:
    label: Any = sample.label
    points = label.get("keypoints") if isinstance(label, dict) else None
    if not isinstance(points, np.ndarray) or points.ndim != 2 or points.shape[1] != 3 or not (points[:, 2] > 0).any():
        raise DataError(f"the keypoints of {sample.where} must be x, y and whether it is visible, of each point")
    return points, label["bbox"], float(label["area"])


def _scorer(setting: Setting) -> PointsScorer:
    output, note = setting.pick("heatmaps")
    return PointsScorer(output, (note,) if note else ())


TASK = Task(
    name="keypoint-detection",
    summary="the points of a person in an image",
    metrics=(
        Metric("oks_map", "map", "persons"),
        Metric("oks_map_50", "map_50", "persons"),
        Metric("pck", "ratio", "right", ("points",)),
    ),
    scorer=_scorer,
    form="keypoints",
    agreement=False,
)

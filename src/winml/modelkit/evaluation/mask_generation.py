"""Mask generation: how much the mask that a model gives for points overlaps with the object's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.data.samples import Sample
from winml.modelkit.evaluation.metrics import Metric
from winml.modelkit.evaluation.segmentation import upsample
from winml.modelkit.evaluation.task import Outputs, Scored, Setting, Task, plain

MASKS, SCORES, PIXELS = "pred_masks", "iou_scores", "pixel_values"


def overlap(first: npt.NDArray[np.bool_], second: npt.NDArray[np.bool_]) -> float:
    """Shared pixels over those of either."""
    either = int((first | second).sum())
    return int((first & second).sum()) / either if either else 0.0


@dataclass(frozen=True)
class PointScorer:
    """Judges the mask that the model itself scores highest, and the best of those it gives."""

    output: str
    scores: str | None
    notes: tuple[str, ...]

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored:
        right: Any = sample.label
        if not isinstance(right, np.ndarray) or right.ndim != 2 or right.dtype != np.bool_ or not right.any():
            raise DataError(f"the mask of {sample.where} must mark some pixels")
        masks = np.asarray(runs[0][self.output], np.float32)
        resized = sample.about.get("resized")
        if masks.ndim < 4 or resized is None:
            raise DataError(
                f"output `{self.output}` has shape {list(masks.shape)}; masks need batch, mask, height and width",
                hint="ready inputs do not hold the sizes of images; give a .jsonl file with image, points and mask",
            )
        flat = masks.reshape(-1, *masks.shape[-2:])
        scores = np.zeros(len(flat)) if self.scores is None else plain(runs[0][self.scores])
        if len(scores) != len(flat):
            raise DataError(f"output `{self.scores}` has {len(scores)} numbers for {len(flat)} masks")
        if not np.isfinite(flat).all() or not np.isfinite(scores).all():
            return Scored({"chosen": 0.0, "best": 0.0}, None)
        size: tuple[int, int] = (right.shape[0], right.shape[1])
        whole = sample.inputs[PIXELS].shape[-2:] if PIXELS in sample.inputs else flat.shape[-2:]
        made = upsample(upsample(flat, (whole[0], whole[1]))[:, : resized[0], : resized[1]], size) > 0
        overlaps = [overlap(mask, right) for mask in made]
        chosen = int(scores.argmax())
        return Scored(
            {"chosen": overlaps[chosen], "best": max(overlaps)}, {"mask": chosen, "pixels": int(made[chosen].sum())}
        )


def _scorer(setting: Setting) -> PointScorer:
    output, note = setting.pick(MASKS)
    scores = SCORES if SCORES in setting.outputs else None
    first = None if scores else f"the model has no output `{SCORES}`, so its first mask is judged"
    return PointScorer(output, scores, tuple(n for n in (note, first) if n))


TASK = Task(
    name="mask-generation",
    summary="a mask per object, from points on it",
    metrics=(Metric("mean_iou", "mean", "chosen"), Metric("best_iou", "mean", "best")),
    scorer=_scorer,
    form="points",
    agreement=False,
)

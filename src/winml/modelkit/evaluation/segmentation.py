"""Semantic segmentation: how much the areas of classes overlap with those of the mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.data import processor
from winml.modelkit.data.image_config import CONFIG, read_steps
from winml.modelkit.data.samples import Sample
from winml.modelkit.evaluation.metrics import Metric
from winml.modelkit.evaluation.task import Outputs, Scored, Setting, Task

USUAL = ("logits",)
IGNORED = 255
"""Pixels of a mask that are not judged."""

Ints = npt.NDArray[np.int64]


def _weights(given: int, wanted: int) -> tuple[Ints, Ints, npt.NDArray[np.float32]]:
    """For each wanted pixel of a row: its two neighbours among the given, and how much the second weighs."""
    centres = np.clip((np.arange(wanted) + 0.5) * given / wanted - 0.5, 0, None)
    low = np.minimum(centres.astype(np.int64), given - 1)
    return low, np.minimum(low + 1, given - 1), (centres - low).astype(np.float32)


def upsample(logits: npt.NDArray[np.float32], size: tuple[int, int]) -> npt.NDArray[np.float32]:
    """Classes x height x width brought to a size, linear between centres of pixels, as torch does it."""
    low, high, share = _weights(logits.shape[1], size[0])
    rows = logits[:, low] * (1 - share)[None, :, None] + logits[:, high] * share[None, :, None]
    low, high, share = _weights(logits.shape[2], size[1])
    return (rows[:, :, low] * (1 - share) + rows[:, :, high] * share).astype(np.float32)


@dataclass(frozen=True)
class MaskScorer:
    """Judges the class of every pixel at the size of the mask."""

    output: str
    reduce_labels: bool
    """Whether 0 in a mask is no class and 1 is the model's first."""
    notes: tuple[str, ...]

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored:
        logits = np.asarray(runs[0][self.output], np.float32)
        if logits.ndim != 4:
            raise DataError(
                f"output `{self.output}` has {logits.ndim} dimensions; areas need batch, class, height and width",
                hint="name the output with the classes: `--output-name NAME`",
            )
        classes = logits.shape[1]
        mask = self._mask(sample, classes)
        judged = mask != IGNORED
        if not np.isfinite(logits).all():
            return Scored(_values(mask[judged], np.full(int(judged.sum()), -1), classes), None)
        predicted = upsample(logits[0], (mask.shape[0], mask.shape[1])).argmax(axis=0)
        shares = np.bincount(predicted.ravel(), minlength=classes) / predicted.size
        return Scored(
            _values(mask[judged], predicted[judged], classes),
            {str(c): float(shares[c]) for c in np.flatnonzero(shares)},
        )

    def _mask(self, sample: Sample, classes: int) -> Ints:
        label: Any = sample.label
        mask = np.asarray(label if isinstance(label, np.ndarray | list) else [])
        if mask.ndim != 2 or mask.dtype.kind not in "iub":
            raise DataError(f"the mask of {sample.where} must have the number of a class in each pixel")
        made = mask.astype(np.int64)
        if self.reduce_labels:
            made = np.where((made == 0) | (made == IGNORED), IGNORED, made - 1)
        unknown = made[(made != IGNORED) & ((made < 0) | (made >= classes))]
        if unknown.size:
            raise DataError(
                f"the mask of {sample.where} has class {int(unknown[0])} but the model has {classes} classes",
                hint=f"pixels without a class are {IGNORED}",
            )
        return made


def _values(right: Ints, predicted: Ints, classes: int) -> dict[str, Any]:
    """Pixels that were right, and per class those that both sides gave it and those that either did."""
    there = np.bincount(right, minlength=classes)
    given = np.bincount(predicted[predicted >= 0], minlength=classes)
    shared = np.bincount(right[right == predicted], minlength=classes)
    either = there + given - shared
    overlap = {str(c): [int(shared[c]), int(either[c])] for c in np.flatnonzero(either)}
    return {"overlap": overlap, "right": float(shared.sum()), "pixels": float(right.size)}


def _scorer(setting: Setting) -> MaskScorer:
    output, note = setting.pick(*USUAL)
    path = processor.find(setting.folder, CONFIG)
    reduce_labels = path is not None and read_steps(path).reduce_labels
    reduced = "0 in a mask is no class and 1 the model's first, according to its processor" if reduce_labels else None
    return MaskScorer(output, reduce_labels, tuple(n for n in (note, reduced) if n))


TASK = Task(
    name="image-segmentation",
    summary="a class per pixel",
    metrics=(Metric("mean_iou", "mean_iou", "overlap"), Metric("pixel_accuracy", "ratio", "right", ("pixels",))),
    scorer=_scorer,
    form="mask",
    agreement=False,
)

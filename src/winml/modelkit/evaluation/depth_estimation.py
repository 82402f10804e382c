"""Depth estimation: how far predicted depths are from measured ones, pixel by pixel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.data import processor
from winml.modelkit.data.samples import Sample
from winml.modelkit.evaluation.labels import CONFIG
from winml.modelkit.evaluation.metrics import Metric
from winml.modelkit.evaluation.segmentation import upsample
from winml.modelkit.evaluation.task import Outputs, Scored, Setting, Task

NEAR = 1.25
"""A depth is right when it is less than this many times the measured one, either way."""
RELATIVE = ("dpt", "depth_anything")
"""Families that give nearness without a scale, unless their config says `metric`."""
_LEAST = 1e-3
"""Metres; an aligned depth is not less."""

Floats = npt.NDArray[np.float64]


def align(nearness: Floats, depths: Floats) -> Floats:
    """Depths from nearness without a scale: factor and shift that fit 1/depth best (least squares)."""
    system = np.stack([nearness, np.ones_like(nearness)], axis=1)
    (factor, shift), *_ = np.linalg.lstsq(system, 1.0 / depths, rcond=None)
    made: Floats = 1.0 / np.maximum(factor * nearness + shift, 1.0 / depths.max() / 10)
    return made


def depth_errors(predicted: Floats, depths: Floats) -> dict[str, float]:
    """Share of pixels that are near, mean relative error and root of the mean squared error in metres."""
    kept = np.maximum(predicted, _LEAST)
    off = np.maximum(kept / depths, depths / kept)
    return {
        "near": float((off < NEAR).mean()),
        "relative": float((np.abs(kept - depths) / depths).mean()),
        "rmse": float(np.sqrt(((kept - depths) ** 2).mean())),
    }


@dataclass(frozen=True)
class DepthScorer:
    """Judges the depth of every pixel that was measured, at the size of the depth map."""

    output: str
    relative: bool
    notes: tuple[str, ...]

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored:
        depths = _depths(sample)
        values = np.asarray(runs[0][self.output], np.float32)
        if values.ndim not in (3, 4) or values.shape[0] != 1 or (values.ndim == 4 and values.shape[1] != 1):
            raise DataError(
                f"output `{self.output}` has shape {list(values.shape)}; depths need batch, height and width",
                hint="name the output with the depths: `--output-name NAME`",
            )
        measured = np.isfinite(depths) & (depths > 0)
        if not np.isfinite(values).all():
            return Scored({"near": 0.0, "relative": None, "rmse": None}, None)
        grown = upsample(values.reshape(1, *values.shape[-2:]), (depths.shape[0], depths.shape[1]))[0]
        predicted = np.asarray(grown, np.float64)[measured]
        if self.relative:
            predicted = align(predicted, depths[measured])
        return Scored(depth_errors(predicted, depths[measured]), {"median": float(np.median(predicted))})


def _depths(sample: Sample) -> Floats:
    label: Any = sample.label
    if not isinstance(label, np.ndarray) or label.ndim != 2 or label.dtype.kind not in "fiu":
        raise DataError(f"the depth map of {sample.where} must have a depth in metres for each pixel")
    if not (np.isfinite(label) & (label > 0)).any():
        raise DataError(f"the depth map of {sample.where} has no pixel above 0")
    return label.astype(np.float64)


def _scorer(setting: Setting) -> DepthScorer:
    output, note = setting.pick("predicted_depth")
    path = processor.find(setting.folder, CONFIG)
    config = processor.read_object(path) if path else {}
    relative = config.get("model_type") in RELATIVE and config.get("depth_estimation_type") != "metric"
    said = (
        "the model gives nearness without a scale: factor and shift are fitted to each image before it is judged"
        if relative
        else "depths are judged as metres, without a fit"
    )
    return DepthScorer(output, relative, tuple(n for n in (note, said) if n))


TASK = Task(
    name="depth-estimation",
    summary="a depth per pixel",
    metrics=(
        Metric("delta1", "mean", "near"),
        Metric("abs_rel", "number", "relative", lower=True),
        Metric("rmse", "number", "rmse", lower=True),
    ),
    scorer=_scorer,
    form="depth",
    agreement=False,
)

"""Image to image: how near the image that a model makes is to the one it should make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.data.samples import Sample
from winml.modelkit.evaluation.metrics import Metric
from winml.modelkit.evaluation.task import Outputs, Scored, Setting, Task

MOST_DB = 100.0
"""Equal images have no noise; this stands for that."""
_WINDOW, _SIGMA = 11, 1.5
_C1, _C2 = 0.01**2, 0.03**2

Floats = npt.NDArray[np.float64]


def psnr_db(made: Floats, right: Floats) -> float:
    """Signal over noise in decibels, of values from 0 to 1."""
    noise = float(((made - right) ** 2).mean())
    return min(MOST_DB, float(-10 * np.log10(noise))) if noise > 0 else MOST_DB


def _blur(values: Floats, kernel: Floats) -> Floats:
    """Weighted means over windows that lie inside, along height and width."""
    for axis in (0, 1):
        windows = np.lib.stride_tricks.sliding_window_view(values, len(kernel), axis=axis)
        values = windows @ kernel
    return values


def ssim(made: Floats, right: Floats) -> float:
    """Structural similarity (Wang and others, 2004) of values from 0 to 1, the mean over colours."""
    size = min(_WINDOW, *(edge - 1 + edge % 2 for edge in right.shape[:2]))
    places = np.arange(size) - size // 2
    kernel = np.exp(-(places**2) / (2 * _SIGMA**2))
    kernel /= kernel.sum()
    first, second = _blur(made, kernel), _blur(right, kernel)
    spread = _blur(made**2, kernel) - first**2, _blur(right**2, kernel) - second**2
    shared = _blur(made * right, kernel) - first * second
    above = (2 * first * second + _C1) * (2 * shared + _C2)
    below = (first**2 + second**2 + _C1) * (spread[0] + spread[1] + _C2)
    return float((above / below).mean())


@dataclass(frozen=True)
class ImageScorer:
    """Judges an image with values from 0 to 1; what is more than the target at the right and below was filled up."""

    output: str
    notes: tuple[str, ...]

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored:
        label: Any = sample.label
        if not isinstance(label, np.ndarray) or label.ndim != 3 or label.dtype != np.uint8:
            raise DataError(f"the target of {sample.where} must be an image")
        values = np.asarray(runs[0][self.output], np.float64)
        height, width = label.shape[:2]
        if values.ndim != 4 or values.shape[1] not in (1, 3) or values.shape[2] < height or values.shape[3] < width:
            raise DataError(
                f"output `{self.output}` has shape {list(values.shape)}; {sample.where} needs batch, colours and at "
                f"least {height} x {width} pixels",
                hint="the target must have the size of the image that the model makes",
            )
        if not np.isfinite(values).all():
            return Scored({"psnr": None, "ssim": None}, None)
        right = label.astype(np.float64) / 255.0
        made = np.clip(values[0, :, :height, :width].transpose(1, 2, 0), 0.0, 1.0)
        right = right.mean(axis=2, keepdims=True) if made.shape[2] == 1 else right
        return Scored({"psnr": psnr_db(made, right), "ssim": ssim(made, right)}, {"mean": float(made.mean())})


def _scorer(setting: Setting) -> ImageScorer:
    output, note = setting.pick("reconstruction", "output", "sample")
    return ImageScorer(output, (note,) if note else ())


TASK = Task(
    name="image-to-image",
    summary="an image per image",
    metrics=(Metric("psnr_db", "number", "psnr"), Metric("ssim", "number", "ssim")),
    scorer=_scorer,
    form="target",
    agreement=False,
)

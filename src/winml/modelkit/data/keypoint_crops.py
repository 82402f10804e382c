"""A person cut out of an image, as VitPose's processor does it, and the way back to pixels of the image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.limits import check_sample
from winml.modelkit.data.extras import extra
from winml.modelkit.data.images import ImageEncoder, decode_image
from winml.modelkit.data.samples import Sample

PADDING = 1.25
"""How much more than the box is cut out."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Crop:
    """The part of an image that becomes the input: its centre, its width and height, and the size it gets."""

    centre: tuple[float, float]
    span: tuple[float, float]
    size: tuple[int, int]
    """Height and width."""

    @staticmethod
    def around(box: Sequence[float], size: Any) -> Crop:
        """The box with its surroundings, in the proportions of the input."""
        if not isinstance(size, tuple):
            raise DataError("keypoints need a processor with height and width, as VitPose's has")
        left, top, width, height = box
        aspect = size[1] / size[0]
        wide = max(width, height * aspect)
        span = (wide * PADDING, wide / aspect * PADDING)
        return Crop((left + width / 2, top + height / 2), span, (size[0], size[1]))

    def back(self, points: Floats, size: tuple[int, int]) -> Floats:
        """Points of a map of this height and width as pixels of the image."""
        edges = np.asarray([size[1] - 1, size[0] - 1], np.float64)
        span, centre = np.asarray(self.span), np.asarray(self.centre)
        made: Floats = points / np.maximum(edges, 1) * span + centre - span / 2
        return made


def cut_out(encoder: ImageEncoder, content: bytes, crop: Crop, where: str) -> Sample:
    """The crop as a sample, linear between pixels and black outside the image."""
    image = decode_image(content, "RGB", where)
    height, width = crop.size
    check_sample(height * width * 96, f"{where}, cut out as {width} x {height}")
    across = crop.back(np.stack([np.arange(width), np.zeros(width)], axis=1), crop.size)[:, 0]
    down = crop.back(np.stack([np.zeros(height), np.arange(height)], axis=1), crop.size)[:, 1]
    taken = _bilinear(np.asarray(image, np.float64), down, across)
    pil = extra("PIL.Image", name="vision", what="reading images")
    cut = pil.fromarray(np.clip(taken, 0, 255).round().astype(np.uint8))
    made = replace(encoder, steps=replace(encoder.steps, resize=None)).decoded(cut, where)
    return replace(made, size=(image.height, image.width))


def _bilinear(pixels: Floats, down: Floats, across: Floats) -> Floats:
    """Values at rows `down` and columns `across`, which may lie outside."""
    for axis, places in ((0, down), (1, across)):
        low = np.floor(places).astype(np.int64)
        share = places - low
        size = pixels.shape[axis]
        parts = []
        for index, weight in ((low, 1 - share), (low + 1, share)):
            inside = (index >= 0) & (index < size)
            shape = [1] * pixels.ndim
            shape[axis] = -1
            parts.append(np.take(pixels, np.clip(index, 0, size - 1), axis=axis) * (weight * inside).reshape(shape))
        pixels = parts[0] + parts[1]
    return pixels

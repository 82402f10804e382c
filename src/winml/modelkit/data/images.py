"""Images as a model takes them: decoded by Pillow, brought to size and to floats, one at a time.

The arithmetic is that of transformers' numpy image processors: Pillow resizes the 8-bit image, the crop is centred, and
only then pixels become floats. Its torchvision processors resample slightly differently.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.errors import DataError
from winml.modelkit.data import processor
from winml.modelkit.data.arrays import as_input
from winml.modelkit.data.extras import extra
from winml.modelkit.data.image_config import CONFIG, HINT, Steps, read_steps
from winml.modelkit.data.samples import Wanted
from winml.modelkit.graph.inputs import Arrays, Input
from winml.modelkit.store import digest


def _target(width: int, height: int, resize: int | tuple[int, int]) -> tuple[int, int]:
    """Width and height after resizing."""
    if isinstance(resize, tuple):
        return resize[1], resize[0]
    long = int(resize * max(width, height) / min(width, height))
    return (resize, long) if width <= height else (long, resize)


def _cropped(pixels: npt.NDArray[Any], size: tuple[int, int]) -> npt.NDArray[Any]:
    """The centre of height x width x channels; where the image is smaller, zeros around it."""
    grown = [(0, 0)] * pixels.ndim
    for axis in (0, 1):
        missing = max(0, size[axis] - pixels.shape[axis])
        grown[axis] = ((missing + 1) // 2, missing // 2)
    padded = np.pad(pixels, grown)
    # Where the image is smaller its pixels lie one further on; the window starts where the centre was before.
    top, left = ((pixels.shape[a] - size[a]) // 2 + grown[a][0] for a in (0, 1))
    return padded[top : top + size[0], left : left + size[1]]


def _decoded(content: bytes, mode: str, where: str) -> Any:
    """The image upright, in grey or in colour."""
    pil = extra("PIL.Image", name="vision", what="reading images")
    turned = extra("PIL.ImageOps", name="vision", what="reading images").exif_transpose
    try:
        with pil.open(io.BytesIO(content)) as image:
            return turned(image).convert(mode)
    except (OSError, SyntaxError, ValueError, EOFError, pil.DecompressionBombError) as error:
        raise DataError(f"{where} is not an image that can be read: {error}", hint="remove or replace it") from error


def pixels(content: bytes, steps: Steps, *, channels: int, where: str) -> npt.NDArray[Any]:
    """Channels x height x width after all steps; floats unless no step makes them so."""
    image = _decoded(content, "L" if channels == 1 else "RGB", where)
    if steps.resize is not None:
        image = image.resize(_target(image.width, image.height, steps.resize), resample=steps.resample)
    values: npt.NDArray[Any] = np.asarray(image).reshape(image.height, image.width, channels)
    if steps.crop is not None:
        values = _cropped(values, steps.crop)
    if steps.scale is not None:
        values = (values.astype(np.float64) * steps.scale).astype(np.float32)
    if steps.mean is not None:
        mean, std = np.asarray(steps.mean, np.float32), np.asarray(steps.std, np.float32)
        values = (values.astype(np.float32) - mean) / std
    return values.transpose(2, 0, 1)


@dataclass(frozen=True)
class ImageEncoder:
    """Images to the one image input of a model."""

    spec: Input
    steps: Steps
    channels: int
    last: bool
    """Whether the model has its channels last."""
    files: dict[str, str]

    def encode(self, content: bytes, where: str) -> Arrays:
        made = pixels(content, self.steps, channels=self.channels, where=where)
        if self.spec.dtype.startswith("float"):
            made = made.astype(np.float32)
        return {self.spec.name: as_input(made.transpose(1, 2, 0) if self.last else made, self.spec, where)}


def _image_input(inputs: tuple[Input, ...]) -> Input:
    if len(inputs) != 1 or len(inputs[0].shape) != 4:
        words = ", ".join(f"`{i.name}` {list(i.shape)}" for i in inputs) or "none"
        raise DataError(f"images are for a model with one input of four dimensions; this one takes {words}")
    return inputs[0]


def image_encoder(wanted: Wanted) -> ImageEncoder:
    """The encoder for a model, by the processor beside it."""
    spec = _image_input(tuple(wanted.inputs))
    path = processor.find(wanted.folder, CONFIG)
    if path is None:
        where = f" in `{wanted.folder}`" if wanted.folder else ""
        raise DataError(f"images need the model's image processor, but there is no {CONFIG}{where}", hint=HINT)
    last = spec.shape[1] not in (1, 3) and spec.shape[3] in (1, 3)
    channels = spec.shape[3] if last else spec.shape[1]
    count = channels if isinstance(channels, int) else 3
    if count not in (1, 3):
        raise DataError(f"input `{spec.name}` has {count} channels; images have 1 or 3")
    return ImageEncoder(spec, _for_channels(read_steps(path), count, path), count, last, {CONFIG: digest.of_file(path)})


def _for_channels(steps: Steps, channels: int, path: Path) -> Steps:
    if steps.mean is None or steps.std is None:
        return steps
    if 0.0 in steps.std:
        raise DataError(f"`image_std` of `{path}` holds a zero")
    for name, values in (("image_mean", steps.mean), ("image_std", steps.std)):
        if len(values) not in (1, channels) and len(set(values)) > 1:
            raise DataError(f"`{name}` of `{path}` has {len(values)} numbers but the model takes {channels} channels")
    same = {len(set(steps.mean)), len(set(steps.std))} == {1}
    return replace(steps, mean=steps.mean[:1], std=steps.std[:1]) if same else steps

"""Images as a model takes them: decoded by Pillow, resized and converted to floats, one at a time.

The arithmetic is that of transformers' numpy image processors: Pillow resizes the 8-bit image, the crop is centred, and
only then pixels become floats. Its torchvision processors resample slightly differently.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.limits import check_sample
from winml.modelkit.data import processor
from winml.modelkit.data.arrays import as_input
from winml.modelkit.data.extras import extra
from winml.modelkit.data.image_config import CONFIG, HINT, Steps, read_steps
from winml.modelkit.data.samples import Sample, SampleRequest
from winml.modelkit.graph.inputs import Input
from winml.modelkit.store import digest

MASK = "pixel_mask"
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "TIFF", "WEBP")
"""What the endings of images stand for; Pillow knows more, and starts other programs for some."""
_PIXEL_BYTES = 4
_MAX_STATISTIC = 1e9
"""What pixels are shifted and divided by is small; floats of 32 bits end at 3e38."""


def _target(width: int, height: int, steps: Steps) -> tuple[int, int]:
    """Width and height after resizing."""
    resize = steps.resize
    if steps.fit is not None:
        scale = steps.fit / max(width, height)
        return int(width * scale + 0.5), int(height * scale + 0.5)
    if steps.keep_ratio and isinstance(resize, tuple):
        # The factor that changes the image less, for both edges, as DPT's processor has it.
        scale = min(resize[0] / height, resize[1] / width, key=lambda factor: abs(1 - factor))
        edges = (max(steps.multiple, round(edge * scale / steps.multiple) * steps.multiple) for edge in (width, height))
        return next(edges), next(edges)
    if resize is None or isinstance(resize, tuple):
        return (width, height) if resize is None else (resize[1], resize[0])
    least, most, exact = min(width, height), max(width, height), float(resize)
    if steps.longest is not None and most / least * resize > steps.longest:
        exact = steps.longest * least / most
    up = steps.multiple - 1 if steps.round_up else 0
    short, long = ((edge + up) // steps.multiple * steps.multiple for edge in (round(exact), int(exact * most / least)))
    if not short:
        raise DataError(f"an image of {width} x {height} is too narrow for the model's processor")
    return (short, long) if width <= height else (long, short)


def _crop(pixels: npt.NDArray[Any], size: tuple[int, int]) -> npt.NDArray[Any]:
    """The centre of height x width x channels; where the image is smaller, zeros around it."""
    grown = [(0, 0)] * pixels.ndim
    for axis in (0, 1):
        missing = max(0, size[axis] - pixels.shape[axis])
        grown[axis] = ((missing + 1) // 2, missing // 2)
    padded = np.pad(pixels, grown)
    # Where the image is smaller its pixels lie one further on; the window starts where the centre was before.
    top, left = ((pixels.shape[a] - size[a]) // 2 + grown[a][0] for a in (0, 1))
    return padded[top : top + size[0], left : left + size[1]]


def decode_image(content: bytes, mode: str | None, where: str) -> Any:
    """The image upright, in grey or in colour; without a mode as it is stored."""
    pil = extra("PIL.Image", name="vision", what="reading images")
    turned = extra("PIL.ImageOps", name="vision", what="reading images").exif_transpose
    try:
        pil.MAX_IMAGE_PIXELS = None  # the size is checked below, by a limit that can be set
        with pil.open(io.BytesIO(content), formats=FORMATS) as image:
            check_sample(image.width * image.height * _PIXEL_BYTES, f"{where} of {image.width} x {image.height} pixels")
            upright = turned(image)
            return upright.copy() if mode is None else upright.convert(mode)
    except (DataError, MemoryError):
        raise
    except Exception as error:  # decoders of a dozen formats raise whatever they trip over
        raise DataError(f"{where} is not a readable image: {error}", hint="remove or replace it") from error


def pixels(image: Any, steps: Steps, *, channels: int) -> npt.NDArray[Any]:
    """Channels x height x width after all steps; floats unless no step makes them so."""
    width, height = _target(image.width, image.height, steps)
    for size in ((height, width), steps.crop or (0, 0)):
        check_sample(size[0] * size[1] * channels * _PIXEL_BYTES, f"an image of {size[1]} x {size[0]} pixels")
    if steps.resize is not None:
        image = image.resize((width, height), resample=steps.resample)
    values: npt.NDArray[Any] = np.asarray(image).reshape(image.height, image.width, channels)
    if steps.crop is not None:
        values = _crop(values, steps.crop)
    if steps.scale is not None:
        values = (values.astype(np.float64) * steps.scale).astype(np.float32)
    if steps.mean is not None:
        mean, std = np.asarray(steps.mean, np.float32), np.asarray(steps.std, np.float32)
        values = (values.astype(np.float32) - mean) / std
    if steps.pad_to is not None or steps.pad_multiple > 1:
        # One multiple more also where the edge is one, as Swin2SR's processor has it.
        edges = steps.pad_to or tuple(
            (edge // steps.pad_multiple + 1) * steps.pad_multiple for edge in values.shape[:2]
        )
        grown = [(0, max(0, edge - size)) for edge, size in zip(edges, values.shape, strict=False)]
        check_sample(edges[0] * edges[1] * channels * _PIXEL_BYTES, f"an image of {edges[1]} x {edges[0]} pixels")
        values = np.pad(values, (*grown, (0, 0)), mode="symmetric" if steps.pad_multiple > 1 else "constant")
    return values.transpose(2, 0, 1)


@dataclass(frozen=True)
class ImageEncoder:
    """Images to the one image input of a model."""

    spec: Input
    steps: Steps
    channels: int
    last: bool
    """Whether the model has its channels last."""
    mask: Input | None
    """The input that says which pixels are of the image: all of them, as images are run one at a time."""
    files: dict[str, str]
    note: str | None = None

    def image(self, content: bytes, where: str) -> Sample:
        """The image as a sample, with the size it came in."""
        return self.decoded(decode_image(content, "L" if self.channels == 1 else "RGB", where), where)

    def resized(self, size: tuple[int, int]) -> tuple[int, int]:
        """Height and width of an image after it was resized, before anything is cut or filled up."""
        width, height = _target(size[1], size[0], self.steps)
        return height, width

    def decoded(self, image: Any, where: str) -> Sample:
        """An image that is decoded as a sample."""
        made = pixels(image, self.steps, channels=self.channels)
        if self.spec.dtype.startswith("float"):
            made = made.astype(np.float32)
        inputs = {self.spec.name: as_input(made.transpose(1, 2, 0) if self.last else made, self.spec, where)}
        if self.mask is not None:
            inputs[MASK] = as_input(np.ones(made.shape[1:], np.dtype(self.mask.dtype)), self.mask, where)
        return Sample(inputs, size=(image.height, image.width))


def takes_images(inputs: Sequence[Input]) -> bool:
    """Whether a model takes an image, and nothing else but which pixels are of it."""
    return sorted(len(i.shape) for i in inputs if i.name != MASK) == [4]


def _for_shape(steps: Steps, spec: Input, *, last: bool) -> tuple[Steps, str | None]:
    """The steps for a model of one size: images that would keep their proportions are stretched, with a note."""
    height, width = spec.shape[1:3] if last else spec.shape[2:]
    keeps = steps.longest is not None or steps.keep_ratio
    if not keeps or not isinstance(height, int) or not isinstance(width, int):
        return steps, None
    note = f"images are stretched to {height} x {width}, the size of the model; its processor would keep proportions"
    return replace(steps, resize=(height, width), longest=None, multiple=1, keep_ratio=False), note


def image_encoder(wanted: SampleRequest) -> ImageEncoder:
    """The encoder for a model, by the processor beside it."""
    if not takes_images(wanted.inputs):
        taken = ", ".join(f"`{i.name}` {list(i.shape)}" for i in wanted.inputs) or "none"
        raise DataError(f"images need a model with one four-dimensional input; this one takes {taken}")
    spec = next(i for i in wanted.inputs if i.name != MASK)
    path = processor.find(wanted.folder, CONFIG)
    if path is None:
        where = f" in `{wanted.folder}`" if wanted.folder else ""
        raise DataError(f"images need the model's image processor, but there is no {CONFIG}{where}", hint=HINT)
    last = spec.shape[1] not in (1, 3) and spec.shape[3] in (1, 3)
    channels = spec.shape[3] if last else spec.shape[1]
    count = channels if isinstance(channels, int) else 3
    if count not in (1, 3):
        raise DataError(f"input `{spec.name}` has {count} channels; images have 1 or 3")
    steps, note = _for_shape(_for_channels(read_steps(path), count, path), spec, last=last)
    mask = next((i for i in wanted.inputs if i.name == MASK), None)
    return ImageEncoder(spec, steps, count, last, mask, {CONFIG: digest.of_file(path)}, note)


def _for_channels(steps: Steps, channels: int, path: Path) -> Steps:
    if steps.mean is None or steps.std is None:
        return steps
    if 0.0 in steps.std:
        raise DataError(f"`image_std` of `{path}` holds a zero")
    if not all(abs(value) < _MAX_STATISTIC for value in (*steps.mean, *steps.std)):
        raise DataError(f"`image_mean` or `image_std` of `{path}` holds a number that is too large")
    for name, values in (("image_mean", steps.mean), ("image_std", steps.std)):
        if len(values) not in (1, channels) and len(set(values)) > 1:
            raise DataError(f"`{name}` of `{path}` has {len(values)} numbers but the model takes {channels} channels")
    mean, std = (values[:1] if len(set(values)) == 1 else values for values in (steps.mean, steps.std))
    return replace(steps, mean=mean, std=std)

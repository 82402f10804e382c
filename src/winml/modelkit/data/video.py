"""Videos as a model takes them: frames that were taken out before, in a folder of images or a .npy file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.limits import check_sample, read_sample
from winml.modelkit.data.arrays import as_input, read_array, without_axis
from winml.modelkit.data.extras import extra
from winml.modelkit.data.images import ImageEncoder, image_encoder
from winml.modelkit.data.row_plans import Columns, RowPlan, text_of
from winml.modelkit.data.samples import Sample, SampleRequest
from winml.modelkit.data.sources import Row
from winml.modelkit.graph.inputs import Input

ENDINGS = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"})
ARRAY = ".npy"
DEFAULT_FRAMES = 16
"""Frames of a video where the model leaves their number open."""


def takes_video(inputs: Sequence[Input]) -> bool:
    """Whether a model takes frames and nothing else: batch, frame, channel, height and width."""
    return [len(i.shape) for i in inputs] == [5]


@dataclass(frozen=True)
class VideoEncoder:
    """Frames to the one video input of a model."""

    spec: Input
    frames: int
    pixels: ImageEncoder
    note: str | None

    @property
    def files(self) -> dict[str, str]:
        return self.pixels.files

    def video(self, path: Path) -> Sample:
        """The frames at even distances; a video of fewer repeats some."""
        where = f"`{path}`"
        shown = _read_frames(path) if path.is_file() else [file for file in sorted(path.iterdir()) if is_image(file)]
        if not len(shown):
            raise DataError(f"{where} has no frames", hint="a video is a folder of images, or a .npy of its frames")
        chosen = np.linspace(0, len(shown) - 1, self.frames).round().astype(int)
        made = [self._pixels(shown[i], where) for i in chosen]
        check_sample(sum(frame.nbytes for frame in made), where)
        return Sample({self.spec.name: as_input(np.stack(made), self.spec, where)})

    def _pixels(self, frame: Any, where: str) -> Any:
        if isinstance(frame, Path):
            made = self.pixels.image(read_sample(frame, f"`{frame}`"), f"`{frame}`")
        else:
            pil = extra("PIL.Image", name="vision", what="reading images")
            made = self.pixels.decoded(pil.fromarray(frame), where)
        return made.inputs[self.pixels.spec.name][0]


def is_image(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() in ENDINGS and not path.name.startswith(".")


def _read_frames(path: Path) -> Any:
    frames = read_array(path)
    if frames.ndim != 4 or frames.shape[-1] != 3 or frames.dtype != np.uint8:
        raise DataError(
            f"`{path}` must have frame, height, width and 3 colours of 8 bits but has {list(frames.shape)} of "
            f"{frames.dtype}"
        )
    return frames


def video_encoder(wanted: SampleRequest) -> VideoEncoder:
    """The encoder for a model, by the processor beside it."""
    spec = wanted.inputs[0]
    count = spec.shape[1]
    note = None
    if not isinstance(count, int):
        count = DEFAULT_FRAMES
        note = f"{count} frames of each video are used: the model leaves their number open"
    pixels = image_encoder(replace(wanted, inputs=[without_axis(spec, 1)]))
    return VideoEncoder(spec, count, pixels, "; ".join(n for n in (note, pixels.note) if n) or None)


def by_video(wanted: SampleRequest, columns: Columns) -> RowPlan:
    """Folders of frames, or .npy files, named in a column."""
    column, encoder, folder = columns.need("video"), video_encoder(wanted), wanted.path.parent

    def encode(row: Row, where: str) -> Sample:
        path = folder / text_of(row, column, where)
        if not path.exists():
            raise DataError(f"the {column} of {where} is missing: `{path}`")
        return encoder.video(path)

    return RowPlan(encode, {"video": column}, encoder.files, encoder.note, (column,))

"""Rows of images whose label is more than a class: depth maps, other images, masks at points, masks of all objects."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.errors import DataError
from winml.modelkit.data.arrays import as_input, decode_array
from winml.modelkit.data.images import decode_image, image_encoder
from winml.modelkit.data.row_plans import Columns, RowPlan, by_image, content_of, value_of
from winml.modelkit.data.samples import Sample, SampleRequest
from winml.modelkit.data.sources import Row

MILLIMETRES = 1000.0
"""What a depth map of whole numbers counts in, of a metre, unless its row says otherwise."""
POINTS, POINT_LABELS = "input_points", "input_labels"

Array = npt.NDArray[Any]


_MAGIC = b"\x93NUMPY"
"""What a .npy file starts with, whatever it is called."""


def _stored_image(content: bytes, named: str) -> Array:
    return np.asarray(decode_image(content, None, named))


def _with_file(
    wanted: SampleRequest, columns: Columns, read: Callable[[bytes, str, Row, str], Any], plan: RowPlan | None = None
) -> RowPlan:
    """Images whose label is what is read from a second file, which is given with its name in errors."""
    made, folder = plan or by_image(wanted, columns.need("image")), wanted.path.parent
    column = columns.label()
    if column is None:
        return made

    def label(row: Row, where: str) -> Any:
        return read(*content_of(folder, row, column, where), row, where)

    return replace(made, named=(*made.named, column), label=label)


def by_depth(wanted: SampleRequest, columns: Columns) -> RowPlan:
    """Images with a depth map: metres in a .npy file, or whole numbers in an image of one channel."""
    scale = columns.find("scale")

    def read(content: bytes, named: str, row: Row, where: str) -> Array:
        whole = not content.startswith(_MAGIC)
        values = _stored_image(content, named) if whole else decode_array(content, named)
        per_metre = MILLIMETRES if whole else 1.0
        if scale is not None and row.get(scale) is not None:
            per_metre = _positive(row[scale], f"`{scale}` of {where}")
        if values.ndim != 2:
            raise DataError(f"the depth map {named} must have height and width but has {values.ndim} dimensions")
        depths: Array = values.astype(np.float64) / per_metre
        return depths

    return _with_file(wanted, columns, read)


def _positive(value: Any, what: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number) or number <= 0:
        raise DataError(f"{what} must be a number above 0 but is {value!r:.80}")
    return number


def by_target(wanted: SampleRequest, columns: Columns) -> RowPlan:
    """Images with the image that the model should make of them."""

    def read(content: bytes, named: str, row: Row, where: str) -> Array:
        return np.asarray(decode_image(content, "RGB", named))

    return _with_file(wanted, columns, read)


def by_points(wanted: SampleRequest, columns: Columns) -> RowPlan:
    """Images with points on an object, in pixels, and its mask: what is not 0 is the object."""
    specs = {spec.name: spec for spec in wanted.inputs}
    if POINTS not in specs:
        raise DataError(
            f"points need a model with the input `{POINTS}`; this one takes {', '.join(specs)}",
            hint="export the whole model, not its image encoder alone",
        )
    encoder = image_encoder(replace(wanted, inputs=[s for n, s in specs.items() if n not in (POINTS, POINT_LABELS)]))
    image, points, folder = columns.need("image"), columns.need("points"), wanted.path.parent

    def encode(row: Row, where: str) -> Sample:
        shown = encoder.image(*content_of(folder, row, image, where))
        assert shown.size is not None  # images have one
        height, width = encoder.resized(shown.size)
        factors = np.asarray([width / shown.size[1], height / shown.size[0]])
        placed = _points(row, points, where) * factors
        inputs = {**shown.inputs, POINTS: as_input(placed[None, None].astype(np.float32), specs[POINTS], where)}
        if POINT_LABELS in specs:
            inputs[POINT_LABELS] = as_input(np.ones((1, 1, len(placed)), np.int64), specs[POINT_LABELS], where)
        return replace(shown, inputs=inputs, about={"resized": (height, width)})

    def read(content: bytes, named: str, row: Row, where: str) -> Array:
        mask = _stored_image(content, named)
        return np.asarray(mask.any(axis=-1) if mask.ndim == 3 else mask != 0)

    plan = RowPlan(encode, {"image": image, "points": points}, encoder.files, encoder.note, (image,))
    return _with_file(wanted, columns, read, plan)


def _points(row: Row, column: str, where: str) -> Array:
    given = value_of(row, column, where)
    try:
        made = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        made = np.zeros(0)
    if made.ndim != 2 or made.shape[1] != 2 or not len(made) or not np.isfinite(made).all():
        raise DataError(f"`{column}` of {where} must be a list of [x, y] in pixels but is {given!r:.80}")
    return made


def by_segments(wanted: SampleRequest, columns: Columns) -> RowPlan:
    """Images with an image of the number of the object in each pixel, and what the objects are."""
    info = columns.need("segments_info") if wanted.labels else columns.find("segments_info")

    def read(content: bytes, named: str, row: Row, where: str) -> dict[str, Any]:
        return {"ids": segment_ids(content, named), "segments": row.get(info or "")}

    return _with_file(wanted, columns, read)


def segment_ids(content: bytes, named: str) -> Array:
    """The number of the segment in each pixel, as COCO's panoptic images have it: red + 256 green + 65536 blue."""
    values = _stored_image(content, named).astype(np.int64)
    if values.ndim == 2:
        return values
    ids: Array = values[..., 0] + 256 * values[..., 1] + 65536 * values[..., 2]
    return ids

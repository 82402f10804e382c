"""COCO's .json files beside their images: objects, segments of everything, keypoints of persons."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.limits import read_sample
from winml.modelkit.data import processor
from winml.modelkit.data.arrays import as_input
from winml.modelkit.data.image_rows import segment_ids
from winml.modelkit.data.images import ImageEncoder, image_encoder
from winml.modelkit.data.keypoint_crops import Crop, cut_out
from winml.modelkit.data.samples import DATA, Sample, SampleRequest, SampleSource
from winml.modelkit.data.selection import choose
from winml.modelkit.store import digest

IMAGES = "images"
"""The folder beside the file that images may lie in."""
EXPERT = "dataset_index"
"""An input of VitPose++ that says which data set a person is from; 0 is COCO."""


@dataclass(frozen=True)
class _Entry:
    """One sample: an image, and what the file says of it."""

    image: Path
    label: Any
    files: tuple[Path, ...]


class _Document:
    """A COCO file whose parts are checked as they are read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._content = processor.read_object(path)
        self.images = {row.get("id"): row for row in self.rows("images")}
        self.categories = {row.get("id"): row for row in self.rows("categories")}

    def rows(self, part: str) -> list[dict[str, Any]]:
        found = self._content.get(part)
        if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
            raise DataError(
                f"`{self.path}` has no list `{part}`", hint="a .json file is COCO's: images, annotations and categories"
            )
        return found

    def image(self, number: Any) -> Path:
        row = self.images.get(number)
        if row is None:
            raise DataError(f"`{self.path}` has an annotation of image {number!r:.80}, which it does not have")
        return self.file(row, self.path.parent, self.path.parent / IMAGES)

    def file(self, row: dict[str, Any], *folders: Path) -> Path:
        name = row.get("file_name")
        if not isinstance(name, str) or not name:
            raise DataError(f"`{self.path}` has an entry without `file_name`")
        if Path(name).is_absolute() or ":" in name or ".." in name.replace("\\", "/").split("/"):
            raise DataError(f"`{self.path}` names an image outside its folder: {name!r:.80}")
        found = next((folder / name for folder in folders if (folder / name).is_file()), None)
        if found is None:
            raise DataError(f"an image of `{self.path}` is missing: `{folders[0] / name}`")
        return found

    def category(self, number: Any) -> dict[str, Any]:
        row = self.categories.get(number)
        if row is None or not isinstance(row.get("name"), str):
            raise DataError(f"`{self.path}` has a category {number!r:.80} without a name")
        return row


def _objects(document: _Document) -> list[_Entry]:
    """Images with their boxes."""
    objects: dict[Any, list[dict[str, Any]]] = {number: [] for number in document.images}
    for row in document.rows("annotations"):
        made = {"bbox": row.get("bbox"), "category": document.category(row.get("category_id"))["name"]}
        if row.get("image_id") not in objects:
            document.image(row.get("image_id"))
        objects[row["image_id"]].append({**made, "iscrowd": row.get("iscrowd", 0)})
    return [_Entry(document.image(number), boxes, ()) for number, boxes in objects.items()]


def _segments(document: _Document) -> list[_Entry]:
    """Images with the number of a segment in each pixel, in a folder named like the file or beside it."""
    found = []
    for row in document.rows("annotations"):
        info = row.get("segments_info")
        if not isinstance(info, list) or not all(isinstance(one, dict) for one in info):
            raise DataError(f"`{document.path}` has an annotation without `segments_info`",
                            hint="segments are in COCO's panoptic files")  # fmt: skip
        segments = []
        for one in info:
            category = document.category(one.get("category_id"))
            thing = {"category": category["name"], "isthing": category.get("isthing", 1)}
            segments.append({"id": one.get("id"), "iscrowd": one.get("iscrowd", 0), **thing})
        folder = document.path.parent
        ids = document.file(row, folder / document.path.stem, folder)
        found.append(_Entry(document.image(row.get("image_id")), segments, (ids,)))
    return found


def _persons(document: _Document) -> list[_Entry]:
    """Objects with keypoints, one sample each."""
    found = []
    for row in document.rows("annotations"):
        points, box = row.get("keypoints"), row.get("bbox")
        if not row.get("num_keypoints", 1) or row.get("iscrowd"):
            continue
        whole = isinstance(points, list) and points and len(points) % 3 == 0 and all(map(_is_number, points))
        if (
            not whole
            or not isinstance(box, list)
            or len(box) != 4
            or not all(map(_is_number, box))
            or min(box[2:]) <= 0
        ):
            raise DataError(f"`{document.path}` has an annotation without `keypoints` or `bbox`: {row.get('id')!r:.80}")
        area = row.get("area", box[2] * box[3])
        made = {"keypoints": np.asarray(points, np.float64).reshape(-1, 3), "bbox": box, "area": area}
        if (made["keypoints"][:, 2] > 0).any():
            found.append(_Entry(document.image(row.get("image_id")), made, ()))
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9


def read(wanted: SampleRequest) -> SampleSource:
    """Samples from a COCO file, by the form: whole images, images with segments, persons cut out of them."""
    readers: dict[str, Callable[[_Document], list[_Entry]]] = {
        "joined": _objects, "segments": _segments, "keypoints": _persons,
    }  # fmt: skip
    if wanted.form not in readers:
        raise DataError(f"`{wanted.path}` is read as COCO's boxes, segments or keypoints, not for this task",
                        hint="give rows as .jsonl")  # fmt: skip
    entries = readers[wanted.form](_Document(wanted.path))
    indices = choose(len(entries), wanted.section.limit, wanted.section.seed)
    encoder = image_encoder(replace(wanted, inputs=[spec for spec in wanted.inputs if spec.name != EXPERT]))

    def samples() -> Iterator[Sample]:
        for index in indices:
            entry = entries[index]
            where = f"sample {index} of `{wanted.path}`"
            label = None if wanted.labels is False else _label(entry)
            yield _sample(wanted, encoder, entry).with_label(label, where)

    folder = wanted.path.parent
    used = [path for index in indices for path in (entries[index].image, *entries[index].files)]
    content = {path.relative_to(folder).as_posix(): digest.of_file(path) for path in dict.fromkeys(used)}
    notes = (encoder.note,) if encoder.note else ()
    return SampleSource(len(indices), samples, {DATA: digest.of_file(wanted.path), **content, **encoder.files},
                        notes=notes)  # fmt: skip


def _sample(wanted: SampleRequest, encoder: ImageEncoder, entry: _Entry) -> Sample:
    where = f"`{entry.image}`"
    content = read_sample(entry.image, where)
    if wanted.form != "keypoints":
        return encoder.image(content, where)
    crop = Crop.around(entry.label["bbox"], encoder.steps.resize)
    made = cut_out(encoder, content, crop, where)
    for spec in wanted.inputs:
        if spec.name == EXPERT:
            made = replace(made, inputs={**made.inputs, EXPERT: as_input(np.zeros(1, np.int64), spec, where)})
    return replace(made, about={"crop": crop})


def _label(entry: _Entry) -> Any:
    if not entry.files:
        return entry.label
    named = f"`{entry.files[0]}`"
    return {"ids": segment_ids(read_sample(entry.files[0], named), named), "segments": entry.label}

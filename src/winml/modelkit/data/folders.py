"""Images in a folder, or in one folder per class."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from winml.modelkit.core.errors import DataError
from winml.modelkit.core.limits import read_sample
from winml.modelkit.data.images import ImageEncoder, image_encoder
from winml.modelkit.data.prompts import PromptEncoder, class_list, prompt_encoder
from winml.modelkit.data.samples import Sample, SampleRequest, SampleSource
from winml.modelkit.data.selection import choose, choose_stratified
from winml.modelkit.store import digest

ENDINGS = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"})


def _files(folder: Path) -> tuple[list[Path], int]:
    """Images below a folder in one order on every machine, and how many other files there are."""
    found = [p for p in folder.rglob("*") if p.is_file() and not p.name.startswith(".")]
    images = [p for p in found if p.suffix.lower() in ENDINGS]
    return sorted(images, key=lambda p: p.relative_to(folder).as_posix()), len(found) - len(images)


def _class(folder: Path, image: Path) -> str:
    parts = image.relative_to(folder).parts
    if len(parts) < 2:
        raise DataError(
            f"`{image.name}` is directly in `{folder}`, so it has no class",
            hint="put images into one folder per class, named as the model names its classes or by their number",
        )
    return parts[0]


def _encoder(wanted: SampleRequest, classes: list[str]) -> ImageEncoder | PromptEncoder:
    if wanted.form == "prompts":
        return prompt_encoder(wanted, class_list(classes, str(wanted.path)))
    return image_encoder(wanted)


def read(wanted: SampleRequest) -> SampleSource:
    """Samples from image files; with labels, the name of the folder they lie in."""
    folder, section = wanted.path, wanted.section
    images, others = _files(folder)
    if not images:
        raise DataError(f"`{folder}` has no images", hint=f"supported extensions: {', '.join(sorted(ENDINGS))}")
    labelled = wanted.labels or (wanted.labels is None and all(image.parent != folder for image in images))
    classes = [_class(folder, image) for image in images] if labelled else []
    encoder = _encoder(wanted, classes)
    indices = (
        choose_stratified(classes, section.limit, section.seed)
        if labelled
        else choose(len(images), section.limit, section.seed)
    )

    def samples() -> Iterator[Sample]:
        for index in indices:
            where = f"`{images[index]}`"
            made = encoder.image(read_sample(images[index], where), where)
            yield made.with_label(classes[index] if classes else None, where)

    used = [images[index] for index in indices]
    content = {p.relative_to(folder).as_posix(): digest.of_file(p) for p in used}
    which = "1 file is" if others == 1 else f"{others} files are"
    left = f"{which} skipped in `{folder}`: no extension of an image" if others else None
    notes = tuple(note for note in (left, encoder.note) if note)
    return SampleSource(len(indices), samples, {**content, **encoder.files}, notes=notes)

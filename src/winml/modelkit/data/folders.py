"""Images, recordings or videos in a folder, or in one folder per class."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.limits import read_sample
from winml.modelkit.data import video
from winml.modelkit.data.audio import speech_encoder, takes_speech
from winml.modelkit.data.images import ImageEncoder, image_encoder
from winml.modelkit.data.prompts import PromptEncoder, class_list, prompt_encoder
from winml.modelkit.data.samples import Sample, SampleRequest, SampleSource
from winml.modelkit.data.selection import choose, choose_stratified
from winml.modelkit.store import digest

ENDINGS = video.ENDINGS


RECORDINGS = frozenset({".wav"})


def _files(folder: Path, endings: frozenset[str]) -> tuple[list[Path], int]:
    """Files of a kind below a folder in one order on every machine, and how many others there are."""
    found = [p for p in folder.rglob("*") if p.is_file() and not p.name.startswith(".")]
    taken = [p for p in found if p.suffix.lower() in endings]
    return sorted(taken, key=lambda p: p.relative_to(folder).as_posix()), len(found) - len(taken)


def _videos(folder: Path) -> tuple[list[Path], int]:
    """Folders of frames and .npy files below a folder, in one order on every machine."""
    arrays, _ = _files(folder, frozenset({video.ARRAY}))
    frames = {p.parent for p in _files(folder, ENDINGS)[0]} - {folder}
    return sorted([*arrays, *frames], key=lambda p: p.relative_to(folder).as_posix()), 0


def _class(folder: Path, image: Path) -> str:
    parts = image.relative_to(folder).parts
    if len(parts) < 2:
        raise DataError(
            f"`{image.name}` is directly in `{folder}`, so it has no class",
            hint="put samples into one folder per class, named as the model names its classes or by their number",
        )
    return parts[0]


@dataclass(frozen=True)
class _Kind:
    """What samples of a model are in a folder, and how one is read."""

    word: str
    sample: Callable[[Path], Sample]
    files: dict[str, str]
    note: str | None


def _kind(wanted: SampleRequest, classes: list[str]) -> _Kind:
    if takes_speech(wanted.inputs):
        heard = speech_encoder(wanted)
        return _Kind("recordings", lambda p: Sample(heard.encode(read_sample(p, f"`{p}`"), f"`{p}`")),
                     heard.files, None)  # fmt: skip
    if video.takes_video(wanted.inputs):
        frames = video.video_encoder(wanted)
        return _Kind("videos", frames.video, frames.files, frames.note)
    prompted = wanted.form == "prompts"
    encoder: ImageEncoder | PromptEncoder = (
        prompt_encoder(wanted, class_list(classes, str(wanted.path))) if prompted else image_encoder(wanted)
    )
    return _Kind("images", lambda p: encoder.image(read_sample(p, f"`{p}`"), f"`{p}`"), encoder.files,
                 encoder.note)  # fmt: skip


def read(wanted: SampleRequest) -> SampleSource:
    """Samples from files; with labels, the name of the folder they lie in."""
    folder, section = wanted.path, wanted.section
    endings = RECORDINGS if takes_speech(wanted.inputs) else ENDINGS
    found, others = _videos(folder) if video.takes_video(wanted.inputs) else _files(folder, endings)
    if not found:
        what = "videos" if video.takes_video(wanted.inputs) else "recordings" if endings is RECORDINGS else "images"
        hint = "a video is a folder of images, or a .npy file" if what == "videos" else (
            f"supported extensions: {', '.join(sorted(endings))}"
        )  # fmt: skip
        raise DataError(f"`{folder}` has no {what}", hint=hint)
    labelled = wanted.labels or (wanted.labels is None and all(path.parent != folder for path in found))
    classes = [_class(folder, path) for path in found] if labelled else []
    kind = _kind(wanted, classes)
    indices = (
        choose_stratified(classes, section.limit, section.seed)
        if labelled
        else choose(len(found), section.limit, section.seed)
    )

    def samples() -> Iterator[Sample]:
        for index in indices:
            path = found[index]
            yield kind.sample(path).with_label(classes[index] if classes else None, f"`{path}`")

    used = [file for index in indices for file in _inside(found[index])]
    content = {p.relative_to(folder).as_posix(): digest.of_file(p) for p in used}
    which = "1 file is" if others == 1 else f"{others} files are"
    article = {"images": "an image", "recordings": "a recording"}.get(kind.word, "a video")
    left = f"{which} skipped in `{folder}`: no extension of {article}" if others else None
    notes = tuple(note for note in (left, kind.note) if note)
    return SampleSource(len(indices), samples, {**content, **kind.files}, notes=notes)


def _inside(path: Path) -> list[Path]:
    """The files of a sample: itself, or the frames of a video."""
    return [path] if path.is_file() else sorted(filter(video.is_image, path.iterdir()))

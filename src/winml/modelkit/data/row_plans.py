"""How a row of a table becomes a sample: which columns it takes, and the tokenizer or processor between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.json_text import parse_json
from winml.modelkit.core.limits import check_sample, read_sample
from winml.modelkit.core.plain_text import shell_word
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.data.arrays import as_inputs, as_steps
from winml.modelkit.data.audio import speech_encoder, takes_speech
from winml.modelkit.data.images import decode_image, image_encoder, takes_images
from winml.modelkit.data.prompts import prompt_encoder
from winml.modelkit.data.samples import Form, Sample, SampleRequest
from winml.modelkit.data.sources import Row
from winml.modelkit.data.text import TextEncoder, text_encoder
from winml.modelkit.graph.inputs import Input, form_of

ROLES: dict[str, tuple[str, ...]] = {
    "text": ("text", "sentence", "sentence1", "question", "premise"),
    "text_pair": ("text_pair", "sentence2", "context", "hypothesis"),
    "words": ("words", "tokens"),
    "image": ("image", "image_path", "file", "path"),
    "audio": ("audio", "audio_path", "file", "path"),
    "video": ("video", "video_path", "frames", "file", "path"),
    "prompt": ("prompt", "text", "input", "question", "source", "document"),
    "choices": ("choices", "endings", "options"),
    "query": ("query", "question"),
    "passages": ("passages", "documents"),
    "relevance": ("relevance", "relevances", "labels"),
    "positive": ("positive", "positives", "pos"),
    "negative": ("negative", "negatives", "neg"),
    "points": ("points", "input_points"),
    "segments_info": ("segments_info",),
    "boxes": ("boxes", "bboxes", "bbox"),
    "values": ("values", "past_values", "series"),
    "scale": ("scale",),
    "label": ("label", "labels", "score", "answers", "answer", "objects"),
}
"""Role of a column -> names it is found by when none is given."""

LABELS: dict[Form, tuple[str, ...]] = {
    "words": ("tags", "ner_tags", "pos_tags", "labels", "label"),
    "speech": ("text", "transcription", "transcript", "sentence", "label"),
    "mask": ("mask", "annotation", "label"),
    "depth": ("depth", "depth_map", "label"),
    "target": ("target", "high_resolution", "label"),
    "points": ("mask", "label"),
    "segments": ("segments", "mask", "label"),
    "spoken": ("audio", "audio_path", "label"),
    "series": ("label", "future_values", "target", "targets"),
    "prompt": ("label", "answers", "answer", "completion", "target", "summary", "translation", "expected"),
}
"""Forms whose label has other usual names."""


class Columns:
    """Which column plays which role."""

    def __init__(self, wanted: SampleRequest, present: list[str]) -> None:
        self._wanted = wanted
        self._present = present
        self.used: set[str] = set()
        """The columns that were found: what a plan may read of a row."""
        known = [*ROLES, *(i.name for i in wanted.inputs)]
        for role in wanted.section.columns:
            if role not in known:
                raise DataError(f"unknown column role `{role}`", hint=did_you_mean(role, known))

    def find(self, role: str) -> str | None:
        """The column for a role: the one that was named, or one with a usual name."""
        given = self._wanted.section.columns.get(role)
        if given is not None and given not in self._present:
            raise DataError(f"`{self._wanted.path}` has no column `{given}`", hint=did_you_mean(given, self._present))
        usual = LABELS.get(self._wanted.form) if role == "label" else None
        names = (given,) if given else usual or ROLES.get(role, (role,))
        found = next((name for name in names if name in self._present), None)
        if found is not None:
            self.used.add(found)
        return found

    def need(self, role: str) -> str:
        found = self.find(role)
        if found is None:
            word = shell_word(f"{role}=NAME")
            raise DataError(
                f"`{self._wanted.path}` has no column for `{role}`",
                hint=f"it has: {', '.join(self._present) or 'none'}; name it with `--column {word}`",
            )
        return found

    def label(self) -> str | None:
        """The column of labels: needed, or where there is one, or none, as the request says."""
        if self._wanted.labels is False:
            return None
        return self.need("label") if self._wanted.labels else self.find("label")


@dataclass(frozen=True)
class RowPlan:
    """How a row becomes a sample, and what that takes."""

    encode: Callable[[Row, str], Sample]
    columns: dict[str, str]
    files: dict[str, str] = field(default_factory=dict)
    note: str | None = None
    named: tuple[str, ...] = ()
    """Columns that name files, which are part of the data."""
    label: Callable[[Row, str], Any] | None = None
    """What a label is, when that is not what stands in its column."""
    complete: bool = False
    """Whether samples have their label already."""


def value_of(row: Row, column: str, where: str) -> Any:
    if row.get(column) is None:
        raise DataError(f"{where} has no `{column}`")
    return row[column]


def text_of(row: Row, column: str, where: str) -> str:
    value = value_of(row, column, where)
    if not isinstance(value, str):
        raise DataError(f"`{column}` of {where} must be text but got {value!r:.80}")
    return value


def file_of(folder: Path, row: Row, column: str, where: str) -> Path:
    """The file a row names, relative to the table."""
    path = folder / text_of(row, column, where)
    if not path.is_file():
        raise DataError(f"the {column} of {where} is missing: `{path}`")
    return path


def content_of(folder: Path, row: Row, column: str, where: str) -> tuple[bytes, str]:
    """The file that a row holds or names, and how to call it in errors.

    A file that lies in the row has a name there too, which is of another machine: it is never looked for.
    """
    value = value_of(row, column, where)
    if isinstance(value, bytes):
        named = f"`{column}` of {where}"
        check_sample(len(value), named)
        return value, named
    path = file_of(folder, row, column, where)
    return read_sample(path, f"`{path}`"), f"`{path}`"


def array_of(row: Row, column: str, spec: Input, where: str) -> Any:
    """An input as it stands in a row: numbers, text, or a list of either for each element of a sequence."""
    value = value_of(row, column, where)
    form = form_of(spec)
    try:
        if isinstance(value, str) and (spec.dtype != "str" or form.endswith("sequence")):
            value = parse_json(value, lenient=True)
        if form.endswith("sequence"):
            return [_numbers(element, spec) for element in value]
        return _numbers(value, spec)
    except (ValueError, TypeError) as error:
        raise DataError(f"`{column}` of {where} is not an array of numbers: {error}") from error


def _numbers(value: Any, spec: Input) -> npt.NDArray[Any]:
    array = np.asarray(value)
    # Text has no way to tell 1 from 1.0.
    return array.astype(np.float64) if array.dtype.kind in "iu" and spec.dtype.startswith("float") else array


def by_input(wanted: SampleRequest, columns: dict[str, str]) -> RowPlan:
    """Values that are inputs as they stand."""

    def encode(row: Row, where: str) -> Sample:
        given = {spec.name: array_of(row, columns[spec.name], spec, where) for spec in wanted.inputs}
        if not wanted.steps:
            return Sample(as_inputs(given, wanted.inputs, where))
        first, *later = as_steps(given, wanted.inputs, where)
        return Sample(first, more=tuple(later))

    return RowPlan(encode, columns)


def by_image(wanted: SampleRequest, column: str) -> RowPlan:
    """Files named in a column."""
    encoder, folder = image_encoder(wanted), wanted.path.parent

    def encode(row: Row, where: str) -> Sample:
        return encoder.image(*content_of(folder, row, column, where))

    return RowPlan(encode, {"image": column}, encoder.files, encoder.note, (column,))


def _by_mask(wanted: SampleRequest, columns: Columns) -> RowPlan:
    """Images whose label is an image too: the number of a class in every pixel."""
    plan, folder = by_image(wanted, columns.need("image")), wanted.path.parent
    column = columns.label()
    if column is None:
        return plan

    def label(row: Row, where: str) -> npt.NDArray[Any]:
        content, named = content_of(folder, row, column, where)
        values = np.asarray(decode_image(content, None, named))
        if values.ndim != 2:
            raise DataError(
                f"{named} has {values.shape[-1]} channels; a mask has one, with the number of a class in each pixel"
            )
        return values

    return replace(plan, named=(*plan.named, column), label=label)


def _by_speech(wanted: SampleRequest, columns: Columns) -> RowPlan:
    column, folder = columns.need("audio"), wanted.path.parent
    encoder = speech_encoder(wanted)

    def encode(row: Row, where: str) -> Sample:
        return Sample(encoder.encode(*content_of(folder, row, column, where)))

    return RowPlan(encode, {"audio": column}, encoder.files, None, (column,))


def words_of(row: Row, column: str, where: str) -> list[str]:
    value = value_of(row, column, where)
    if not isinstance(value, list) or not value or not all(isinstance(word, str) for word in value):
        raise DataError(f"`{column}` of {where} must be a list of words but got {value!r:.80}")
    return value


def _by_words(wanted: SampleRequest, columns: Columns) -> RowPlan:
    column = columns.need("words")
    encoder = text_encoder(wanted, split=True)

    def encode(row: Row, where: str) -> Sample:
        made, words = encoder.words(words_of(row, column, where), where)
        return Sample(made, words=words)

    plan = RowPlan(encode, {"words": column}, encoder.files, encoder.note)
    tags = columns.label()
    if tags is None:
        return plan

    def label(row: Row, where: str) -> Any:
        value, count = value_of(row, tags, where), len(words_of(row, column, where))
        if isinstance(value, list) and len(value) != count:
            raise DataError(f"{where} has {len(value)} tags for {count} words")
        return value

    return replace(plan, label=label)


def _text_sample(encoder: TextEncoder, form: Form, texts: list[str], where: str) -> Sample:
    if form == "question":
        runs, spans = encoder.windows(texts[0], texts[1], where)
        return Sample(runs[0], None, runs[1:], texts[1], spans)
    if form == "apart":
        first, second = (encoder.encode([text], where) for text in texts)
        return Sample(first, None, (second,))
    return Sample(encoder.encode(texts, where))


def by_text(wanted: SampleRequest, columns: Columns) -> RowPlan:
    used = {"text": columns.need("text")}
    second = columns.find("text_pair") if wanted.form == "joined" else columns.need("text_pair")
    if second is not None:
        used["text_pair"] = second
    encoder = text_encoder(wanted)

    def encode(row: Row, where: str) -> Sample:
        return _text_sample(encoder, wanted.form, [text_of(row, name, where) for name in used.values()], where)

    return RowPlan(encode, used, encoder.files, encoder.note)


def _by_prompts(wanted: SampleRequest, columns: Columns, classes: Callable[[], tuple[str, ...]]) -> RowPlan:
    """An image or a text, with a prompt for each class that occurs in the data."""
    encoder = prompt_encoder(wanted, classes())
    role = "image" if encoder.sees else "text"
    column, folder = columns.need(role), wanted.path.parent

    def encode(row: Row, where: str) -> Sample:
        if not encoder.sees:
            return encoder.text(text_of(row, column, where), where)
        return encoder.image(*content_of(folder, row, column, where))

    return RowPlan(encode, {role: column}, encoder.files, encoder.note, (column,) if encoder.sees else ())


_BY_FORM: dict[Form, Callable[[SampleRequest, Columns], RowPlan]] = {
    "mask": _by_mask,
    "speech": _by_speech,
    "words": _by_words,
    "apart": by_text,
    "question": by_text,
}


def plan_for(wanted: SampleRequest, columns: Columns, classes: Callable[[], tuple[str, ...]]) -> RowPlan:
    """What the form requires; else ready inputs where every input has its column, else what the model takes."""
    if wanted.steps and any(columns.find(spec.name) is None for spec in wanted.inputs):
        raise DataError(
            f"`{wanted.path}` has no column for some input of a model that is run over sequences",
            hint=f"sequences are ready inputs: a column for each of {', '.join(i.name for i in wanted.inputs)}",
        )
    if wanted.form == "prompts":
        return _by_prompts(wanted, columns, classes)
    if wanted.form in _BY_FORM:
        return _BY_FORM[wanted.form](wanted, columns)
    ready = {spec.name: columns.find(spec.name) for spec in wanted.inputs}
    named = {name: column for name, column in ready.items() if column is not None}
    if len(ready) == 1 and not named and wanted.inputs[0].dtype == "str":
        # A model that takes text has its tokenizer inside.
        named = {wanted.inputs[0].name: columns.need("text")}
    if len(named) == len(ready):
        return by_input(wanted, named)
    image = columns.find("image")
    if image is not None and takes_images(wanted.inputs):
        return by_image(wanted, image)
    if takes_speech(wanted.inputs):
        return _by_speech(wanted, columns)
    if columns.find("text") is None and columns.find("words") is not None:
        return _by_words(wanted, columns)
    return by_text(wanted, columns)

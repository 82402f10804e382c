"""Rows of a CSV or JSONL file, or lines of text, read one at a time."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.config import DataSection
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.data.arrays import as_input
from winml.modelkit.data.images import image_encoder
from winml.modelkit.data.samples import Found, Pairs, Sample, Wanted
from winml.modelkit.data.selection import chosen
from winml.modelkit.data.text import TextEncoder, text_encoder
from winml.modelkit.graph.inputs import Input
from winml.modelkit.store import digest

Row = dict[str, Any]

ROLES: dict[str, tuple[str, ...]] = {
    "text": ("text", "sentence", "sentence1", "question", "premise"),
    "text_pair": ("text_pair", "sentence2", "context", "hypothesis"),
    "image": ("image", "image_path", "file", "path"),
    "label": ("label", "labels", "score", "answers", "answer"),
}
"""Role of a column -> names it is found by when nobody names it."""


def _csv_rows(path: Path, delimiter: str) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.DictReader(stream, delimiter=delimiter, strict=True)
        names = reader.fieldnames or []
        if len(set(names)) != len(names):
            raise DataError(f"`{path}` names a column twice")
        for row in reader:
            if None in row or None in row.values():
                raise DataError(f"line {reader.line_num} of `{path}` has not as many fields as the first line")
            yield row


def _json_rows(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig") as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise DataError(f"line {number} of `{path}` is not JSON: {error}") from error
            if not isinstance(row, dict):
                raise DataError(f"line {number} of `{path}` is not a JSON object")
            yield row


def _text_rows(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig") as stream:
        for line in stream:
            if line.strip():
                yield {"text": line.rstrip("\r\n")}


_READERS: dict[str, Callable[[Path], Iterator[Row]]] = {
    ".csv": lambda path: _csv_rows(path, ","),
    ".tsv": lambda path: _csv_rows(path, "\t"),
    ".jsonl": _json_rows,
    ".txt": _text_rows,
}


def _rows(path: Path) -> Iterator[Row]:
    try:
        yield from _READERS[path.suffix.lower()](path)
    except UnicodeDecodeError as error:
        raise DataError(f"`{path}` is not text in UTF-8: {error}") from error
    except csv.Error as error:
        raise DataError(f"`{path}` cannot be read as a table: {error}") from error


class _Columns:
    """Which column plays which role."""

    def __init__(self, wanted: Wanted, present: list[str]) -> None:
        self._wanted = wanted
        self._present = present
        known = [*ROLES, *(i.name for i in wanted.inputs)]
        for role in wanted.section.columns:
            if role not in known:
                raise DataError(f"a column cannot be for `{role}`", hint=did_you_mean(role, known))

    def find(self, role: str) -> str | None:
        """The column for a role: the one that was named, or one with a usual name."""
        given = self._wanted.section.columns.get(role)
        if given is not None and given not in self._present:
            raise DataError(f"`{self._wanted.path}` has no column `{given}`", hint=did_you_mean(given, self._present))
        names = (given,) if given else ROLES.get(role, (role,))
        return next((name for name in names if name in self._present), None)

    def need(self, role: str) -> str:
        found = self.find(role)
        if found is None:
            raise DataError(
                f"`{self._wanted.path}` has no column for `{role}`",
                hint=f"it has: {', '.join(self._present) or 'none'}; name it with `--column {role}=NAME`",
            )
        return found


@dataclass(frozen=True)
class _Plan:
    """How a row becomes a sample, and what that takes."""

    encode: Callable[[Row, str], Sample]
    columns: dict[str, str]
    files: dict[str, str] = field(default_factory=dict)
    note: str | None = None
    file: Callable[[Row, str], Path] | None = None
    """The file a row names, which is part of the data."""


def _value(row: Row, column: str, where: str) -> Any:
    if row.get(column) is None:
        raise DataError(f"{where} has no `{column}`")
    return row[column]


def _text(row: Row, column: str, where: str) -> str:
    value = _value(row, column, where)
    if not isinstance(value, str):
        raise DataError(f"`{column}` of {where} must be text but is {value!r:.80}")
    return value


def _array(row: Row, column: str, spec: Input, where: str) -> npt.NDArray[Any]:
    value = _value(row, column, where)
    try:
        array = np.asarray(json.loads(value) if isinstance(value, str) and spec.dtype != "str" else value)
    except (ValueError, RecursionError) as error:
        raise DataError(f"`{column}` of {where} is not an array of numbers: {error}") from error
    # Text has no way to tell 1 from 1.0.
    return as_input(
        array.astype(np.float64) if array.dtype.kind in "iu" and spec.dtype.startswith("float") else array, spec, where
    )


def _by_input(wanted: Wanted, columns: dict[str, str]) -> _Plan:
    """Values that are inputs as they stand."""

    def encode(row: Row, where: str) -> Sample:
        return Sample({spec.name: _array(row, columns[spec.name], spec, where) for spec in wanted.inputs})

    return _Plan(encode, columns)


def _by_image(wanted: Wanted, column: str) -> _Plan:
    """Files named in a column, relative to the table."""
    encoder = image_encoder(wanted)

    def file(row: Row, where: str) -> Path:
        path = wanted.path.parent / _text(row, column, where)
        if not path.is_file():
            raise DataError(f"the image of {where} is not there: `{path}`")
        return path

    def encode(row: Row, where: str) -> Sample:
        path = file(row, where)
        return Sample(encoder.encode(path.read_bytes(), f"`{path}`"))

    return _Plan(encode, {"image": column}, encoder.files, file=file)


def _text_sample(encoder: TextEncoder, pairs: Pairs, texts: list[str], where: str) -> Sample:
    if pairs == "question":
        runs, spans = encoder.windows(texts[0], texts[1], where)
        return Sample(runs[0], None, runs[1:], texts[1], spans)
    if pairs == "apart":
        first, second = (encoder.encode([text], where) for text in texts)
        return Sample(first, None, (second,))
    return Sample(encoder.encode(texts, where))


def _by_text(wanted: Wanted, columns: _Columns) -> _Plan:
    used = {"text": columns.need("text")}
    second = columns.find("text_pair") if wanted.pairs == "joined" else columns.need("text_pair")
    if second is not None:
        used["text_pair"] = second
    encoder = text_encoder(wanted)

    def encode(row: Row, where: str) -> Sample:
        return _text_sample(encoder, wanted.pairs, [_text(row, name, where) for name in used.values()], where)

    return _Plan(encode, used, encoder.files, encoder.note)


def _plan(wanted: Wanted, columns: _Columns) -> _Plan:
    """Ready inputs where every input has its column, else images for an image model, else texts."""
    ready = {spec.name: columns.find(spec.name) for spec in wanted.inputs}
    named = {name: column for name, column in ready.items() if column is not None}
    if wanted.pairs == "joined" and len(named) == len(ready):
        return _by_input(wanted, named)
    image = columns.find("image")
    if image is not None and [len(spec.shape) for spec in wanted.inputs] == [4]:
        return _by_image(wanted, image)
    return _by_text(wanted, columns)


def _count(path: Path) -> tuple[int, list[str]]:
    """How many rows there are, and the columns of the first."""
    count, names = 0, list[str]()
    for row in _rows(path):
        names = list(row) if not count else names
        count += 1
    return count, names


def _chosen_rows(path: Path, indices: Sequence[int]) -> Iterator[tuple[Row, str]]:
    """The rows with these ascending numbers, and how to name them in errors."""
    wanted = iter(indices)
    number = next(wanted, None)
    for index, row in enumerate(_rows(path)):
        if index == number:
            yield row, f"sample {index} of `{path}`"
            number = next(wanted, None)
            if number is None:
                return


def read(wanted: Wanted) -> Found:
    """Samples from rows: ready inputs, image files or texts, by the columns there are."""
    path, section = wanted.path, wanted.section
    count, names = _count(path)
    if not count:
        raise DataError(f"`{path}` has no samples")
    columns = _Columns(wanted, names)
    plan = _plan(wanted, columns)
    label = columns.need("label") if wanted.labels else None
    indices = chosen(count, section.limit, section.seed)

    def samples() -> Iterator[Sample]:
        for row, where in _chosen_rows(path, indices):
            made = plan.encode(row, where)
            yield made.labelled(None if label is None else _value(row, label, where), where)

    content = {path.name: digest.of_file(path), **plan.files}
    if plan.file is not None:
        named = (plan.file(row, where) for row, where in _chosen_rows(path, indices))
        content |= {Path(os.path.relpath(p, path.parent)).as_posix(): digest.of_file(p) for p in named}
    used = plan.columns if label is None else {**plan.columns, "label": label}
    return Found(len(indices), samples, content, used, (*_taken(used, section), *((plan.note,) if plan.note else ())))


def _taken(used: dict[str, str], section: DataSection) -> list[str]:
    """Columns that were found by a usual name."""
    found = [(role, name) for role, name in used.items() if name != role and role not in section.columns]
    return [f"column `{name}` is taken for {role}" for role, name in found]

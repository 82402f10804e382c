"""Rows of a CSV or JSONL file, or lines of text, read one at a time."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from winml.modelkit.core.config import DataSection
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.json_text import parse_json
from winml.modelkit.core.limits import HINT, text_bytes
from winml.modelkit.data.forms import plan_rows
from winml.modelkit.data.prompts import class_list
from winml.modelkit.data.row_plans import Columns, Row, RowPlan, file_of, value_of
from winml.modelkit.data.samples import DATA, Sample, SampleRequest, SampleSource
from winml.modelkit.data.selection import choose
from winml.modelkit.data.video import is_image
from winml.modelkit.store import digest


def _lines(path: Path, *, newline: str | None = None) -> Iterator[str]:
    """Lines of a text in UTF-8, none longer than a line may be."""
    most = text_bytes()
    with path.open(encoding="utf-8-sig", newline=newline) as stream:
        number = 1
        while line := stream.readline(most + 1):
            if len(line) > most:
                raise DataError(f"line {number} of `{path}` is longer than {most} characters", hint=HINT)
            yield line
            number += 1


def _csv_rows(path: Path, delimiter: str) -> Iterator[Row]:
    reader = csv.DictReader(_lines(path, newline=""), delimiter=delimiter, strict=True)
    names = reader.fieldnames or []
    if len(set(names)) != len(names):
        raise DataError(f"`{path}` names a column twice")
    for row in reader:
        if None in row or None in row.values():
            raise DataError(f"line {reader.line_num} of `{path}` has a different number of fields than the first line")
        yield row


def _json_rows(path: Path) -> Iterator[Row]:
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        try:
            row = parse_json(line, lenient=True)
        except ValueError as error:
            raise DataError(f"line {number} of `{path}` is not JSON: {error}") from error
        if not isinstance(row, dict):
            raise DataError(f"line {number} of `{path}` is not a JSON object")
        yield row


def _text_rows(path: Path) -> Iterator[Row]:
    for line in _lines(path):
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
        raise DataError(f"`{path}` is not UTF-8 text: {error}") from error
    except csv.Error as error:
        raise DataError(f"`{path}` cannot be read as a table: {error}") from error


def _count(path: Path) -> tuple[int, list[str]]:
    """How many rows there are, and the columns of the first."""
    count, names = 0, list[str]()
    for row in _rows(path):
        names = list(row) if not count else names
        count += 1
    return count, names


def list_columns(path: Path) -> tuple[str, ...]:
    """The columns of the first row."""
    return tuple(next(_rows(path), {}))


def _pick_rows(path: Path, indices: Sequence[int]) -> Iterator[tuple[Row, str]]:
    """The rows with these ascending numbers, and how to name them in errors."""
    wanted = iter(indices)
    number = next(wanted, None)
    for index, row in enumerate(_rows(path)):
        if index == number:
            yield row, f"sample {index} of `{path}`"
            number = next(wanted, None)
            if number is None:
                return


def read(wanted: SampleRequest) -> SampleSource:
    """Samples from rows: ready inputs, image files or texts, by the columns there are."""
    path, section = wanted.path, wanted.section
    count, names = _count(path)
    if not count:
        raise DataError(f"`{path}` has no samples")
    columns = Columns(wanted, names)
    plan = plan_rows(wanted, columns, lambda: _classes(path, columns.need("label")))
    label = None if plan.complete else columns.label()
    indices = choose(count, section.limit, section.seed)

    def samples() -> Iterator[Sample]:
        for row, where in _pick_rows(path, indices):
            made = plan.encode(row, where)
            if plan.complete:
                yield replace(made, where=where)
                continue
            yield made.with_label(None if label is None else _label(plan, row, label, where), where)

    content = {DATA: digest.of_file(path), **plan.files, **_digest_files(path, plan, indices)}
    used = plan.columns if label is None else {**plan.columns, "label": label}
    return SampleSource(
        len(indices), samples, content, used, (*_column_notes(used, section), *((plan.note,) if plan.note else ()))
    )


def _label(plan: RowPlan, row: Row, column: str, where: str) -> Any:
    return value_of(row, column, where) if plan.label is None else plan.label(row, where)


def _classes(path: Path, column: str) -> tuple[str, ...]:
    """The classes that occur in the whole table, also where only some rows are used."""
    labels = (value_of(row, column, f"sample {index} of `{path}`") for index, row in enumerate(_rows(path)))
    return class_list((name for label in labels for name in _names(label)), str(path))


def _names(label: Any) -> list[Any]:
    """The class of a sample, or those of its objects."""
    if isinstance(label, list) and all(isinstance(one, dict) for one in label):
        return [one.get("category") for one in label]
    return [label]


def _digest_files(path: Path, plan: RowPlan, indices: Sequence[int]) -> dict[str, str]:
    """Digests of the files that the chosen rows name."""
    found = {}
    for row, where in _pick_rows(path, indices) if plan.named else ():
        for column in plan.named:
            # A video is a folder of its frames.
            named = path.parent / str(row.get(column))
            inside = sorted(filter(is_image, named.iterdir())) if named.is_dir() else []
            for file in inside or [file_of(path.parent, row, column, where)]:
                found[Path(os.path.relpath(file, path.parent)).as_posix()] = digest.of_file(file)
    return found


def _column_notes(used: dict[str, str], section: DataSection) -> list[str]:
    """Columns that were found by a usual name."""
    found = [(role, name) for role, name in used.items() if name != role and role not in section.columns]
    return [f"column `{name}` is used as {role}" for role, name in found]

"""Rows of a CSV, JSONL or parquet file, or lines of text, read one at a time."""

from __future__ import annotations

import csv
import gzip
import os
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from winml.modelkit.core.config import DataSection
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.json_text import parse_json
from winml.modelkit.core.limits import HINT, sample_bytes, text_bytes
from winml.modelkit.data.forms import plan_rows
from winml.modelkit.data.prompts import class_list
from winml.modelkit.data.row_plans import Columns, RowPlan, file_of, value_of
from winml.modelkit.data.samples import DATA, NamedClass, Sample, SampleRequest, SampleSource
from winml.modelkit.data.selection import choose
from winml.modelkit.data.sources import Row, Table, add_fields, name_fields
from winml.modelkit.data.video import is_image
from winml.modelkit.store import digest

PACKED = ".gz"
_UNPACKED_SAMPLES = 16
"""A packed file may become as large as this many of the largest samples."""


def ending_of(path: Path) -> str:
    """The ending that says what a file is, with what it was packed by."""
    ending = path.suffix.lower()
    return f"{Path(path.stem).suffix.lower()}{ending}" if ending == PACKED else ending


def _lines(path: Path, *, newline: str | None = None) -> Iterator[str]:
    """Lines of a text in UTF-8, none longer than a line may be."""
    most, whole = text_bytes(), sample_bytes() * _UNPACKED_SAMPLES
    packed = path.suffix.lower() == PACKED
    with (gzip.open if packed else open)(path, "rt", encoding="utf-8-sig", newline=newline) as stream:
        number, read = 1, 0
        while line := stream.readline(most + 1):
            if len(line) > most:
                raise DataError(f"line {number} of `{path}` is longer than {most} characters", hint=HINT)
            read += len(line)
            if packed and read > whole:
                raise DataError(f"`{path}` becomes larger than {whole} bytes when it is unpacked", hint=HINT)
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
    ".jsonl.gz": _json_rows,
    ".txt": _text_rows,
}


def _rows(path: Path) -> Iterator[Row]:
    try:
        yield from _READERS[ending_of(path)](path)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"`{path}` is not a whole file of gzip: {error}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"`{path}` is not UTF-8 text: {error}") from error
    except csv.Error as error:
        raise DataError(f"`{path}` cannot be read as a table: {error}") from error


class TextTable:
    """A file of text with a row in each line, which is read from its start every time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @cached_property
    def _first(self) -> list[str]:
        return name_fields(next(_rows(self._path), {}))

    @property
    def names(self) -> list[str]:
        return self._first

    @cached_property
    def count(self) -> int:
        return sum(1 for _ in _rows(self._path))

    def rows(self, columns: Collection[str] | None, indices: Sequence[int] | None) -> Iterator[tuple[int, Row]]:
        wanted = iter(range(self.count) if indices is None else indices)
        number = next(wanted, None)
        for index, row in enumerate(_rows(self._path)):
            if number is None:
                return
            if index == number:
                yield index, add_fields(row, columns or ())
                number = next(wanted, None)

    def holds_files(self, column: str) -> bool:
        return False


def open_table(path: Path) -> Table:
    """The rows of a file; the package for parquet is needed by such a file alone."""
    if ending_of(path) in _READERS:
        return TextTable(path)
    from winml.modelkit.data.parquet import ParquetTable

    return ParquetTable(path)


def list_columns(path: Path) -> tuple[str, ...]:
    """The columns of the first row, and the fields in them."""
    return tuple(open_table(path).names)


def read(wanted: SampleRequest) -> SampleSource:
    """Samples from rows: ready inputs, images or texts, by the columns there are."""
    path, section = wanted.path, wanted.section
    table = open_table(path)
    count, names = table.count, table.names
    if not count:
        raise DataError(f"`{path}` has no samples")
    columns = Columns(wanted, names)
    plan = plan_rows(wanted, columns, lambda: _classes(table, path, columns.need("label")))
    label = None if plan.complete else columns.label()
    kept, blank = _with_text(table, path, plan) if wanted.form == "passage" else (range(count), None)
    chosen = choose(len(kept), section.limit, section.seed)
    indices = chosen if isinstance(kept, range) else [kept[place] for place in chosen]
    fields = frozenset(columns.used)

    def samples() -> Iterator[Sample]:
        for number, row in table.rows(fields, indices):
            where = _where(number, path)
            made = plan.encode(row, where)
            if plan.complete:
                yield replace(made, where=where)
                continue
            yield made.with_label(None if label is None else _label(wanted, plan, row, label, where), where)

    content = {DATA: digest.of_file(path), **plan.files, **_digest_files(table, path, plan, indices)}
    used = plan.columns if label is None else {**plan.columns, "label": label}
    notes = (*_column_notes(used, section), *(note for note in (plan.note, blank) if note))
    return SampleSource(len(indices), samples, content, used, notes)


def _where(number: int, path: Path) -> str:
    """How a row is called in errors."""
    return f"sample {number} of `{path}`"


def _with_text(table: Table, path: Path, plan: RowPlan) -> tuple[Sequence[int], str | None]:
    """The rows whose text is not blank, with a note where there are others: corpora have them between paragraphs."""
    column = plan.columns["text"]
    blank = {
        number
        for number, row in table.rows((column,), None)
        if isinstance(row.get(column), str) and not row[column].strip()
    }
    if not blank:
        return range(table.count), None
    kept = [number for number in range(table.count) if number not in blank]
    if not kept:
        raise DataError(f"`{path}` has no text in column `{column}`")
    return kept, f"{len(blank)} of {table.count} rows have no text and are left out"


def _label(wanted: SampleRequest, plan: RowPlan, row: Row, column: str, where: str) -> Any:
    value = value_of(row, column, where) if plan.label is None else plan.label(row, where)
    # Prompts are made of the names of classes.
    return value.name if wanted.form == "prompts" and isinstance(value, NamedClass) else value


def _classes(table: Table, path: Path, column: str) -> tuple[str, ...]:
    """The classes that occur in the whole table, also where only some rows are used."""
    labels = (value_of(row, column, _where(number, path)) for number, row in table.rows((column,), None))
    return class_list((name for label in labels for name in _names(label)), str(path))


def _names(label: Any) -> list[Any]:
    """The class of a sample, or those of its objects, which may be an object of lists."""
    found = [label]
    if isinstance(label, list) and all(isinstance(one, dict) for one in label):
        found = [one.get("category") for one in label]
    elif isinstance(label, dict) and isinstance(label.get("category"), list):
        found = label["category"]
    return [one.name if isinstance(one, NamedClass) else one for one in found]


def _digest_files(table: Table, path: Path, plan: RowPlan, indices: Sequence[int]) -> dict[str, str]:
    """Digests of the files that the chosen rows name."""
    found = {}
    named = tuple(column for column in plan.named if not table.holds_files(column))
    for number, row in table.rows(named, indices) if named else ():
        for column in named:
            # A video is a folder of its frames.
            place = path.parent / str(row.get(column))
            inside = sorted(filter(is_image, place.iterdir())) if place.is_dir() else []
            for file in inside or [file_of(path.parent, row, column, _where(number, path))]:
                found[Path(os.path.relpath(file, path.parent)).as_posix()] = digest.of_file(file)
    return found


def _column_notes(used: dict[str, str], section: DataSection) -> list[str]:
    """Columns that were found by a usual name."""
    found = [(role, name) for role, name in used.items() if name != role and role not in section.columns]
    return [f"column `{name}` is used as {role}" for role, name in found]

"""Rows of a parquet file, as data sets of the Hugging Face hub are stored: only the columns and rows that are used.

The package that reads them is asked for when such a file is opened, and never for other data.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from winml.modelkit.core.errors import DataError, ModelkitError
from winml.modelkit.core.json_text import parse_json
from winml.modelkit.core.limits import HINT, check_sample, sample_bytes
from winml.modelkit.data.extras import extra
from winml.modelkit.data.samples import NamedClass
from winml.modelkit.data.sources import DEEPEST, Row, add_fields

ENDING = ".parquet"
MOST_ROWS = 1 << 28
"""Rows of one file. Equal ones take no room, so that a small file may claim any number of them."""
MOST_COLUMNS = 10_000
_BATCH = 64
"""Rows that are read together at most."""
_STREAM = 1 << 20
"""Bytes of a column that are read at once: a row group as a whole may be larger than the memory."""
_FILE = {"bytes", "path"}
"""The fields of an image or a recording in data sets of the hub."""
_FEATURES = b"huggingface"
_CLASS = "ClassLabel"

Convert = Callable[[Any], Any]


class ParquetTable:
    """A parquet file; its columns are read as they are asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._parquet = extra("pyarrow.parquet", name="parquet", what="reading .parquet")
        self._arrow = extra("pyarrow", name="parquet", what="reading .parquet")
        with self._readable(), self._open() as file:
            meta, self._schema = file.metadata, file.schema_arrow
            sizes = [meta.row_group(index).num_rows for index in range(meta.num_row_groups)]
            self.count = int(meta.num_rows)
        if min(sizes, default=0) < 0 or sum(sizes) != self.count:
            raise DataError(f"`{path}` says it has {self.count} rows, but its parts have {sum(sizes)}")
        if self.count > MOST_ROWS:
            raise DataError(f"`{path}` has {self.count} rows; at most {MOST_ROWS} are read")
        if len(set(self._schema.names)) != len(self._schema.names):
            raise DataError(f"`{path}` names a column twice")
        if len(self._schema.names) > MOST_COLUMNS:
            raise DataError(f"`{path}` has {len(self._schema.names)} columns; at most {MOST_COLUMNS} are read")
        self._starts = [0, *accumulate(sizes)]
        self._converts = self._plan_columns()
        self.names = [name for field in self._schema for name in self._name(field, "", DEEPEST)]

    def _open(self) -> Any:
        # What is read of a file at once is what is asked for, in pieces; checksums are of files that have them.
        return self._parquet.ParquetFile(
            self._path, pre_buffer=False, buffer_size=_STREAM, page_checksum_verification=True
        )

    def _readable(self) -> _Readable:
        return _Readable(self._path, self._arrow)

    def holds_files(self, column: str) -> bool:
        kind = self._type_of(column)
        types = self._arrow.types
        return kind is not None and (types.is_binary(kind) or types.is_large_binary(kind) or self._is_file(kind))

    def rows(self, columns: Collection[str] | None, indices: Sequence[int] | None) -> Iterator[tuple[int, Row]]:
        wanted = sorted(self._schema.names) if columns is None else sorted({self._column(name) for name in columns})
        chosen = range(self.count) if indices is None else indices
        converts = {name: self._converts[name] for name in wanted}
        with self._readable():
            file = self._open()
        with file:
            for group, numbers in self._by_group(chosen):
                for number, row in self._read_group(file, group, numbers, converts):
                    yield number, add_fields(row, columns or ())

    def _by_group(self, chosen: Sequence[int]) -> Iterator[tuple[int, list[int] | range]]:
        """Ascending numbers of rows by the part of the file they lie in."""
        place = 0
        while place < len(chosen):
            group = bisect_right(self._starts, chosen[place]) - 1
            end = self._starts[group + 1]
            after = place + 1
            if isinstance(chosen, range):
                after = min(len(chosen), place + end - chosen[place])
            else:
                while after < len(chosen) and chosen[after] < end:
                    after += 1
            yield group, chosen[place:after]  # type: ignore[misc]
            place = after

    def _read_group(
        self, file: Any, group: int, numbers: Sequence[int], converts: Mapping[str, Convert]
    ) -> Iterator[tuple[int, Row]]:
        """The rows with these numbers of one part of the file."""
        wanted = iter(numbers)
        number, at = next(wanted, None), self._starts[group]
        with self._readable():
            size = self._batch_rows(file.metadata.row_group(group))
            batches = file.iter_batches(size, row_groups=[group], columns=[*converts], use_threads=False)
        while number is not None:
            with self._readable():
                batch = next(batches, None)
                if batch is None:
                    raise DataError(f"`{self._path}` has fewer rows than it says")
                check_sample(batch.nbytes // batch.num_rows if batch.num_rows else 0, f"row {at} of `{self._path}`")
                rows = []
                while number is not None and number < at + batch.num_rows:
                    rows.append((number, {n: convert(batch.column(n)[number - at]) for n, convert in converts.items()}))
                    number = next(wanted, None)
            at += batch.num_rows
            yield from rows

    def _batch_rows(self, group: Any) -> int:
        """How many rows are read together: fewer the larger they are, one at a time where each is a large image.

        Sizes of single columns are not asked for: the package ends the program where a damaged file has none.
        """
        rows, size = int(group.num_rows), int(group.total_byte_size)
        return max(1, min(_BATCH, _STREAM * rows // max(1, size)))

    def _column(self, name: str) -> str:
        """The column that a name is of, or that a field lies in."""
        if name in self._schema.names:
            return name
        places = [place for place, letter in enumerate(name) if letter == "."]
        return next((name[:place] for place in places if name[:place] in self._schema.names), name)

    # What columns hold

    def _type_of(self, name: str) -> Any:
        """The type of a column or of a field in one."""
        head = self._column(name)
        if head not in self._schema.names:
            return None
        kind = self._schema.field(head).type
        for part in filter(None, name[len(head) :].split(".")):
            if not self._arrow.types.is_struct(kind) or kind.get_field_index(part) < 0:
                return None
            kind = kind.field(part).type
        return kind

    def _is_file(self, kind: Any) -> bool:
        """Whether a type is that of images and recordings: their bytes, and the name they had elsewhere."""
        types = self._arrow.types
        if not types.is_struct(kind) or {field.name for field in kind} != _FILE:
            return False
        content = kind.field("bytes").type
        return bool(types.is_binary(content) or types.is_large_binary(content))

    def _name(self, field: Any, before: str, deeper: int) -> Iterator[str]:
        yield f"{before}{field.name}"
        if self._arrow.types.is_struct(field.type) and not self._is_file(field.type) and deeper:
            for inside in field.type:
                yield from self._name(inside, f"{before}{field.name}.", deeper - 1)

    def _plan_columns(self) -> dict[str, Convert]:
        features = self._features()
        return {
            field.name: self._convert(field.type, features.get(field.name), field.name, DEEPEST)
            for field in self._schema
        }

    def _features(self) -> Mapping[str, Any]:
        """What the hub's package wrote of the columns: names of classes are nowhere else."""
        text = (self._schema.metadata or {}).get(_FEATURES)
        if text is None:
            return {}
        try:
            made: Any = parse_json(text.decode("utf-8"), lenient=True)
        except ValueError as error:
            raise DataError(f"what `{self._path}` says of its columns is not JSON: {error}") from error
        info = made.get("info") if isinstance(made, Mapping) else None
        features = info.get("features") if isinstance(info, Mapping) else None
        return features if isinstance(features, Mapping) else {}

    def _convert(self, kind: Any, feature: Any, name: str, deeper: int) -> Convert:
        """How a value of a type becomes one of Python."""
        types = self._arrow.types
        if not deeper:
            raise DataError(f"column `{name}` of `{self._path}` is nested deeper than {DEEPEST} levels")
        if self._is_file(kind):
            return self._content
        if types.is_struct(kind):
            return self._struct(kind, feature, name, deeper)
        if any(check(kind) for check in (types.is_list, types.is_large_list, types.is_fixed_size_list)):
            inner = self._convert(kind.value_type, _element(feature), name, deeper - 1)
            return lambda value: None if not value.is_valid else [inner(one) for one in value]
        names = _class_names(feature)
        if names and types.is_integer(kind):
            return lambda value: _named(value.as_py(), names)
        return lambda value: value.as_py()

    def _struct(self, kind: Any, feature: Any, name: str, deeper: int) -> Convert:
        # A list of objects is stored as an object of lists, and described as the one object that is repeated.
        within = feature if isinstance(feature, Mapping) and "_type" not in feature else _element(feature)
        known = within if isinstance(within, Mapping) else {}
        inside = {
            field.name: self._convert(field.type, known.get(field.name), f"{name}.{field.name}", deeper - 1)
            for field in kind
        }

        def convert(value: Any) -> Any:
            if not value.is_valid:
                return None
            return {field: inner(value[field]) for field, inner in inside.items()}

        return convert

    def _content(self, value: Any) -> Any:
        """The bytes of a file in a row; without them there is nothing but a name of another machine."""
        if not value.is_valid:
            return None
        content = value["bytes"].as_py()
        if content is None:
            raise DataError(
                f"`{self._path}` holds the name of a file but not the file: {value['path'].as_py()!r:.80}",
                hint="names of files in .parquet are of the machine that wrote them; store the data set with its files",
            )
        return content


class _Readable:
    """Turns what the package raises for a damaged file into our error."""

    def __init__(self, path: Path, arrow: Any) -> None:
        self._path, self._arrow = path, arrow

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, self._arrow.ArrowMemoryError | MemoryError):
            most = sample_bytes()
            raise DataError(f"`{self._path}` wants more memory than there is, or more than {most} bytes at once",
                            hint=HINT) from error  # fmt: skip
        if isinstance(error, ModelkitError) or (isinstance(error, OSError) and error.errno is not None):
            return
        # It has an error for everything; text that is no UTF-8 and shapes that cannot be end in those of Python.
        if isinstance(error, self._arrow.ArrowException | OSError | ValueError | OverflowError | RecursionError):
            raise DataError(
                f"`{self._path}` is not a readable .parquet file: {' '.join(str(error).split())[:300]}"
            ) from error


def _element(feature: Any) -> Any:
    """What is said of the elements of a list; itself where it is said of them at once."""
    if isinstance(feature, list) and len(feature) == 1:
        return feature[0]
    return feature.get("feature", feature) if isinstance(feature, Mapping) else None


def _class_names(feature: Any) -> tuple[str, ...]:
    named = feature.get("names") if isinstance(feature, Mapping) and feature.get("_type") == _CLASS else None
    return tuple(named) if isinstance(named, list) and all(isinstance(name, str) for name in named) else ()


def _named(number: int | None, names: tuple[str, ...]) -> int | None:
    """A class by its number and its name; -1 and other numbers without one stay numbers."""
    if number is None or not 0 <= number < len(names):
        return number
    return NamedClass(number, names[number])

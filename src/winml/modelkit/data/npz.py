"""Ready inputs in an .npz file, read row by row: memory holds one sample, compressed or not."""

from __future__ import annotations

import contextlib
import math
import zipfile
import zlib
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.errors import DataError
from winml.modelkit.data.arrays import as_input
from winml.modelkit.data.samples import DATA, Found, Sample, Wanted
from winml.modelkit.data.selection import chosen
from winml.modelkit.store import digest

LABELS = ("label", "labels")
PAIR = "_pair"
"""Ending of the arrays that hold the second text of a pair."""

_BROKEN = (OSError, ValueError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
_VERSIONS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


@dataclass(frozen=True)
class _Array:
    """An array in the file: its rows are the samples."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def row_bytes(self) -> int:
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def _broken(path: Path, error: object) -> DataError:
    return DataError(
        f"`{path}` is not an .npz file of plain arrays: {error}", hint="save it with numpy.savez(path, name=array)"
    )


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """The archive; whatever is wrong with it is our error."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except PermissionError:
        raise
    except _BROKEN as error:
        raise _broken(path, error) from error


def _header(stream: IO[bytes], name: str) -> _Array:
    """The array behind a stream, which then stands at its first row."""
    version = np.lib.format.read_magic(stream)
    if version not in _VERSIONS:
        raise ValueError(f"array `{name}` has format {version}")
    shape, column_major, dtype = _VERSIONS[version](stream)
    if dtype.hasobject:
        raise ValueError(f"array `{name}` holds Python objects")
    if column_major and len(shape) > 1:
        raise ValueError(f"array `{name}` is stored in column order, so its rows cannot be read one by one")
    return _Array(name, shape, dtype)


def _arrays(path: Path) -> dict[str, _Array]:
    with _opened(path) as archive:
        found = {}
        for member in archive.namelist():
            with archive.open(member) as stream:
                name = member.removesuffix(".npy")
                array = _header(stream, name)
                if archive.getinfo(member).file_size - stream.tell() != array.nbytes:
                    raise ValueError(f"array `{name}` has another size than its shape says")
                found[name] = array
    return found


def _rows(archive: zipfile.ZipFile, array: _Array, indices: Sequence[int]) -> Generator[npt.NDArray[Any], None, None]:
    with archive.open(f"{array.name}.npy") as stream:
        _header(stream, array.name)
        start = stream.tell()
        for index in indices:
            stream.seek(start + index * array.row_bytes)
            row = stream.read(array.row_bytes)
            if len(row) != array.row_bytes:
                raise ValueError(f"array `{array.name}` ends early")
            yield np.frombuffer(row, array.dtype).reshape(array.shape[1:])


def _label_name(arrays: dict[str, _Array], wanted: Wanted) -> str:
    given = wanted.section.columns.get("label")
    names = (given,) if given else LABELS
    for name in names:
        if name in arrays:
            return name
    raise DataError(
        f"`{wanted.path}` has no labels: no array `{'` or `'.join(names)}`",
        hint=f"it has: {', '.join(arrays) or 'none'}; name the labels with `--column label=ARRAY`",
    )


def _inputs(arrays: dict[str, _Array], wanted: Wanted, ending: str) -> dict[str, _Array]:
    """The array of each input of the model."""
    taken = {}
    for spec in wanted.inputs:
        name = wanted.section.columns.get(spec.name, spec.name) + ending
        if name not in arrays:
            raise DataError(
                f"`{wanted.path}` has no array for input `{spec.name}`: no `{name}`",
                hint=f"it has: {', '.join(arrays) or 'none'}; name it with `--column {spec.name}=ARRAY`",
            )
        taken[spec.name] = arrays[name]
    return taken


def _count(arrays: Sequence[_Array], path: Path) -> int:
    lengths = {a.name: a.shape[0] if a.shape else 0 for a in arrays}
    if len(set(lengths.values())) > 1:
        words = ", ".join(f"`{name}` {length}" for name, length in lengths.items())
        raise DataError(f"the arrays of `{path}` have different numbers of samples: {words}")
    return next(iter(lengths.values()), 0)


def read(wanted: Wanted) -> Found:
    """Samples from arrays named like the inputs, and `label` or `labels`; the first dimension counts samples."""
    arrays = _arrays(wanted.path)
    runs = [_inputs(arrays, wanted, ending) for ending in (("", PAIR) if wanted.form == "apart" else ("",))]
    label = arrays[_label_name(arrays, wanted)] if wanted.labels else None
    used = [a for run in runs for a in run.values()] + ([label] if label else [])
    indices = chosen(_count(used, wanted.path), wanted.section.limit, wanted.section.seed)

    def samples() -> Iterator[Sample]:
        with _opened(wanted.path) as archive, contextlib.ExitStack() as stack:
            rows = {a.name: stack.enter_context(contextlib.closing(_rows(archive, a, indices))) for a in used}
            for index in indices:
                values = {name: next(row) for name, row in rows.items()}
                where = f"sample {index} of `{wanted.path}`"
                made = [
                    {spec.name: as_input(values[run[spec.name].name], spec, where) for spec in wanted.inputs}
                    for run in runs
                ]
                yield Sample(made[0], values[label.name].tolist() if label else None, tuple(made[1:]), where=where)

    columns = {spec.name: runs[0][spec.name].name for spec in wanted.inputs}
    if label:
        columns["label"] = label.name
    return Found(len(indices), samples, {DATA: digest.of_file(wanted.path)}, columns)

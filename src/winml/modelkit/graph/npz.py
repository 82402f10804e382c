"""Arrays in an .npz file by what their headers say, so that nothing is read which is not wanted or not there."""

from __future__ import annotations

import contextlib
import math
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError

_BROKEN = (OSError, ValueError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, KeyError)
_VERSIONS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_MAX_MEMBERS = 10_000


@dataclass(frozen=True)
class StoredArray:
    """An array in a file, by its header."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    column_major: bool

    @property
    def row_bytes(self) -> int:
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


@contextlib.contextmanager
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """The archive; any problem with it, also while it is read, is a DataError."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (PermissionError, FileNotFoundError):
        raise
    except _BROKEN as error:
        raise DataError(
            f"`{path}` is not an .npz file of plain arrays: {error}", hint="save it with numpy.savez(path, name=array)"
        ) from error


def read_header(stream: IO[bytes], name: str) -> StoredArray:
    """The array behind a stream, which then stands at its first value; ValueError when it is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on headers of other versions of Python
            version = np.lib.format.read_magic(stream)
            if version not in _VERSIONS:
                raise ValueError(f"array `{name}` has format {version}")
            shape, column_major, dtype = _VERSIONS[version](stream)
    except (ValueError, zlib.error, zipfile.BadZipFile, EOFError):
        raise
    except Exception as error:  # a header is text that Python parses: any error of the parser can come out
        raise ValueError(f"array `{name}` has no header: {type(error).__name__}") from error
    if dtype.hasobject:
        raise ValueError(f"array `{name}` holds Python objects")
    if not all(0 <= size < 2**62 for size in shape):
        raise ValueError(f"array `{name}` has the shape {list(shape)}")
    return StoredArray(name, shape, dtype, column_major)


def headers(archive: zipfile.ZipFile) -> dict[str, StoredArray]:
    """All arrays of an archive by name; one whose size is not what its shape says is an error."""
    members = archive.namelist()
    if len(members) > _MAX_MEMBERS or len(set(members)) != len(members):
        raise ValueError(f"it has {len(members)} members, more than {_MAX_MEMBERS}, or some of them twice")
    found = {}
    for member in members:
        name = member.removesuffix(".npy")
        with archive.open(member) as stream:
            array = read_header(stream, name)
            if archive.getinfo(member).file_size - stream.tell() != array.nbytes:
                raise ValueError(f"array `{name}` has a size that does not match its shape")
        found[name] = array
    return found


def read_array(archive: zipfile.ZipFile, array: StoredArray) -> npt.NDArray[Any]:
    """The values of an array; the caller has to check their size first."""
    with archive.open(f"{array.name}.npy" if f"{array.name}.npy" in archive.NameToInfo else array.name) as stream:
        read_header(stream, array.name)
        raw = stream.read(array.nbytes)
    if len(raw) != array.nbytes:
        raise ValueError(f"array `{array.name}` ends early")
    values: npt.NDArray[Any] = np.frombuffer(raw, array.dtype)
    return values.reshape(array.shape, order="F" if array.column_major else "C")


def write_arrays(path: Path, arrays: Mapping[str, npt.ArrayLike]) -> None:
    """Write arrays as `numpy.savez` does, under any name, and only such as can be read again."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, given in arrays.items():
            array = np.asarray(given, order="C")
            if array.dtype.hasobject:
                raise DataError(f"array `{name}` holds Python objects", hint="give numbers, or texts of one dtype")
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)


def stack_samples(samples: Sequence[Mapping[str, npt.ArrayLike]]) -> dict[str, npt.NDArray[Any]]:
    """The arrays of samples, all of the same names and shapes, with a first dimension that counts them."""
    if not samples or not all(isinstance(sample, Mapping) for sample in samples):
        raise DataError("samples must be a mapping of arrays, or a sequence of such mappings, one for each sample")
    names = list(samples[0])
    for number, sample in enumerate(samples):
        if set(sample) != set(names):
            raise DataError(
                f"sample {number} has the arrays {', '.join(map(str, sample))}, the first one {', '.join(names)}"
            )
    stacked = {}
    for name in names:
        rows = [np.asarray(sample[name]) for sample in samples]
        shapes = {row.shape for row in rows}
        if len(shapes) > 1:
            found = " and ".join(str(list(shape)) for shape in sorted(shapes))
            raise DataError(f"the samples of `{name}` have different shapes: {found}")
        stacked[name] = np.stack(rows)
    return stacked

"""Outputs of a model and its reference in one file: whole where they are small, values chosen by a seed where not."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.errors import DataError
from winml.modelkit.core.limits import check_sample
from winml.modelkit.evaluation.distance_report import KeptArray, KeptOutputs
from winml.modelkit.graph import npz
from winml.modelkit.store import atomic, digest

WHOLE_BYTES = 64 * 1024
"""An output of one run is kept whole up to this size."""
CHOSEN = 4096
"""Values that are kept of a larger one."""
SIDES = ("candidate", "reference")
_MEMBER_BYTES = 16 * WHOLE_BYTES
_SEED = 0

Array = npt.NDArray[Any]


def name_of(side: str, output: int, run: int) -> str:
    """What an array is called in the file; names of outputs may not be valid file names."""
    return f"{side}.{output}.{run}"


def sample_values(value: Array) -> Array:
    """The value itself, or of a large one the values that the seed chooses."""
    if is_whole(value.dtype, value.shape):
        return value
    places = sorted(random.Random(_SEED).sample(range(value.size), min(CHOSEN, value.size)))  # noqa: S311
    return np.asarray(value.ravel()[places])


def is_whole(dtype: npt.DTypeLike, shape: tuple[int, ...]) -> bool:
    return int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize <= WHOLE_BYTES


class Keeper:
    """Collects what is kept of every run; nothing without a path."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._arrays: dict[str, Array] = {}
        self._facts: dict[str, KeptArray] = {}

    def add(self, side: str, output: int, run: int, value: Array | None) -> None:
        """An output of a run; None where a model had none."""
        if self._path is None or value is None:
            return
        name = name_of(side, output, run)
        self._arrays[name] = sample_values(value)
        self._facts[name] = KeptArray(
            dtype=str(value.dtype),
            shape=value.shape,
            whole=is_whole(value.dtype, value.shape),
            digest=digest_of(value),
        )

    def write(self) -> KeptOutputs | None:
        """Write the file and return what is in it."""
        if self._path is None:
            return None
        with atomic.writing(self._path) as stream:
            np.savez(stream, **self._arrays)  # type: ignore[arg-type]  # numpy's stub takes the names for options
        return KeptOutputs(digest=digest.of_file(self._path), arrays=self._facts)


def digest_of(value: Array) -> str:
    """The digest of the values in their order, however they lie in memory."""
    return digest.of_bytes(np.ascontiguousarray(value).tobytes())


def read(path: Path) -> dict[str, Array]:
    """The arrays of an untrusted file."""
    try:
        with npz.open_archive(path) as archive:
            if any(member.file_size > _MEMBER_BYTES for member in archive.infolist()):
                raise DataError(f"`{path.name}` holds more than saved outputs")
            stored = npz.headers(archive)
            check_sample(sum(array.nbytes for array in stored.values()), f"`{path.name}`")
            return {name: npz.read_array(archive, array) for name, array in stored.items()}
    except (OSError, DataError) as error:
        raise DataError(f"`{path.name}` holds no outputs: {error}") from error

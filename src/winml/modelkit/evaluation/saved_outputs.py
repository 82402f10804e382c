"""Outputs of a model in a file, one sample after the other, so that two models need not be open at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.errors import UnavailableError, of_system
from winml.modelkit.evaluation.task import Outputs
from winml.modelkit.session.output_arrays import as_array

Rows = list[list[npt.NDArray[Any]]]
"""Outputs by position, for each run of a sample."""


class Writer:
    """Appends the outputs of a sample after the other; without a path it writes nothing."""

    def __init__(self, path: Path | None) -> None:
        self._stream: IO[bytes] | None = None if path is None else path.open("wb")

    def write(self, runs: Sequence[Outputs]) -> None:
        if self._stream is None:
            return
        try:
            np.save(self._stream, np.asarray([len(runs)]), allow_pickle=False)
            for run in runs:
                for value in run.values():
                    np.save(self._stream, _comparable(value), allow_pickle=False)
        except OSError as error:
            raise _not_kept(error) from error

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is None:
            return
        try:
            self._stream.close()
        except OSError as problem:
            # Closing writes what is left; an error already being raised says more.
            if error is None:
                raise _not_kept(problem) from problem


def _not_kept(error: OSError) -> UnavailableError:
    found = of_system(error)
    why = error.strerror if found is None else found.message
    return (UnavailableError if found is None else type(found))(f"outputs cannot be kept for the comparison: {why}")


def _comparable(value: Any) -> npt.NDArray[Any]:
    """The value itself; text as text of one length, which numpy writes without pickling."""
    array = as_array(value)
    return array.astype(np.str_) if array.dtype == object else array


def read(path: Path, outputs: int, samples: int) -> Iterator[Rows]:
    """What a writer wrote, sample by sample."""
    with path.open("rb") as stream:
        for _ in range(samples):
            runs = int(np.load(stream, allow_pickle=False)[0])
            yield [[np.load(stream, allow_pickle=False) for _ in range(outputs)] for _ in range(runs)]

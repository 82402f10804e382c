"""Ready inputs in an .npz file, read row by row: memory holds one sample, compressed or not."""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.errors import DataError
from winml.modelkit.core.limits import check_sample
from winml.modelkit.core.plain_text import shell_word
from winml.modelkit.data.arrays import as_inputs, as_steps
from winml.modelkit.data.samples import DATA, Sample, SampleRequest, SampleSource
from winml.modelkit.data.selection import choose
from winml.modelkit.graph.npz import StoredArray, headers, open_archive, read_header
from winml.modelkit.store import digest

LABELS = ("label", "labels")
PAIR = "_pair"
"""Ending of the arrays that hold the second text of a pair."""

Row = npt.NDArray[Any]
_MAX_SAMPLES = 20_000_000
"""Choosing some of more takes minutes."""


def _arrays(path: Path) -> dict[str, StoredArray]:
    with open_archive(path) as archive:
        return headers(archive)


def list_arrays(path: Path) -> tuple[str, ...]:
    return tuple(_arrays(path))


def _check(arrays: Sequence[StoredArray], path: Path) -> None:
    """Raise when rows of these arrays cannot be read one by one, or one of them is more than a sample may be."""
    for array in arrays:
        if array.column_major and len(array.shape) > 1:
            raise DataError(
                f"array `{array.name}` of `{path}` is stored in column order, so its rows cannot be read one by one",
                hint="save it with numpy.ascontiguousarray",
            )
    check_sample(sum(array.row_bytes for array in arrays), f"a sample of `{path}`")


def _rows(
    archive: zipfile.ZipFile, array: StoredArray, indices: Sequence[int]
) -> Generator[npt.NDArray[Any], None, None]:
    with archive.open(f"{array.name}.npy") as stream:
        read_header(stream, array.name)
        start = stream.tell()
        for index in indices:
            stream.seek(start + index * array.row_bytes)
            row = stream.read(array.row_bytes)
            if len(row) != array.row_bytes:
                raise ValueError(f"array `{array.name}` ends early")
            yield np.frombuffer(row, array.dtype).reshape(array.shape[1:])


def _label_name(arrays: dict[str, StoredArray], wanted: SampleRequest) -> str | None:
    given = wanted.section.columns.get("label")
    names = (given,) if given else LABELS
    for name in names if wanted.labels is not False else ():
        if name in arrays:
            return name
    if not wanted.labels and (given is None or wanted.labels is False):
        return None
    raise DataError(
        f"`{wanted.path}` has no labels: no array `{'` or `'.join(names)}`",
        hint=f"it has: {', '.join(arrays) or 'none'}; name the labels with `--column label=ARRAY`",
    )


def _inputs(arrays: dict[str, StoredArray], wanted: SampleRequest, ending: str) -> dict[str, StoredArray]:
    """The array of each input of the model."""
    taken = {}
    for spec in wanted.inputs:
        name = wanted.section.columns.get(spec.name, spec.name) + ending
        if name not in arrays:
            word = shell_word(f"{spec.name}=ARRAY")
            raise DataError(
                f"`{wanted.path}` has no array for input `{spec.name}`: no `{name}`",
                hint=f"it has: {', '.join(arrays) or 'none'}; name it with `--column {word}`"
                + (f", or `--state {shell_word(f'{spec.name}=OUTPUT')}` where it is a state" if wanted.steps else ""),
            )
        taken[spec.name] = arrays[name]
    return taken


def _count(arrays: Sequence[StoredArray], path: Path) -> int:
    lengths = {a.name: a.shape[0] if a.shape else 0 for a in arrays}
    if len(set(lengths.values())) > 1:
        words = ", ".join(f"`{name}` {length}" for name, length in lengths.items())
        raise DataError(f"the arrays of `{path}` have different numbers of samples: {words}")
    count = next(iter(lengths.values()), 0)
    if count > _MAX_SAMPLES:
        raise DataError(f"`{path}` has {count} samples, more than {_MAX_SAMPLES}")
    return count


def read(wanted: SampleRequest) -> SampleSource:
    """Samples from arrays named like the inputs, and `label` or `labels`; the first dimension counts samples."""
    arrays = _arrays(wanted.path)
    runs = [_inputs(arrays, wanted, ending) for ending in (("", PAIR) if wanted.form == "apart" else ("",))]
    named = _label_name(arrays, wanted)
    label = None if named is None else arrays[named]
    used = [a for run in runs for a in run.values()] + ([label] if label else [])
    _check(used, wanted.path)
    indices = choose(_count(used, wanted.path), wanted.section.limit, wanted.section.seed)

    def samples() -> Iterator[Sample]:
        with open_archive(wanted.path) as archive, contextlib.ExitStack() as stack:
            rows = {a.name: stack.enter_context(contextlib.closing(_rows(archive, a, indices))) for a in used}
            for index in indices:
                values = {name: next(row) for name, row in rows.items()}
                where = f"sample {index} of `{wanted.path}`"
                given = [{spec.name: values[run[spec.name].name] for spec in wanted.inputs} for run in runs]
                made = (
                    as_steps(given[0], wanted.inputs, where)
                    if wanted.steps
                    else [as_inputs(run, wanted.inputs, where) for run in given]
                )
                yield Sample(made[0], values[label.name].tolist() if label else None, tuple(made[1:]), where=where)

    columns = {spec.name: runs[0][spec.name].name for spec in wanted.inputs}
    if label:
        columns["label"] = label.name
    return SampleSource(len(indices), samples, {DATA: digest.of_file(wanted.path)}, columns)

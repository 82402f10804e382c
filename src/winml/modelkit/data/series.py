"""Values over time: a table with a moment per row, cut into windows of past and future."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.errors import DataError
from winml.modelkit.core.limits import check_sample
from winml.modelkit.data import processor
from winml.modelkit.data.arrays import as_input
from winml.modelkit.data.row_plans import Columns, RowPlan, array_of, by_input
from winml.modelkit.data.samples import DATA, Sample, SampleRequest, SampleSource
from winml.modelkit.data.selection import choose
from winml.modelkit.data.sources import Row
from winml.modelkit.graph.inputs import Input
from winml.modelkit.store import digest

PAST, OBSERVED = "past_values", "past_observed_mask"
CONFIG = "config.json"
HORIZON = "prediction_length"
_TIMES = ("date", "time", "timestamp", "ds", "datetime")
_MOST_ROWS = 10_000_000


def _read_table(path: Path) -> tuple[list[str], npt.NDArray[np.float64]]:
    """Names and values of the columns; one with the time in it is left out."""
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    rows: list[list[float]] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream, delimiter=delimiter, strict=True)
            head = next(reader, [])
            kept = [place for place, name in enumerate(head) if name.strip().lower() not in _TIMES]
            for row in reader:
                if len(row) != len(head) or len(rows) >= _MOST_ROWS:
                    raise DataError(f"line {reader.line_num} of `{path}` has {len(row)} fields, the first {len(head)}")
                rows.append([float(row[place]) for place in kept])
                if not len(rows) % 65536:
                    check_sample(len(rows) * len(kept) * 8, f"`{path}`")
    except UnicodeDecodeError as error:
        raise DataError(f"`{path}` is not UTF-8 text: {error}") from error
    except (csv.Error, ValueError) as error:
        raise DataError(f"`{path}` must have a number in every field but {error}") from error
    values = np.asarray(rows, np.float64).reshape(len(rows), len(kept))
    if not np.isfinite(values).all():
        raise DataError(f"`{path}` has NaN or infinite values", hint="fill or remove the moments without values")
    return [head[place] for place in kept], values


def _past(wanted: SampleRequest) -> Input:
    specs = {spec.name: spec for spec in wanted.inputs}
    spec = specs.get(PAST) or (wanted.inputs[0] if len(specs) == 1 else None)
    if spec is None or len(spec.shape) not in (2, 3) or set(specs) - {spec.name, OBSERVED}:
        raise DataError(
            f"series need a model with the input `{PAST}` alone; this one takes {', '.join(specs)}",
            hint="give the inputs themselves in a .npz file",
        )
    return spec


def _length(wanted: SampleRequest, spec: Input, config: dict[str, Any]) -> int:
    """Moments that the model sees."""
    fixed = spec.shape[1]
    named = config.get("context_length")
    found = fixed if isinstance(fixed, int) else wanted.section.length or named
    if type(found) is not int or found < 2:
        raise DataError(f"how many moments the model sees is neither in the model nor in its {CONFIG}",
                        hint="give it with `--length`")  # fmt: skip
    return found


def read(wanted: SampleRequest) -> SampleSource:
    """Windows one after the other: the past that the model sees, and for its label as many moments as it predicts."""
    spec, path = _past(wanted), processor.find(wanted.folder, CONFIG)
    config = processor.read_object(path) if path else {}
    length, horizon = _length(wanted, spec, config), config.get(HORIZON)
    if type(horizon) is not int or horizon < 1:
        raise DataError(
            f"how many moments the model predicts is not known: no `{HORIZON}` in {CONFIG}",
            hint=f"put the model's {CONFIG} beside it or name its folder with `--processor DIR`",
        )
    names, values = _read_table(wanted.path)
    count = max(0, (len(values) - length) // horizon)
    if not count:
        raise DataError(f"`{wanted.path}` has {len(values)} moments; a sample takes {length} and {horizon} more")
    indices = choose(count, wanted.section.limit, wanted.section.seed)

    def samples() -> Iterator[Sample]:
        for index in indices:
            start = index * horizon
            where = f"moments {start} to {start + length + horizon} of `{wanted.path}`"
            past, future = values[start : start + length], values[start + length : start + length + horizon]
            label = future if wanted.labels is not False else None
            yield Sample(_inputs(wanted, spec, past, where), label, where=where)

    content = {DATA: digest.of_file(wanted.path), "horizon": str(horizon), "length": str(length)}
    note = f"windows of {length} moments and {horizon} to predict, one every {horizon} moments; columns: " + ", ".join(
        names
    )
    return SampleSource(len(indices), samples, content, notes=(note,))


def _inputs(wanted: SampleRequest, spec: Input, past: npt.NDArray[np.float64], where: str) -> dict[str, Any]:
    shaped = past[:, 0] if len(spec.shape) == 2 and past.shape[1] == 1 else past
    inputs = {spec.name: as_input(shaped.astype(np.float32), spec, where)}
    for other in wanted.inputs:
        if other.name == OBSERVED:
            inputs[OBSERVED] = as_input(np.ones(shaped.shape, np.dtype(other.dtype)), other, where)
    return inputs


def by_series(wanted: SampleRequest, columns: Columns) -> RowPlan:
    """Rows with the values of one series each: a list of moments, or of lists with a number per channel."""
    ready = {spec.name: columns.find(spec.name) for spec in wanted.inputs}
    if all(ready.values()):
        return by_input(wanted, {name: column for name, column in ready.items() if column is not None})
    spec, column = _past(wanted), columns.need("values")

    def encode(row: Row, where: str) -> Sample:
        given = as_input(array_of(row, column, spec, where), spec, where)
        return Sample({**_inputs(wanted, spec, given[0].astype(np.float64), where), spec.name: given})

    return RowPlan(encode, {"values": column})


def numbers_of(value: Any, what: str) -> npt.NDArray[np.float64]:
    """A number, or a list of them, that a label is."""
    try:
        made = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        made = np.asarray(math.nan)
    if value is None or isinstance(value, bool) or not made.size or not np.isfinite(made).all():
        raise DataError(f"{what} must be a number or a list of numbers but is {value!r:.80}")
    return made

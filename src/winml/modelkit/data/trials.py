"""Random inputs to compare two versions of a model on, where any size that runs will do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from winml.modelkit.core.config import RANDOM, DataSection
from winml.modelkit.graph.inputs import Input
from winml.modelkit.graph.sizes import is_batch, open_dims
from winml.modelkit.graph.trial import stated_placeholders, trial_sizes, whole_ranges

SIZES = (16, 64, 224, 128, 2, 1)
"""Sizes of open dimensions that are tried until one runs, where none are given and the model has none."""


def attempts(
    data: DataSection, path: Path, inputs: Sequence[Input], given: Mapping[str, int] | None = None
) -> Iterator[DataSection]:
    """The data; random data at the sizes given, those the model in `path` was made for, or else others to try."""
    opened = open_dims(inputs)
    known = {name: size for name, size in {**data.dims, **(given or {})}.items() if name in opened}
    if data.source != RANDOM or not set(opened) - set(known):
        yield replace(data, dims={**data.dims, **known})
        return
    ranges = {name: (float(low), float(high)) for name, (low, high) in whole_ranges(path, inputs).items()}
    words = {**stated_placeholders(path, inputs), **(data.placeholders or {})} or None
    batches = {name: 1 for name, places in opened.items() if is_batch(name, places)}
    for sizes in trial_sizes(path, inputs, {**batches, **known}, SIZES, small_first=False):
        yield replace(data, dims=sizes, ranges={**ranges, **data.ranges}, placeholders=words)

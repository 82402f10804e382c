"""Sizes to compare two versions of a model at: any that runs will do, unlike for times or artifacts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from winml.modelkit.core.placeholders import Placeholders
from winml.modelkit.graph import files
from winml.modelkit.graph.implied import infer_sizes
from winml.modelkit.graph.signature import read_signature
from winml.modelkit.graph.sizes import (
    SizedInput,
    is_batch,
    metadata_placeholders,
    metadata_ranges,
    metadata_sizes,
    open_dims,
)


def trial_sizes(
    path: Path, inputs: Sequence[SizedInput], given: Mapping[str, int], sizes: Sequence[int], *, small_first: bool
) -> Iterator[dict[str, int]]:
    """Sizes of all open dimensions of the model in a file, one set after another until enough of them ran.

    The numbers of `sizes` stand for whatever is neither given nor fixed by the graph, or for the batch alone where the
    file says what it was made for; small ones first cost less. 1 comes last: it fits by broadcasting what would not
    fit otherwise, as in parts of a decoder.
    """
    opened = open_dims(inputs)
    if not set(opened) - set(given):
        yield {name: given[name] for name in opened}
        return
    implied = {name: size.size for name, size in infer_sizes(files.load(path, weights=False), path).items()}
    made_for = metadata_sizes(read_signature(path).metadata)
    made_for = {name: size for name, size in made_for.items() if name in opened and not is_batch(name, opened[name])}
    bases = [implied, made_for] if small_first else [made_for, implied]
    tried = [(base, size) for base in bases if base is implied or base for size in sizes if size > 1]
    for base, size in [*tried, *((implied, size) for size in sizes if size == 1)]:
        yield {name: {**base, **given}.get(name, size) for name in opened}


def whole_ranges(path: Path, inputs: Sequence[SizedInput]) -> dict[str, tuple[int, int]]:
    """The whole numbers that the inputs of the model in a file take, as the file says."""
    names = {value.name for value in inputs}
    return {name: ends for name, ends in metadata_ranges(read_signature(path).metadata).items() if name in names}


def stated_placeholders(path: Path, inputs: Sequence[SizedInput]) -> dict[str, Placeholders]:
    """The words of inputs that stand for what others hold, as the file says."""
    names = {value.name for value in inputs}
    found = metadata_placeholders(read_signature(path).metadata)
    return {name: words for name, words in found.items() if name in names}

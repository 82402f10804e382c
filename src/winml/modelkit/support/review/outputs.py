"""Worker operation `review.outputs`: whether the saved outputs give the claimed distances."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from winml.modelkit.core.errors import DataError
from winml.modelkit.core.values import read, to_json
from winml.modelkit.evaluation import kept_outputs
from winml.modelkit.evaluation.distances import Distances
from winml.modelkit.evaluation.kept_outputs import SIDES, Array, name_of
from winml.modelkit.session.distance import distance_of
from winml.modelkit.support.review.evidence import same
from winml.modelkit.support.review.outputs_question import OutputsAnswer, OutputsQuestion
from winml.modelkit.support.review.rerun import COSINE_MARGIN, DIFFERENCE_MARGIN
from winml.modelkit.support.review.results import KeptArray, OutputDistance

Arrays = Mapping[str, Array]


def check(args: dict[str, Any], context: object) -> OutputsAnswer:
    """Check the outputs of an `OutputsQuestion` against its claims; a file without outputs is a problem."""
    asked = read(OutputsQuestion, args)
    try:
        return OutputsAnswer(problems=tuple(_problems(asked)))
    except DataError as error:
        return OutputsAnswer(problems=(error.message,))


def _problems(asked: OutputsQuestion) -> list[str]:
    arrays = kept_outputs.read(asked.file)
    problems = [*_check_description(arrays, asked.arrays), *_check_names(asked.arrays, asked.distance)]
    if not problems:
        for place, row in enumerate(asked.distance):
            problems += _check_row(arrays, asked.arrays, place, row)
    if not problems and asked.again is not None:
        problems += _check_again(arrays, kept_outputs.read(asked.again))
    return problems


def _check_description(arrays: Arrays, facts: Mapping[str, KeptArray]) -> Iterator[str]:
    """The file matches its description, and contains small outputs completely."""
    if set(arrays) != set(facts):
        yield "the file holds other outputs than its description names"
        return
    for name, described in facts.items():
        dtype = arrays[name].dtype
        whole = kept_outputs.is_whole(dtype, described.shape)
        kept = described.shape if whole else (min(kept_outputs.CHOSEN, math.prod(described.shape)),)
        # Outputs have no fields.
        if dtype.names or (str(dtype), arrays[name].shape, described.whole) != (described.dtype, kept, whole):
            yield f"{name} is not saved as required"
        elif whole and kept_outputs.digest_of(arrays[name]) != described.digest:
            yield f"{name} does not have the digest of its description"


def _check_names(facts: Mapping[str, KeptArray], rows: tuple[OutputDistance, ...]) -> Iterator[str]:
    """Every run of every output is saved from both models."""
    expected = {name_of(s, o, r) for s in SIDES for o, row in enumerate(rows) for r in range(row.runs)}
    if set(facts) != expected:
        yield "not every run of every output is saved from both models"


def _check_row(arrays: Arrays, facts: Mapping[str, KeptArray], place: int, row: OutputDistance) -> Iterator[str]:
    """Distances of complete outputs are computed again; sampled values of large ones may not exceed the claim."""
    again, whole = Distances(row.output), True
    for run in range(row.runs):
        candidate, reference = (arrays[name_of(side, place, run)] for side in SIDES)
        whole = whole and all(facts[name_of(side, place, run)].whole for side in SIDES)
        again.add(reference, candidate)
    found = read(OutputDistance, to_json(again.summary()))
    if whole:
        if not same(to_json(found), to_json(row)):
            yield f"`{row.output}`: its saved values give different distances than claimed"
        return
    limit, apart = (0.0 if one.max_abs is None else one.max_abs.max for one in (row, found))
    if found.equal < row.equal or apart > limit * (1 + 1e-9):
        yield f"`{row.output}`: its sampled values are further apart than claimed"


def _check_again(claimed: Arrays, again: Arrays) -> Iterator[str]:
    """Each model's outputs match those of another run, within the margin between two processors."""
    if set(claimed) != set(again):
        yield "another run saves other outputs"
        return
    for name, value in claimed.items():
        found = distance_of(value, again[name])
        near = found.equal or (found.relative is not None and found.relative <= DIFFERENCE_MARGIN)
        if not near and (found.cosine is None or found.cosine < 1 - COSINE_MARGIN):
            yield f"{name} differs from another run"

"""Worker operation `review.outputs`: whether the outputs that were kept give the distances that are claimed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from winml.modelkit.evaluation import kept_outputs
from winml.modelkit.evaluation.distances import Distances
from winml.modelkit.evaluation.kept_outputs import SIDES, Array, name_of
from winml.modelkit.session.distance import distance_of
from winml.modelkit.support.review.evidence import UNFIT, same
from winml.modelkit.support.review.rerun import COSINE_MARGIN, DIFFERENCE_MARGIN

Arrays = Mapping[str, Array]
Json = Mapping[str, Any]


def check(args: dict[str, Any], context: object) -> dict[str, Any]:
    """What contradicts the rows in `args["distance"]`; `again` is the file of another run, or null."""
    try:
        return {"problems": _problems(args)}
    except UNFIT as error:
        return {"problems": [f"the evidence does not fit: {type(error).__name__}: {error}"]}


def _problems(args: Json) -> list[str]:
    arrays = kept_outputs.read(Path(args["file"]))
    problems = [*_described(arrays, args["arrays"]), *_named(args["arrays"], args["distance"])]
    if not problems:
        for place, row in enumerate(args["distance"]):
            problems += _row(arrays, args["arrays"], place, row)
    if not problems and args["again"] is not None:
        problems += _moved(arrays, kept_outputs.read(Path(args["again"])))
    return problems


def _described(arrays: Arrays, facts: Mapping[str, Json]) -> Iterator[str]:
    """The file holds what its description says, and small outputs whole."""
    if set(arrays) != set(facts):
        yield "the file holds other outputs than its description names"
        return
    for name, told in facts.items():
        whole = kept_outputs.is_whole(told["dtype"], tuple(told["shape"]))
        count = int(np.prod(told["shape"], dtype=np.int64))
        expected = tuple(told["shape"]) if whole else (min(kept_outputs.CHOSEN, count),)
        if (str(arrays[name].dtype), arrays[name].shape, told["whole"]) != (told["dtype"], expected, whole):
            yield f"{name} is not kept as it should be"
        elif whole and kept_outputs.digest_of(arrays[name]) != told["digest"]:
            yield f"{name} has another digest than its description says"


def _named(facts: Mapping[str, Json], rows: list[Json]) -> Iterator[str]:
    """Every run of every output is there from both models."""
    expected = {name_of(s, o, r) for s in SIDES for o, row in enumerate(rows) for r in range(row["runs"])}
    if set(facts) != expected:
        yield "not every run of every output is kept from both models"


def _row(arrays: Arrays, facts: Mapping[str, Json], place: int, row: Json) -> Iterator[str]:
    """Distances of whole outputs are made again; no chosen value of a large one may be further apart than claimed."""
    made, whole = Distances(row["output"]), True
    for run in range(row["runs"]):
        candidate, reference = (arrays[name_of(side, place, run)] for side in SIDES)
        whole = whole and all(facts[name_of(side, place, run)]["whole"] for side in SIDES)
        made.add(reference, candidate)
    found = made.summary()
    if whole:
        if any(not same(found[key], row[key]) for key in found):
            yield f"`{row['output']}`: its kept values give other distances than are claimed"
        return
    limit = (row["max_abs"] or {}).get("max", 0.0)
    if found["equal"] < row["equal"] or (found["max_abs"] or {}).get("max", 0.0) > limit * (1 + 1e-9):
        yield f"`{row['output']}`: its chosen values are further apart than is claimed"


def _moved(claimed: Arrays, again: Arrays) -> Iterator[str]:
    """Each model's own outputs are those of another run, as near as two processors come."""
    if set(claimed) != set(again):
        yield "another run keeps other outputs"
        return
    for name, value in claimed.items():
        found = distance_of(value, again[name])
        near = found["equal"] or (found["relative"] is not None and found["relative"] <= DIFFERENCE_MARGIN)
        if not near and (found["cosine"] is None or found["cosine"] < 1 - COSINE_MARGIN):
            yield f"{name} is not what another run gives"

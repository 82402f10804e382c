"""Worker operation: how far the saved outputs of a model are from those of a reference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from winml.modelkit.core.distance import Distance
from winml.modelkit.core.statistics import median, sqnr_db
from winml.modelkit.core.values import read
from winml.modelkit.evaluation import saved_outputs
from winml.modelkit.evaluation.distance_report import (
    DistanceReport,
    DistanceRequest,
    LeastSpread,
    MostSpread,
    OutputDistance,
    SavedOutputs,
)
from winml.modelkit.evaluation.kept_outputs import Keeper
from winml.modelkit.session.distance import distance_of

_NOT_COMPARABLE = Distance(same_shape=False, equal=False, max_abs=None, cosine=None, relative=None)


def _match_outputs(candidate: tuple[str, ...], reference: tuple[str, ...]) -> list[tuple[str, int, int]]:
    """Pairs of outputs to compare: by name, or by position when no name is shared."""
    shared = [(name, candidate.index(name), reference.index(name)) for name in candidate if name in reference]
    return shared or [(name, i, i) for i, name in enumerate(candidate[: len(reference)])]


def _notes(candidate: tuple[str, ...], reference: tuple[str, ...]) -> tuple[str, ...]:
    if not set(candidate) & set(reference):
        return ("the two models share no output name; their outputs are compared by position",)
    alone = sorted(set(candidate) ^ set(reference))
    return (f"outputs that only one of the two models has are not compared: {', '.join(alone)}",) if alone else ()


def _least(values: list[float]) -> LeastSpread | None:
    return LeastSpread(min=min(values), median=median(values)) if values else None


def _without_numbers(value: np.ndarray) -> bool:
    """Whether no element of an output is a finite number."""
    return value.size > 0 and value.dtype.kind in "fc" and not np.isfinite(value).any()


class Distances:
    """How far one output was from the reference's, run by run."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._found: list[Distance] = []

    def add(self, reference: Any, candidate: Any) -> None:
        """A run; None for one that the other model did not have."""
        known = reference is not None and candidate is not None
        found = distance_of(reference, candidate) if known else _NOT_COMPARABLE
        # Two outputs of nothing but NaN are equal, and have no direction in which they could agree.
        self._found.append(replace(found, cosine=None) if known and _without_numbers(reference) else found)

    def summary(self) -> OutputDistance:
        """Worst and median over runs; a noise ratio is that of the runs that differ, equal ones have no noise."""
        differing = [d.relative for d in self._found if d.max_abs and d.relative]
        apart = [d.max_abs for d in self._found if d.max_abs is not None]
        return OutputDistance(
            output=self._name,
            runs=len(self._found),
            equal=sum(d.equal for d in self._found),
            incomparable=sum(d.cosine is None for d in self._found),
            cosine=_least([d.cosine for d in self._found if d.cosine is not None]),
            max_abs=MostSpread(max=max(apart), median=median(apart)) if apart else None,
            sqnr_db=_least([sqnr_db(r) for r in differing]),
        )


def distance(args: dict[str, Any], context: object) -> DistanceReport:
    """Distances over the first samples, output by output."""
    asked = read(DistanceRequest, args)
    mine, theirs = asked.candidate, asked.reference
    matched = _match_outputs(mine.outputs, theirs.outputs)
    tallies = [Distances(name) for name, _, _ in matched]
    keeper = Keeper(None if asked.keep is None else Path(asked.keep))
    for run, (ours, other) in enumerate(_runs(mine, theirs, asked.samples)):
        for place, (tally, (_, i, j)) in enumerate(zip(tallies, matched, strict=True)):
            reference, candidate = None if other is None else other[j], None if ours is None else ours[i]
            tally.add(reference, candidate)
            keeper.add("candidate", place, run, candidate)
            keeper.add("reference", place, run, reference)
    notes = _notes(mine.outputs, theirs.outputs)
    return DistanceReport(outputs=tuple(t.summary() for t in tallies), notes=notes, kept=keeper.write())


def _runs(mine: SavedOutputs, theirs: SavedOutputs, samples: int) -> Iterator[tuple[Any, Any]]:
    """Every run of both models; None for one that the other did not have."""
    saved = [saved_outputs.read(Path(one.path), len(one.outputs), samples) for one in (mine, theirs)]
    for candidate, reference in zip(*saved, strict=True):
        yield from zip_longest(candidate, reference)

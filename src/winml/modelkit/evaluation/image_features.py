"""Image features: whether the images nearest to an image are of its class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.data.samples import Sample
from winml.modelkit.evaluation.embeddings import unit_vector
from winml.modelkit.evaluation.metrics import Metric
from winml.modelkit.evaluation.task import Outputs, Scored, Setting, Task, plain

USUAL = ("pooler_output", "image_embeds", "image_features", "last_hidden_state")
NEIGHBOURS = 5

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True)
class NeighbourScorer:
    """Keeps the vectors of all images, and looks for the neighbours of each among the others when all are there."""

    output: str
    notes: tuple[str, ...]
    _seen: list[tuple[str, Vector | None]] = field(default_factory=list)

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored:
        if isinstance(sample.label, bool) or not isinstance(sample.label, int | str):
            raise DataError(f"the label of {sample.where} must be a class or its number but is {sample.label!r:.80}")
        vector = unit_vector(image_vector(np.asarray(runs[0][self.output], np.float64)))
        self._seen.append((str(sample.label), None if vector is None else vector.astype(np.float32)))
        return Scored({"nearest": 0.0, "vote": 0.0}, None)

    def finish(self, *, complete: bool) -> Sequence[Scored]:
        """The score of each image among the others that were seen."""
        known = [(name, vector) for name, vector in self._seen if vector is not None]
        matrix = np.stack([vector for _, vector in known]) if known else np.zeros((0, 0), np.float32)
        names = [name for name, _ in known]
        found, place = [], 0
        for name, vector in self._seen:
            if vector is None or len(known) < 2:
                found.append(Scored({"nearest": 0.0, "vote": 0.0}, None))
                continue
            near = matrix @ vector
            near[place] = -np.inf
            place += 1
            order = np.argsort(-near, kind="stable")[: min(NEIGHBOURS, len(known) - 1)]
            voted = _vote([names[i] for i in order])
            found.append(Scored({"nearest": float(names[order[0]] == name), "vote": float(voted == name)}, voted))
        return found


def _vote(names: Sequence[str]) -> str:
    """The class that most neighbours are of; among equals the one of the nearest."""
    return max(names, key=lambda name: (names.count(name), -names.index(name)))


def image_vector(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """One vector per image: of areas the mean, of tokens the first."""
    if values.ndim == 4:
        return plain(values[0].mean(axis=(1, 2)))
    return plain(values[0, 0]) if values.ndim == 3 else plain(values)


def _scorer(setting: Setting) -> NeighbourScorer:
    output, note = setting.pick(*USUAL)
    first = "the first of the vectors of an image is its feature" if output == USUAL[-1] else None
    return NeighbourScorer(output, tuple(n for n in (note, first) if n))


TASK = Task(
    name="image-feature-extraction",
    summary="a vector per image, near to those of its class",
    metrics=(Metric("knn_accuracy", "share", "vote"), Metric("recall_1", "share", "nearest")),
    scorer=_scorer,
)

"""Retrieval: whether the texts that answer a question are among those whose embeddings are nearest to its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.data.samples import Sample
from winml.modelkit.evaluation.embeddings import Embedder, find_embedder
from winml.modelkit.evaluation.metrics import Metric
from winml.modelkit.evaluation.ranking import DEPTH, ndcg, recall, reciprocal_rank
from winml.modelkit.evaluation.task import Outputs, Scored, Setting, Task

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True)
class SearchScorer:
    """Keeps the embeddings of questions and texts, and searches when all are there."""

    embedder: Embedder
    notes: tuple[str, ...]
    _queries: list[tuple[dict[str, float], Vector | None]] = field(default_factory=list)
    _texts: list[tuple[str, Vector]] = field(default_factory=list)

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored:
        found = self.embedder.unit(runs[0], sample.inputs)
        vector = None if found is None else found.astype(np.float32)
        name = sample.about.get("text")
        if name is None:
            self._queries.append((_grades(sample), vector))
        elif vector is not None:
            # A text without a direction is near to no question.
            self._texts.append((name, vector))
        return Scored({"ndcg": 0.0, "recall": 0.0, "rank": 0.0}, None)

    def finish(self, *, complete: bool) -> Sequence[Scored]:
        """The score of each question; none before all texts are there."""
        if not complete:
            return []
        matrix = np.stack([vector for _, vector in self._texts]) if self._texts else None
        return [self._search(grades, vector, matrix) for grades, vector in self._queries]

    def _search(self, grades: dict[str, float], vector: Vector | None, matrix: Vector | None) -> Scored:
        if vector is None or matrix is None:
            return Scored({"ndcg": 0.0, "recall": 0.0, "rank": 0.0}, None)
        order = np.argsort(-(matrix @ vector), kind="stable")[:DEPTH]
        names = [self._texts[place][0] for place in order]
        found, known = [grades.get(name, 0.0) for name in names], list(grades.values())
        values = {"ndcg": ndcg(found, known), "recall": recall(found, known), "rank": reciprocal_rank(found)}
        return Scored(values, names[0])


def _grades(sample: Sample) -> dict[str, float]:
    label: Any = sample.label
    if not isinstance(label, dict) or not label or not all(type(grade) is float for grade in label.values()):
        raise DataError(
            f"{sample.where} has no relevant texts: retrieval needs a folder with corpus, queries and qrels"
        )
    return label


def _scorer(setting: Setting) -> SearchScorer:
    embedder = find_embedder(setting)
    return SearchScorer(embedder, embedder.notes)


TASK = Task(
    name="retrieval",
    summary="the nearest texts of a corpus per question, from their embeddings",
    metrics=(
        Metric("ndcg_10", "mean", "ndcg"),
        Metric("recall_10", "mean", "recall"),
        Metric("mrr_10", "mean", "rank"),
    ),
    scorer=_scorer,
    form="retrieval",
)

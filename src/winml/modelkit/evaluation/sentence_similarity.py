"""Sentence similarity: how well the cosine of two embeddings correlates with the similarity that people gave."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.data.samples import Sample
from winml.modelkit.evaluation.embeddings import Embedder, find_embedder
from winml.modelkit.evaluation.metrics import GOLD, Metric
from winml.modelkit.evaluation.task import Outputs, Scored, Setting, Task


@dataclass(frozen=True)
class SimilarityScorer:
    """Judges the cosine of the embeddings of two texts."""

    embedder: Embedder
    notes: tuple[str, ...]

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored:
        gold = _gold(sample)
        inputs = (sample.inputs, *sample.more)
        first, second = (self.embedder.embed(run, given) for run, given in zip(runs, inputs, strict=True))
        norm = float(np.linalg.norm(first) * np.linalg.norm(second))
        if not np.isfinite(norm) or norm == 0.0:
            return Scored({"similarity": 0.0, GOLD: gold}, None)
        cosine = float(first @ second) / norm
        return Scored({"similarity": cosine, GOLD: gold}, cosine)


def _gold(sample: Sample) -> float:
    try:
        gold = float(sample.label)
    except (TypeError, ValueError):
        gold = math.nan
    if not math.isfinite(gold):
        raise DataError(
            f"the label of {sample.where} must be a number, how similar the texts are, but is {sample.label!r:.80}"
        )
    return gold


def _scorer(setting: Setting) -> SimilarityScorer:
    embedder = find_embedder(setting)
    return SimilarityScorer(embedder, embedder.notes)


TASK = Task(
    name="sentence-similarity",
    summary="a similarity per pair of texts, from their embeddings",
    metrics=(Metric("spearman", "spearman", "similarity"), Metric("pearson", "pearson", "similarity")),
    scorer=_scorer,
    form="apart",
    agreement=False,
)

"""Reranking: whether the relevant passages of a question come first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.data.samples import Sample
from winml.modelkit.evaluation.metrics import Metric
from winml.modelkit.evaluation.ranking import ndcg, reciprocal_rank
from winml.modelkit.evaluation.task import Outputs, Scored, Setting, Task, plain


@dataclass(frozen=True)
class PassageScorer:
    """Judges the order of passages by one number each; of two classes, by how much the second is likelier."""

    output: str
    notes: tuple[str, ...]

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored:
        grades: Any = sample.label
        if not isinstance(grades, list) or len(grades) != len(runs) or not all(type(g) is float for g in grades):
            raise DataError(f"{sample.where} must have a number for each of its {len(runs)} passages")
        scores = np.asarray([self._number(run) for run in runs])
        if not np.isfinite(scores).all():
            return Scored({"rank": 0.0, "ndcg": 0.0}, None)
        # Among equals the earlier is first, and relevant passages come last in rows of positive and negative ones.
        order = np.argsort(-scores, kind="stable").tolist()
        ordered = [grades[place] for place in order]
        return Scored({"rank": reciprocal_rank(ordered), "ndcg": ndcg(ordered, grades)}, order[0])

    def _number(self, run: Outputs) -> float:
        numbers = plain(run[self.output])
        if numbers.size not in (1, 2):
            raise DataError(
                f"output `{self.output}` has {numbers.size} numbers; a passage needs one, or one of two classes",
                hint="name the output with the score: `--output-name NAME`",
            )
        return float(numbers[0] if numbers.size == 1 else numbers[1] - numbers[0])


def _scorer(setting: Setting) -> PassageScorer:
    output, note = setting.pick("logits", "scores")
    return PassageScorer(output, (note,) if note else ())


TASK = Task(
    name="reranking",
    summary="an order of passages per question",
    metrics=(Metric("ndcg_10", "mean", "ndcg"), Metric("mrr_10", "mean", "rank")),
    scorer=_scorer,
    form="passages",
)

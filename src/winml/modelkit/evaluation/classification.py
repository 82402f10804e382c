"""Scores of classifiers: is the right class the first, is it among the first five."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.data.samples import Sample
from winml.modelkit.evaluation.labels import ClassNames, class_names
from winml.modelkit.evaluation.task import Outputs, Scored, Setting, plain

USUAL = ("logits", "probabilities", "scores")


@dataclass(frozen=True)
class ClassScorer:
    """Judges the output that has one number per class."""

    output: str
    names: ClassNames
    top: tuple[int, ...]
    """How many first places count as right, one series each."""
    notes: tuple[str, ...]

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored:
        logits = plain(runs[0][self.output])
        if logits.size < 2:
            raise DataError(
                f"output `{self.output}` has {logits.size} numbers, so it is not one per class",
                hint="name the output with the classes: `--output-name NAME`",
            )
        right = self.names.number(sample.label, logits.size, sample.where)
        # Among five classes every class is among the first five.
        counted = [k for k in self.top if k < logits.size]
        if not np.isfinite(logits).all():
            return Scored({f"top{k}": 0.0 for k in counted}, None)
        # Among equals the lower number is first, as argmax has it.
        before = (logits > logits[right]) | ((logits == logits[right]) & (np.arange(logits.size) < right))
        place = int(before.sum())
        return Scored({f"top{k}": float(place < k) for k in counted}, int(logits.argmax()))


def class_scorer(setting: Setting, *, top: tuple[int, ...]) -> ClassScorer:
    output, note = setting.pick(*USUAL)
    return ClassScorer(output, class_names(setting.folder), top, (note,) if note else ())

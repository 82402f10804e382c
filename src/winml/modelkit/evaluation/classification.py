"""Scores of classifiers: is the right class the first, is it among the first five."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.data.samples import Sample
from winml.modelkit.evaluation.labels import ClassNames, class_names
from winml.modelkit.evaluation.task import Outputs, Scored, Setting, plain
from winml.modelkit.session.output_arrays import as_array

USUAL = ("logits", "probabilities", "scores", "output_probability")
"""The last is that of scikit-learn models, where it is a sequence of maps (ZipMap)."""


@dataclass(frozen=True)
class ClassScorer:
    """Judges the output that has one number per class."""

    output: str
    names: ClassNames
    top: tuple[int, ...]
    """How many first places count as right, one series each."""
    notes: tuple[str, ...]

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored:
        found = runs[0][self.output]
        if isinstance(found, list):
            return self._score_map(found, sample)
        if found.size == 1 and found.dtype.kind in "OUSiu":
            return self._score_class(found.reshape(-1)[0], sample)
        logits = plain(found)
        if logits.size < 2:
            raise DataError(
                f"output `{self.output}` has {logits.size} numbers, so it is not one per class",
                hint="name the output with the classes: `--output-name NAME`",
            )
        return self._score_places(logits, self.names.number(sample.label, logits.size, sample.where))

    def _score_map(self, found: list[Any], sample: Sample) -> Scored:
        """A number for each class under its name, as ZipMap writes it."""
        if len(found) != 1 or not isinstance(found[0], dict):
            raise DataError(
                f"output `{self.output}` is a sequence of {len(found)} values, not one number per class",
                hint="name the output with the classes: `--output-name NAME`",
            )
        classes = sorted(found[0])
        right = next((place for place, name in enumerate(classes) if str(name) == str(sample.label)), None)
        if right is None:
            listed = ", ".join(str(name) for name in classes[:8])
            raise DataError(
                f"the model has no class `{sample.label}`, the label of {sample.where}", hint=f"it has: {listed}"
            )
        scored = self._score_places(as_array(found[0]).astype(np.float64), right)
        return scored if scored.prediction is None else replace(scored, prediction=classes[scored.prediction])

    def _score_class(self, found: Any, sample: Sample) -> Scored:
        """The class itself, by name or number: there is a first place only."""
        predicted = found.item() if isinstance(found, np.generic) else found
        label = sample.label if isinstance(predicted, str) else self.names.plain_number(sample.label, sample.where)
        if type(label) is not type(predicted):
            raise DataError(
                f"output `{self.output}` has names of classes such as `{predicted}`, and the label of {sample.where} "
                f"is {label!r:.80}",
                hint="labels must be the names that the model has",
            )
        return Scored({"top1": float(predicted == label)} if 1 in self.top else {}, predicted)

    def _score_places(self, logits: npt.NDArray[np.float64], right: int) -> Scored:
        """Whether the right class is among the first places."""
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

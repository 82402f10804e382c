"""Visual question answering: how many of the people who were asked gave the model's answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.data.samples import Sample
from winml.modelkit.evaluation.labels import CONFIG, class_names
from winml.modelkit.evaluation.metrics import Metric
from winml.modelkit.evaluation.question_answering import normalize
from winml.modelkit.evaluation.task import Outputs, Scored, Setting, Task, plain

AGREED = 3
"""An answer that so many others gave is right."""


def vqa_accuracy(answer: str, given: Sequence[str]) -> float:
    """VQA's: the mean, over all but one of the people, of their number with this answer over three, at most 1.

    Fewer answers than four cannot be counted like that: any of them is right.
    """
    same = [normalize(answer) == normalize(one) for one in given]
    if len(given) <= AGREED:
        return float(any(same))
    return sum(min(1.0, (sum(same) - one) / AGREED) for one in same) / len(same)


def _answers(sample: Sample) -> list[str]:
    """Answers of people: a text, texts, or VQA's objects with `answer`."""
    label: Any = sample.label
    rows = label if isinstance(label, list) else [label]
    found: list[Any] = [row.get("answer") if isinstance(row, dict) else row for row in rows]
    if not found or not all(isinstance(answer, str) for answer in found):
        raise DataError(f"the answers of {sample.where} must be text or a list of texts but are {label!r:.80}")
    return found


@dataclass(frozen=True)
class ImageAnswerScorer:
    """Judges the answer with the highest number."""

    output: str
    names: dict[int, str]
    notes: tuple[str, ...]

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored:
        given, logits = _answers(sample), plain(runs[0][self.output])
        if not np.isfinite(logits).all():
            return Scored({"accuracy": 0.0}, None)
        answer = self.names.get(int(logits.argmax()), "")
        return Scored({"accuracy": vqa_accuracy(answer, given)}, answer)


def _scorer(setting: Setting) -> ImageAnswerScorer:
    output, note = setting.pick("logits")
    names = {number: name for name, number in class_names(setting.folder).numbers.items()}
    if not names:
        raise DataError(
            f"the model's {CONFIG} names no answers, so that none can be compared",
            hint="models that write their answer step by step are not supported; `--task outputs` compares the outputs",
        )
    return ImageAnswerScorer(output, names, (note,) if note else ())


TASK = Task(
    name="visual-question-answering",
    summary="one of the model's answers per image and question",
    metrics=(Metric("vqa_accuracy", "mean", "accuracy"),),
    scorer=_scorer,
    form="asked",
)

"""Multiple choice: whether the right continuation has the highest number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.data.samples import Sample
from winml.modelkit.evaluation.classification import ClassScorer
from winml.modelkit.evaluation.labels import ClassNames
from winml.modelkit.evaluation.metrics import Metric
from winml.modelkit.evaluation.task import Outputs, Scored, Setting, Task


@dataclass(frozen=True)
class ChoiceScorer:
    """Judges the output that has one number per choice; the label is the number of the right one, or its text."""

    output: str
    notes: tuple[str, ...]

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored:
        choices = {text: number for number, text in reversed(list(enumerate(sample.about.get("choices", ()))))}
        label = choices.get(sample.label, sample.label) if isinstance(sample.label, str) else sample.label
        scorer = ClassScorer(self.output, ClassNames({}), (1,), ())
        return scorer.score(replace(sample, label=label), runs)


def _scorer(setting: Setting) -> ChoiceScorer:
    output, note = setting.pick("logits")
    return ChoiceScorer(output, (note,) if note else ())


TASK = Task(
    name="multiple-choice",
    summary="one of several continuations per text",
    metrics=(Metric("accuracy", "share", "top1"),),
    scorer=_scorer,
    form="choices",
)

"""Zero-shot classification: the class whose text fits an image best, or follows from a text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.data.samples import Sample
from winml.modelkit.evaluation.labels import class_names
from winml.modelkit.evaluation.metrics import Metric
from winml.modelkit.evaluation.task import Outputs, Scored, Setting, Task, plain

IMAGE_LOGITS = "logits_per_image"
ENTAILS = "entail"
"""How the name of the class begins that says a text follows from another."""


@dataclass(frozen=True)
class PromptScorer:
    """Judges which prompt has the highest number."""

    output: str
    entailment: int | None
    """The class of a pair of texts that counts; None where a run has one number per prompt."""
    notes: tuple[str, ...]

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored:
        if sample.label not in sample.classes:
            raise DataError(
                f"the label of {sample.where} must be a class of the data but is {sample.label!r:.80}",
                hint=did_you_mean(str(sample.label), sample.classes) if sample.classes else None,
            )
        scores = np.concatenate([self.scores_of(run) for run in runs])
        if len(scores) != len(sample.classes):
            raise DataError(f"output `{self.output}` has {len(scores)} numbers for {len(sample.classes)} classes")
        if not np.isfinite(scores).all():
            return Scored({"top1": 0.0}, None)
        predicted = sample.classes[int(scores.argmax())]
        return Scored({"top1": float(predicted == sample.label)}, predicted)

    def scores_of(self, run: Outputs) -> npt.NDArray[np.float64]:
        """A number for each prompt of a run."""
        numbers = plain(run[self.output])
        return numbers if self.entailment is None else numbers[self.entailment : self.entailment + 1]


def _image_scorer(setting: Setting) -> PromptScorer:
    output, note = setting.pick(IMAGE_LOGITS)
    return PromptScorer(output, None, (note,) if note else ())


def _text_scorer(setting: Setting) -> PromptScorer:
    output, note = setting.pick("logits")
    names = class_names(setting.folder).numbers
    found = [number for name, number in names.items() if name.lower().startswith(ENTAILS)]
    if len(found) != 1:
        raise DataError(
            "the model names no class `entailment`, so it cannot decide whether a class follows from a text",
            hint=f"its classes are: {', '.join(names) or 'without names'}; an NLI model is needed",
        )
    return PromptScorer(output, found[0], (note,) if note else ())


IMAGE_TASK = Task(
    name="zero-shot-image-classification",
    summary="one class of the data per image, from the texts of all",
    metrics=(Metric("accuracy", "share", "top1"),),
    scorer=_image_scorer,
    form="prompts",
)

TEXT_TASK = Task(
    name="zero-shot-classification",
    summary="one class of the data per text, from a natural language inference model",
    metrics=(Metric("accuracy", "share", "top1"),),
    scorer=_text_scorer,
    form="prompts",
)

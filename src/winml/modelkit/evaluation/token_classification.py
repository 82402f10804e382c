"""Token classification: whole entities found, and words tagged right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.data.samples import Sample
from winml.modelkit.evaluation.entities import OUTSIDE, entities, has_prefix
from winml.modelkit.evaluation.labels import ClassNames, class_names
from winml.modelkit.evaluation.metrics import Metric
from winml.modelkit.evaluation.task import Outputs, Scored, Setting, Task

USUAL = ("logits",)
NOT_JUDGED = -100
"""The label of tokens that are no words, or not the first of one, in ready inputs."""


def _first_tokens(sample: Sample) -> dict[int, int]:
    """Word -> the first of its tokens; a word that was cut away has none."""
    found: dict[int, int] = {}
    for token, word in enumerate(sample.words):
        if word is not None:
            found.setdefault(word, token)
    return found


@dataclass(frozen=True)
class TagScorer:
    """Judges the class of the first token of every word."""

    output: str
    names: ClassNames
    tags: tuple[str, ...]
    """Names of the classes by number; empty when the model does not name them."""
    notes: tuple[str, ...]

    @property
    def _finds_entities(self) -> bool:
        return any(map(has_prefix, self.tags))

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored:
        logits = np.asarray(runs[0][self.output], np.float64)
        if logits.ndim != 3:
            raise DataError(
                f"output `{self.output}` has {logits.ndim} dimensions; tags need batch, token and class",
                hint="name the output with the classes: `--output-name NAME`",
            )
        right, tokens = self._gold(sample, logits.shape[2])
        if max((t for t in tokens if t is not None), default=-1) >= logits.shape[1]:
            raise DataError(f"output `{self.output}` has {logits.shape[1]} tokens, fewer than {sample.where}")
        if not np.isfinite(logits).all():
            return Scored(self._values([self._tag(c) for c in right], None), None)
        tags = [OUTSIDE if t is None else self._tag(int(logits[0, t].argmax())) for t in tokens]
        return Scored(self._values([self._tag(c) for c in right], tags), tags)

    def _gold(self, sample: Sample, classes: int) -> tuple[list[int], list[int | None]]:
        """The right class of every word, and the token whose class is the prediction for it."""
        label: Any = sample.label
        if not isinstance(label, list) or not label:
            raise DataError(f"the tags of {sample.where} must be a list, one per word, but are {label!r:.80}")
        if sample.words:
            first = _first_tokens(sample)
            places: list[int | None] = [first.get(word) for word in range(len(label))]
            if max(first, default=0) >= len(label):
                raise DataError(f"{sample.where} has {len(label)} tags for more words")
        else:
            judged = [token for token, tag in enumerate(label) if tag != NOT_JUDGED]
            label, places = [label[token] for token in judged], list(judged)
        return [self.names.number(tag, classes, sample.where) for tag in label], places

    def _tag(self, number: int) -> str:
        return self.tags[number] if number < len(self.tags) else str(number)

    def _values(self, right: list[str], tags: list[str] | None) -> dict[str, float]:
        values = {"words": float(len(right)), "right": 0.0}
        if tags is not None:
            values["right"] = float(sum(a == b for a, b in zip(right, tags, strict=True)))
        if not self._finds_entities:
            return values
        expected, predicted = entities(right), entities(tags or [])
        return {
            **values,
            "matched": float(len(expected & predicted)),
            "predicted": float(len(predicted)),
            "expected": float(len(expected)),
        }


def _scorer(setting: Setting) -> TagScorer:
    output, note = setting.pick(*USUAL)
    names = class_names(setting.folder)
    by_number = {number: name for name, number in names.numbers.items()}
    tags = tuple(by_number.get(number, str(number)) for number in range(max(by_number, default=-1) + 1))
    plain = None
    if not any(map(has_prefix, tags)):
        plain = "the model's classes are not named as entities (B-PER, I-PER, ...), so that only words are judged"
    return TagScorer(output, names, tags, tuple(n for n in (note, plain) if n))


TASK = Task(
    name="token-classification",
    summary="a tag per word, of which some make entities",
    metrics=(
        Metric("f1", "ratio", "matched", ("predicted", "expected")),
        Metric("precision", "ratio", "matched", ("predicted",)),
        Metric("recall", "ratio", "matched", ("expected",)),
        Metric("accuracy", "ratio", "right", ("words",)),
    ),
    scorer=_scorer,
    form="words",
)

"""Binary outputs of one number: accuracy at a threshold, and how well the numbers rank."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.data.samples import Sample
from winml.modelkit.evaluation.metrics import Metric
from winml.modelkit.evaluation.task import Outputs, Scored, Setting, Task, plain

USUAL = ("probability", "probabilities", "logits", "logit", "scores", "output")
THRESHOLD, SCORES, OVER = "threshold", "scores", "over"
Reading = Literal["probability", "logit"]
READINGS: tuple[Reading, ...] = ("probability", "logit")
_OVERS: dict[str, Callable[[Sequence[float]], float]] = {
    "last": lambda numbers: numbers[-1],
    "max": max,
    "mean": lambda numbers: float(np.mean(numbers)),
}
_ABOVE = 0.01
"""By how much a number that was rounded to 8 bits may lie outside 0 to 1 and be a probability."""
_WORST = 1e300
"""Stands for NaN: an order needs a number, and JSON one that is finite."""


class BinaryScorer:
    """Judges one number per sample, or per step of a sequence whose label has one per step."""

    def __init__(self, setting: Setting) -> None:
        self._output, note = setting.pick(*USUAL)
        self._threshold = _read_threshold(setting.options.get(THRESHOLD))
        self._given = _read_reading(setting.options.get(SCORES))
        self._over = setting.options.get(OVER)
        if self._over is not None and self._over not in _OVERS:
            raise RequestError(f"`{OVER}` cannot be `{self._over}`", hint=did_you_mean(self._over, _OVERS))
        self._steps = setting.steps
        self._note = note
        self._seen: list[tuple[list[float], list[int], bool]] = []
        self._outside = False
        self._pooled = False

    @property
    def _reading(self) -> Reading:
        if self._given is not None:
            return self._given
        return "logit" if self._outside or "logit" in self._output.lower() else "probability"

    @property
    def notes(self) -> tuple[str, ...]:
        notes = [self._note] if self._note else []
        if self._given is None:
            lie = "some of its numbers lie outside 0 to 1" if self._outside else "all its numbers lie from 0 to 1"
            why = "of its name" if "logit" in self._output.lower() else lie
            notes.append(
                f"output `{self._output}` is read as a {self._reading}, because {why}; `--task-option {SCORES}=...` "
                "decides"
            )
        if self._pooled and self._over is None:
            notes.append(
                f"a sequence with one label is judged by its last step; `--task-option {OVER}=max|mean|last` decides"
            )
        return tuple(notes)

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored:
        numbers = [self._number(run[self._output]) for run in runs]
        labels = _read_labels(sample)
        by_step = isinstance(sample.label, list)
        if by_step and len(labels) != len(numbers):
            raise DataError(f"{sample.where} has {len(labels)} labels for {len(numbers)} numbers of the model")
        if not by_step and len(numbers) > 1:
            self._pooled = True
            numbers = [_OVERS[self._over or "last"](numbers)]
        self._outside |= any(math.isfinite(x) and not -_ABOVE <= x <= 1.0 + _ABOVE for x in numbers)
        self._seen.append((numbers, labels, by_step and self._steps))
        return self._judge(*self._seen[-1])

    def finish(self, *, complete: bool) -> Sequence[Scored]:
        """All scores, read as what the numbers of all samples turned out to be."""
        return [self._judge(*one) for one in self._seen]

    def _number(self, values: Any) -> float:
        found = plain(values)
        if found.size != 1:
            raise DataError(
                f"output `{self._output}` has {found.size} numbers, so it is not one for yes or no",
                hint="name the output with `--output-name NAME`; one number per class is for the task "
                "`image-classification` or `text-classification`",
            )
        return float(found[0])

    def _judge(self, numbers: Sequence[float], labels: Sequence[int], by_step: bool) -> Scored:
        limit = self._threshold
        if self._reading == "logit":
            limit = math.log(limit / (1.0 - limit))
        usable = [math.isfinite(number) for number in numbers]
        # What is not a number is a wrong answer, and ranked where it does most harm.
        answers = [
            int(number >= limit) if fine else 1 - label
            for number, label, fine in zip(numbers, labels, usable, strict=True)
        ]
        ranked = [
            number if fine else _WORST * (1 - 2 * label)
            for number, label, fine in zip(numbers, labels, usable, strict=True)
        ]
        right = sum(answer == label for answer, label in zip(answers, labels, strict=True))
        counted = {"right_steps": float(right), "steps": float(len(labels))} if by_step else {"right": float(right)}
        values: Mapping[str, Any] = {
            **counted,
            "found": float(sum(answer and label for answer, label in zip(answers, labels, strict=True))),
            "answered": float(sum(answers)),
            "true": float(sum(labels)),
            "numbers": ranked,
            "labels": labels,
        }
        prediction = answers if by_step else answers[0]
        return Scored(values, prediction if all(usable) else None)


def _read_threshold(text: str | None) -> float:
    try:
        threshold = 0.5 if text is None else float(text)
    except ValueError:
        threshold = math.nan
    if not 0.0 < threshold < 1.0:
        raise RequestError(f"`{THRESHOLD}` must be a probability between 0 and 1 but got `{text}`")
    return threshold


def _read_reading(text: str | None) -> Reading | None:
    if text is not None and text not in READINGS:
        raise RequestError(f"`{SCORES}` cannot be `{text}`", hint=did_you_mean(text, READINGS))
    return next((reading for reading in READINGS if reading == text), None)


def _read_labels(sample: Sample) -> list[int]:
    given = sample.label if isinstance(sample.label, list) else [sample.label]
    known = {0: 0, 1: 1, "0": 0, "1": 1, "false": 0, "true": 1}
    found = [known.get(label.lower() if isinstance(label, str) else label) for label in given if _is_one(label)]
    if len(found) < len(given) or not found or None in found:
        raise DataError(
            f"the label of {sample.where} must be 0 or 1, or one for each step, but is {sample.label!r:.80}"
        )
    return [label for label in found if label is not None]


def _is_one(label: Any) -> bool:
    return isinstance(label, str | int | float)


TASK = Task(
    name="binary-classification",
    summary="yes or no, from one number per sample or per step of a sequence",
    metrics=(
        Metric("accuracy", "share", "right"),
        Metric("accuracy", "ratio", "right_steps", ("steps",)),
        Metric("auc", "auc", "numbers", ("labels",)),
        Metric("f1", "ratio", "found", ("answered", "true")),
        Metric("precision", "ratio", "found", ("answered",)),
        Metric("recall", "ratio", "found", ("true",)),
    ),
    scorer=BinaryScorer,
    options=(THRESHOLD, SCORES, OVER),
)
"""A step has no score of its own: the steps of a sequence go right and wrong together, so the sequence is the unit."""

"""Question answering: the part of the context that answers, judged as SQuAD does."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.data.samples import Sample, Spans
from winml.modelkit.evaluation.metrics import Metric
from winml.modelkit.evaluation.task import Outputs, Scored, Setting, Task, plain

START, END = "start_logits", "end_logits"
MAX_TOKENS = 30
"""An answer is at most this long."""
BEST = 20
"""Starts and ends per window that are tried together."""

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize(answer: str) -> list[str]:
    """The words that count: lower case, without punctuation and articles."""
    return _ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split()


def token_f1(answer: str, gold: str) -> float:
    """The harmonic mean of how much of the answer is right and how much of the right answer it has."""
    predicted, right = normalize(answer), normalize(gold)
    if not predicted or not right:
        return float(predicted == right)
    shared = sum((Counter(predicted) & Counter(right)).values())
    return 2 * shared / (len(predicted) + len(right))


def answers(sample: Sample) -> list[str]:
    """The answers that are right: a text, a list of texts, or SQuAD's object with them under `text`."""
    label: Any = sample.label
    found = label.get("text") if isinstance(label, dict) else label
    found = [found] if isinstance(found, str) else found
    if not isinstance(found, list) or not found or not all(isinstance(a, str) for a in found):
        raise DataError(
            f"the answers of {sample.where} must be text or a list of texts but are {label!r:.80}",
            hint="questions without an answer are not supported; remove them",
        )
    return found


def _candidates(
    start: npt.NDArray[np.float64], end: npt.NDArray[np.float64], spans: Spans
) -> list[tuple[float, int, int]]:
    """Scored answers of one window as characters of the context."""
    inside = [i for i, span in enumerate(spans) if span is not None]
    starts = sorted(inside, key=lambda i: -start[i])[:BEST]
    ends = sorted(inside, key=lambda i: -end[i])[:BEST]
    found = []
    for first in starts:
        for last in ends:
            opening, closing = spans[first], spans[last]
            if first <= last < first + MAX_TOKENS and opening is not None and closing is not None:
                found.append((float(start[first] + end[last]), opening[0], closing[1]))
    return found


@dataclass(frozen=True)
class AnswerScorer:
    """Judges the text between the best start and the best end over all windows of a context."""

    start: str
    end: str
    notes: tuple[str, ...]

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored:
        right = answers(sample)
        if sample.context is None:
            raise DataError(
                "question answering needs texts: ready inputs do not hold the words of their tokens",
                hint="give a CSV or JSONL file with question, context and answers",
            )
        found = self.find_answer(sample.spans, runs)
        if found is None:
            return Scored({"exact": 0.0, "f1": 0.0}, None)
        predicted = sample.context[found[1] : found[2]]
        exact = any(normalize(predicted) == normalize(gold) for gold in right)
        return Scored({"exact": float(exact), "f1": max(token_f1(predicted, gold) for gold in right)}, predicted)

    def find_answer(self, windows: Sequence[Spans], runs: Sequence[Outputs]) -> tuple[float, int, int] | None:
        """The best answer: its number, and its characters of the context; None when there is no usable number."""
        found: list[tuple[float, int, int]] = []
        for spans, run in zip(windows, runs, strict=True):
            start, end = plain(run[self.start]), plain(run[self.end])
            if len(start) != len(spans) or len(end) != len(spans):
                raise DataError(
                    f"outputs `{self.start}` and `{self.end}` have {len(start)} and {len(end)} numbers for "
                    f"{len(spans)} tokens"
                )
            if not np.isfinite(start).all() or not np.isfinite(end).all():
                return None
            found += _candidates(start, end, spans)
        return max(found, key=lambda candidate: candidate[0], default=None)


def answer_scorer(setting: Setting) -> AnswerScorer:
    if START in setting.outputs and END in setting.outputs:
        return AnswerScorer(START, END, ())
    if len(setting.outputs) < 2:
        raise DataError(f"question answering needs two outputs, {START} and {END}; the model has one")
    first, second = setting.outputs[:2]
    return AnswerScorer(first, second, (f"outputs `{first}` and `{second}` are taken for start and end",))


TASK = Task(
    name="question-answering",
    summary="a part of the context per question",
    metrics=(Metric("f1", "mean", "f1"), Metric("exact_match", "share", "exact")),
    scorer=answer_scorer,
    form="question",
)

"""Document question answering: the words of a page that answer, judged by how few letters are wrong."""

from __future__ import annotations

from collections.abc import Sequence

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.data.samples import Sample
from winml.modelkit.evaluation.metrics import Metric
from winml.modelkit.evaluation.question_answering import AnswerScorer, answer_scorer, answers
from winml.modelkit.evaluation.speech_recognition import word_errors
from winml.modelkit.evaluation.task import Outputs, Scored, Setting, Task

MOST_WRONG = 0.5
"""An answer with this share of wrong letters is no answer."""


def letter_similarity(answer: str, right: str) -> float:
    """1 minus the share of letters to change, in lower case; 0 from half of them."""
    first, second = " ".join(answer.lower().split()), " ".join(right.lower().split())
    longest = max(len(first), len(second))
    wrong = word_errors(first, second) / longest if longest else 0.0
    return 1.0 - wrong if wrong < MOST_WRONG else 0.0


@dataclass(frozen=True)
class PageScorer:
    """Judges the words between the best start and the best end over all windows of a page."""

    spans: AnswerScorer
    notes: tuple[str, ...]

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored:
        scored, right = self.spans.score(sample, runs), answers(sample)
        if scored.prediction is None:
            return Scored({"anls": 0.0, "exact": 0.0}, None)
        best = max(letter_similarity(scored.prediction, answer) for answer in right)
        return Scored({"anls": best, "exact": float(best == 1.0)}, scored.prediction)


def _scorer(setting: Setting) -> PageScorer:
    spans = answer_scorer(setting)
    return PageScorer(spans, spans.notes)


TASK = Task(
    name="document-question-answering",
    summary="words of a page per question",
    metrics=(Metric("anls", "mean", "anls"), Metric("exact_match", "share", "exact")),
    scorer=_scorer,
    form="document",
)

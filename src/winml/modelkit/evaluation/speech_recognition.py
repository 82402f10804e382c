"""Speech recognition with CTC: words that are wrong, missing or too many."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.data import processor
from winml.modelkit.data.samples import Sample
from winml.modelkit.data.text import SETTINGS
from winml.modelkit.evaluation.metrics import Metric
from winml.modelkit.evaluation.task import Outputs, Scored, Setting, Task

USUAL = ("logits",)
VOCABULARY = "vocab.json"
BLANK, BETWEEN = "<pad>", "|"
"""The blank token and the one between words, where the tokenizer names no others."""
_UNSPOKEN = ("<s>", "</s>")


def word_errors(predicted: Sequence[str], right: Sequence[str]) -> int:
    """The fewest words to replace, add and leave out to get from one to the other."""
    costs = list(range(len(right) + 1))
    for row, word in enumerate(predicted, 1):
        before, costs[0] = costs[0], row
        for column, other in enumerate(right, 1):
            before, costs[column] = (
                costs[column],
                min(costs[column] + 1, costs[column - 1] + 1, before + (word != other)),
            )
    return costs[-1]


@dataclass(frozen=True)
class Vocabulary:
    """What the classes of a CTC model stand for."""

    tokens: dict[int, str]
    blank: int
    between: str

    def text(self, classes: Sequence[int]) -> str:
        """Runs of one class are one token, blanks are none."""
        spoken = [self.tokens.get(c, "") for c, _ in groupby(classes) if c != self.blank]
        return "".join(" " if t == self.between else t for t in spoken if t not in _UNSPOKEN)


def _token(settings: dict[str, Any], key: str, default: str) -> str:
    value = settings.get(key, default)
    return str(value.get("content", default) if isinstance(value, dict) else value)


def vocabulary(folder: Path | None) -> Vocabulary:
    """The vocabulary beside a model."""
    path = processor.find(folder, VOCABULARY)
    if path is None:
        raise DataError(
            f"speech needs the model's {VOCABULARY}, which maps its classes to tokens",
            hint="put it beside the model or name its folder with `--processor DIR`",
        )
    numbers = processor.read_object(path)
    if not numbers or not all(type(number) is int for number in numbers.values()):
        raise DataError(
            f"`{path}` must map tokens to numbers", hint="vocabularies of several languages are not supported"
        )
    beside = processor.find(folder, SETTINGS)
    settings = processor.read_object(beside) if beside else {}
    blank = _token(settings, "pad_token", BLANK)
    if blank not in numbers:
        raise DataError(f"`{path}` has no blank token `{blank}`")
    between = _token(settings, "word_delimiter_token", BETWEEN)
    return Vocabulary({number: token for token, number in numbers.items()}, numbers[blank], between)


def _words(text: str) -> list[str]:
    return text.lower().split()


def count_word_errors(text: str, right: str, where: str) -> dict[str, float]:
    """Words that are wrong, missing or too many, words that are not, and all of them."""
    words = _words(right)
    if not words:
        raise DataError(f"the label of {where} must be the spoken text but is {right!r:.80}")
    errors = word_errors(_words(text), words)
    return {"errors": float(errors), "correct": float(len(words) - errors), "words": float(len(words))}


@dataclass(frozen=True)
class TranscriptScorer:
    """Judges the text of the likeliest class at each moment."""

    output: str
    vocabulary: Vocabulary
    notes: tuple[str, ...]

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored:
        if not isinstance(sample.label, str):
            raise DataError(f"the label of {sample.where} must be the spoken text but is {sample.label!r:.80}")
        logits = np.asarray(runs[0][self.output])
        if logits.ndim != 3:
            raise DataError(
                f"output `{self.output}` has {logits.ndim} dimensions; speech needs batch, moment and token",
                hint="name the output with the tokens: `--output-name NAME`",
            )
        usable = bool(np.isfinite(logits).all())
        text = self.vocabulary.text(logits[0].argmax(axis=-1).tolist()) if usable else ""
        return Scored(count_word_errors(text, sample.label, sample.where), text if usable else None)


def _scorer(setting: Setting) -> TranscriptScorer:
    output, note = setting.pick(*USUAL)
    return TranscriptScorer(output, vocabulary(setting.folder), (note,) if note else ())


TASK = Task(
    name="automatic-speech-recognition",
    summary="the text of a recording, from a CTC model",
    metrics=(
        Metric("word_accuracy", "ratio", "correct", ("words",)),
        Metric("wer", "ratio", "errors", ("words",), lower=True),
    ),
    scorer=_scorer,
    form="speech",
)

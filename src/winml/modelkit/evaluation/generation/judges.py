"""What is done with a sample by a model that generates: predict it, choose among its continuations, answer it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.data.chat import ChatTemplate
from winml.modelkit.data.samples import Sample
from winml.modelkit.evaluation.generation.saved_logits import LogitWriter
from winml.modelkit.evaluation.generation.scoring import plan_windows, score_tokens, spread_places, take_rows
from winml.modelkit.evaluation.generation.tokens import TextTokens
from winml.modelkit.evaluation.speech_recognition import count_word_errors
from winml.modelkit.evaluation.task import Scored
from winml.modelkit.evaluation.text_metrics import bleu_record, chrf_record, is_exact, rouge_l
from winml.modelkit.session.generation.generator import Generator, Scorer, generate

NEW_TOKENS = 64
"""Tokens that are generated where the user says no number."""
_ESCAPES = {"\\n": "\n", "\\t": "\t"}


class Judge(Protocol):
    """Scores samples by running a model on them as often as that takes."""

    tokens: int
    """Tokens that were predicted or generated so far."""

    def score(self, sample: Sample) -> Scored: ...


class PassageJudge:
    """How well every token of a text is predicted by those before it."""

    def __init__(self, generator: Scorer, texts: TextTokens, writer: LogitWriter, *, window: int, stride: int) -> None:
        self._generator, self._texts, self._writer = generator, texts, writer
        self._window, self._stride = window, stride
        self.tokens = 0

    def score(self, sample: Sample) -> Scored:
        text = sample.about["text"]
        encoding = self._texts.encode(text, sample.where)
        ids = np.asarray(encoding.ids, np.int64)
        if len(ids) < 2:
            raise DataError(
                f"{sample.where} has {len(ids)} token; a text needs two, because the first is not predicted",
                hint="leave out rows that are that short",
            )
        places, rows = spread_places(len(ids) - 1, self._writer.rows), []
        losses, right = [], 0
        for window in plan_windows(len(ids), self._window, self._stride):
            for part in score_tokens(self._generator, ids, window):
                losses.append(float(part.losses.sum()))
                right += int(part.right.sum())
                if self._writer.rows:
                    rows.append(take_rows(part, places))
        self._writer.write(ids, rows)
        count, loss = len(ids) - 1, math.fsum(losses)
        self.tokens += count
        usable = math.isfinite(loss)
        values = {
            "loss": loss if usable else None,
            "bits": loss / math.log(2) if usable else None,
            "tokens": float(count),
            "bytes": float(_predicted_bytes(text, encoding)),
            "right": float(right),
        }
        return Scored(values, loss / count if usable else None)


def _predicted_bytes(text: str, encoding: Any) -> int:
    """Bytes of the text without those of a first token that nothing comes before."""
    begun = 0 if encoding.special_tokens_mask[0] else encoding.offsets[0][1]
    return len(text[begun:].encode("utf-8", "surrogatepass"))


class ChoiceJudge:
    """Which of several continuations of a text is the likeliest: as a whole, and for each of its bytes."""

    def __init__(self, generator: Scorer, texts: TextTokens) -> None:
        self._generator, self._texts = generator, texts
        self.tokens = 0

    def score(self, sample: Sample) -> Scored:
        text, choices = sample.about["text"], sample.about["choices"]
        right = _right_choice(sample.label, choices, sample.where)
        # Equal ones are told apart by their order, as `max` does.
        losses = [self._loss(text, choice, sample.where) for choice in choices]
        if not all(map(math.isfinite, losses)):
            return Scored({"top1": 0.0, "per_byte": 0.0}, None)
        each = [loss / max(len(choice.encode()), 1) for loss, choice in zip(losses, choices, strict=True)]
        best, best_each = losses.index(min(losses)), each.index(min(each))
        return Scored({"top1": float(best == right), "per_byte": float(best_each == right)}, best)

    def _loss(self, text: str, choice: str, where: str) -> float:
        joint = "" if text[-1:].isspace() or choice[:1].isspace() else " "
        whole, alone = self._texts.ids(f"{text}{joint}{choice}", where), self._texts.ids(text, where)
        most = self._generator.context_length
        if len(whole) > most:
            raise DataError(
                f"{where} has {len(whole)} tokens with its choice {choice!r:.40}, more than the model's {most}"
            )
        same = min(len(alone), len(whole) - 1)
        differ = np.flatnonzero(alone[:same] != whole[:same])
        # Tokens that the end of the text and the choice share belong to the choice.
        first = max(int(differ[0]) if differ.size else same, 1)
        if len(whole) < 2:
            raise DataError(f"{where} has one token, so that nothing comes before its choice {choice!r:.40}")
        window = plan_windows(len(whole), len(whole), 1)[0]
        parts = list(score_tokens(self._generator, whole, window))
        losses = np.concatenate([part.losses for part in parts])[first - 1 :]
        self.tokens += len(losses)
        return float(losses.sum())


def _right_choice(label: Any, choices: Sequence[str], where: str) -> int:
    if isinstance(label, str) and label in choices:
        return choices.index(label)
    if isinstance(label, str) and label.isdecimal():
        label = int(label)
    if isinstance(label, int) and not isinstance(label, bool) and 0 <= label < len(choices):
        return label
    raise DataError(f"the label of {where} must be one of its {len(choices)} choices, or a number from 0")


class Answers(Protocol):
    """Generates the tokens that answer a sample."""

    def tokens_of(self, sample: Sample) -> list[int]: ...


class DecoderAnswers:
    """Continues prompts with a decoder."""

    def __init__(
        self,
        generator: Generator,
        texts: TextTokens,
        *,
        new_tokens: int,
        ends: tuple[int, ...],
        chat: ChatTemplate | None = None,
    ) -> None:
        """`chat` wraps every prompt as the turn of a user."""
        self._generator, self._texts, self._new_tokens, self._ends = generator, texts, new_tokens, ends
        self._chat = chat

    def tokens_of(self, sample: Sample) -> list[int]:
        prompt = sample.about["text"]
        if self._chat is None:
            ids = self._texts.ids(prompt, sample.where)
        else:  # the template has the special tokens that a tokenizer would put around a text
            ids = self._texts.ids(self._chat.render(prompt, sample.where), sample.where, special=False)
        most = self._generator.context_length
        if len(ids) + self._new_tokens > most:
            raise DataError(
                f"the prompt of {sample.where} has {len(ids)} tokens, which with {self._new_tokens} new ones is more "
                f"than the model's {most}",
                hint="shorten it, or ask for fewer with `--new-tokens N`",
            )
        made = generate(self._generator, ids[None], new_tokens=self._new_tokens, ends=self._ends)[0]
        return [int(token) for token in made]


class AnswerJudge:
    """What a model answers, compared with what was expected where the data says so."""

    def __init__(
        self,
        answers: Answers,
        texts: TextTokens,
        *,
        ends: tuple[int, ...],
        stop: str | None = None,
        words: bool = False,
    ) -> None:
        """`stop` is a text that ends an answer; with `words` an answer is judged by the words that are wrong."""
        self._answers, self._texts, self._ends, self._words = answers, texts, ends, words
        self._stop = None if stop is None else _ESCAPES.get(stop, stop)
        self.tokens = 0

    def score(self, sample: Sample) -> Scored:
        made = cut_end(self._answers.tokens_of(sample), self._ends)
        self.tokens += len(made)
        # Not every tokenizer says that an end token is no word.
        text = self._texts.decode([token for token in made if token not in self._ends])
        if self._stop is not None:
            text = text.partition(self._stop)[0]
        values: dict[str, Any] = {"generated": made}
        if sample.label is not None:
            right = _read_expected(sample)
            values |= count_word_errors(text, right[0], sample.where) if self._words else _text_values(text, right)
        return Scored(values, text)


def cut_end(tokens: Sequence[int], ends: tuple[int, ...]) -> list[int]:
    """The tokens up to the one that ends the text, with it."""
    found = next((place for place, token in enumerate(tokens) if token in ends), len(tokens) - 1)
    return list(tokens[: found + 1])


def _read_expected(sample: Sample) -> list[str]:
    label = sample.label if isinstance(sample.label, list) else [sample.label]
    texts = [str(one) if isinstance(one, int | float) and not isinstance(one, bool) else one for one in label]
    if not texts or not all(isinstance(one, str) and one.strip() for one in texts):
        raise DataError(f"the label of {sample.where} must be the expected text, or a list of such")
    return texts


def _text_values(text: str, right: Sequence[str]) -> Mapping[str, Any]:
    return {
        "exact": float(is_exact(text, right)),
        "rouge_l": rouge_l(text, right),
        "chrf": chrf_record(text, right),
        "bleu": bleu_record(text, right),
    }


def read_chat(options: Mapping[str, str]) -> bool:
    """Whether prompts are wrapped by the chat template of the tokenizer."""
    given = options.get("chat", "false").lower()
    if given not in ("true", "false"):
        raise RequestError(f"`chat` must be `true` or `false` but got `{given}`")
    return given == "true"


def read_stride(options: Mapping[str, str], window: int) -> int:
    """By how many tokens windows of a long text lie apart: half of a window, unless the user says."""
    given = options.get("stride")
    if given is None:
        return max(window // 2, 1)
    if not given.isdecimal() or not 1 <= int(given) < window:
        raise RequestError(f"`stride` must be a whole number from 1 to {window - 1} but got `{given}`")
    return int(given)

"""Fill-mask: whether the missing word comes first or among the first five, and how sure the model is of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.data.samples import Sample
from winml.modelkit.evaluation.metrics import Metric
from winml.modelkit.evaluation.task import Outputs, Scored, Setting, Task

TOP = 5
LEAST = float(np.finfo(np.float32).tiny)
"""The share that a word has at least: what a model of 32 bits can give it."""


@dataclass(frozen=True)
class GapScorer:
    """Judges the tokens of every gap."""

    output: str
    notes: tuple[str, ...]

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored:
        gaps = _gaps(sample, len(runs))
        values = {"first": 0.0, "five": 0.0, "gaps": float(sum(map(len, gaps))), "loss": 0.0}
        predicted: list[int] | None = []
        for tokens, run in zip(gaps, runs, strict=True):
            logits = np.asarray(run[self.output])
            if logits.ndim != 3:
                raise DataError(
                    f"output `{self.output}` has {logits.ndim} dimensions; gaps need batch, token and word",
                    hint="name the output with the words: `--output-name NAME`",
                )
            for place, right in tokens:
                if place >= logits.shape[1] or right >= logits.shape[2]:
                    raise DataError(
                        f"output `{self.output}` has {logits.shape[1]} tokens and {logits.shape[2]} words, fewer than "
                        f"{sample.where} and its tokenizer"
                    )
                row = np.asarray(logits[0, place], np.float64)
                if not np.isfinite(row).all():
                    values["loss"] -= float(np.log(LEAST))
                    predicted = None
                    continue
                before = int(((row > row[right]) | ((row == row[right]) & (np.arange(row.size) < right))).sum())
                share = np.exp(row[right] - row.max()) / np.exp(row - row.max()).sum()
                values["first"] += before < 1
                values["five"] += before < TOP
                values["loss"] -= float(np.log(max(share, LEAST)))
                if predicted is not None:
                    predicted.append(int(row.argmax()))
        return Scored(values, predicted)


def _gaps(sample: Sample, runs: int) -> list[list[tuple[int, int]]]:
    """Place and right token of every gap, for each run."""
    gaps: Any = sample.label
    if not isinstance(gaps, list) or len(gaps) != runs or not all(gaps) or not all(isinstance(g, list) for g in gaps):
        raise DataError(
            f"the gaps of {sample.where} are not known: fill-mask needs texts, not ready inputs",
            hint="give a .txt file, or a .jsonl file with text and label",
        )
    return gaps


def _scorer(setting: Setting) -> GapScorer:
    output, note = setting.pick("logits", "prediction_logits")
    return GapScorer(output, (note,) if note else ())


TASK = Task(
    name="fill-mask",
    summary="the word that is missing in a text",
    metrics=(
        Metric("accuracy", "ratio", "first", ("gaps",)),
        Metric("top5_accuracy", "ratio", "five", ("gaps",)),
        Metric("pseudo_perplexity", "perplexity", "loss", ("gaps",), lower=True),
    ),
    scorer=_scorer,
    form="gaps",
)

"""Sentence similarity: how well the cosine of two embeddings correlates with the similarity that people gave."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.data import processor
from winml.modelkit.data.samples import Sample
from winml.modelkit.evaluation.metrics import GOLD, Metric
from winml.modelkit.evaluation.task import Outputs, Scored, Setting, Task, plain

USUAL = ("sentence_embedding", "last_hidden_state", "token_embeddings")
POOLING = "1_Pooling/config.json"
_MASKS = ("attention_mask", "input_mask")
_POOLINGS: dict[str, Callable[[npt.NDArray[Any]], npt.NDArray[Any]]] = {
    "cls": lambda tokens: tokens[0],
    "mean": lambda tokens: tokens.mean(axis=0),
    "max": lambda tokens: tokens.max(axis=0),
}
_MODES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
}


def _pooling(folder: Path | None) -> tuple[str, str | None]:
    """How tokens become one embedding, as sentence-transformers writes it; the mean, with a note, where it does not."""
    path = processor.find(folder, POOLING)
    if path is None:
        return "mean", f"{POOLING} is missing, so the embedding of a text is the mean over its tokens"
    asked = [key for key, value in processor.read_object(path).items() if key.startswith("pooling_mode_") and value]
    if len(asked) != 1 or asked[0] not in _MODES:
        raise DataError(f"`{path}` asks for {', '.join(asked) or 'no pooling'}; known: {', '.join(_MODES)}")
    return _MODES[asked[0]], None


@dataclass(frozen=True)
class SimilarityScorer:
    """Judges the cosine of the embeddings of two texts."""

    output: str
    pooling: str
    notes: tuple[str, ...]

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored:
        gold = _gold(sample)
        inputs = (sample.inputs, *sample.more)
        first, second = (self._embedding(run[self.output], given) for run, given in zip(runs, inputs, strict=True))
        norm = float(np.linalg.norm(first) * np.linalg.norm(second))
        if not np.isfinite(norm) or norm == 0.0:
            return Scored({"similarity": 0.0, GOLD: gold}, None)
        cosine = float(first @ second) / norm
        return Scored({"similarity": cosine, GOLD: gold}, cosine)

    def _embedding(self, output: npt.NDArray[Any], inputs: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.float64]:
        if output.ndim != 3:
            return plain(output)
        tokens = np.asarray(output[0], np.float64)
        mask = next((inputs[name] for name in _MASKS if name in inputs), None)
        kept = tokens if mask is None else tokens[mask.reshape(-1).astype(bool)]
        return plain(_POOLINGS[self.pooling](kept))


def _gold(sample: Sample) -> float:
    try:
        gold = float(sample.label)
    except (TypeError, ValueError):
        gold = math.nan
    if not math.isfinite(gold):
        raise DataError(
            f"the label of {sample.where} must be a number, how similar the texts are, but is {sample.label!r:.80}"
        )
    return gold


def _scorer(setting: Setting) -> SimilarityScorer:
    output, note = setting.pick(*USUAL)
    pooling, pooled = ("mean", None) if output == USUAL[0] else _pooling(setting.folder)
    return SimilarityScorer(output, pooling, tuple(n for n in (note, pooled) if n))


TASK = Task(
    name="sentence-similarity",
    summary="a similarity per pair of texts, from their embeddings",
    metrics=(Metric("spearman", "spearman", "similarity"), Metric("pearson", "pearson", "similarity")),
    scorer=_scorer,
    form="apart",
    agreement=False,
)

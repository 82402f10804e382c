"""Trained models with samples and the score of their answers, the same for every tool that quantizes them.

Only numpy and onnxruntime: the peers' environments read this file as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Samples:
    """Inputs by name, stacked along a first axis, and a label for each answer."""

    inputs: Arrays
    labels: np.ndarray

    @property
    def feeds(self) -> list[Arrays]:
        count = len(next(iter(self.inputs.values())))
        return [{name: array[index][None] for name, array in self.inputs.items()} for index in range(count)]


def save(samples: Samples, path: Path) -> None:
    np.savez(path, **{f"x.{name}": array for name, array in samples.inputs.items()}, labels=samples.labels)


def load(path: Path) -> Samples:
    found = np.load(path)
    return Samples({name[2:]: found[name] for name in found.files if name.startswith("x.")}, found["labels"])


def session(model: Any) -> ort.InferenceSession:
    """A session of a file or of bytes, with one thread."""
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def answer(model: Any, feeds: Sequence[Arrays]) -> list[np.ndarray]:
    """What a model gives for each sample: the embedding of a text, else its first output."""
    opened = session(model)
    names = {value.name for value in opened.get_inputs()}
    found = [opened.run(None, {name: feed[name] for name in names})[0][0] for feed in feeds]
    if not feeds or "attention_mask" not in feeds[0]:
        return found
    return [_embed(states, feed["attention_mask"][0]) for states, feed in zip(found, feeds, strict=True)]


def judge(answers: Sequence[np.ndarray], labels: np.ndarray) -> float:
    """Accuracy of classes; with two answers for a label, the rank correlation of their similarity with it."""
    if len(answers) == len(labels):
        return float((np.array([one.argmax() for one in answers]) == labels).mean())
    cosines = [float(a @ b) for a, b in zip(answers[::2], answers[1::2], strict=True)]
    return _spearman(np.array(cosines), labels)


def score(model: Any, samples: Samples) -> float:
    """The metric of a model."""
    return judge(answer(model, samples.feeds), samples.labels)


def _embed(states: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The mean over the tokens of a text, of length 1."""
    mean = (states * mask[:, None]).sum(0) / mask.sum()
    return mean / np.linalg.norm(mean)


def _spearman(found: np.ndarray, gold: np.ndarray) -> float:
    return float(np.corrcoef(_ranks(found), _ranks(gold))[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks, equal values with their mean."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse]


def tokens(folder: Path, texts: Sequence[str], length: int) -> Arrays:
    """Texts as a BERT reads them, cut and padded to one length."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(length)
    tokenizer.enable_padding(length=length)
    found = tokenizer.encode_batch(list(texts))
    return {
        "input_ids": np.array([one.ids for one in found], np.int64),
        "attention_mask": np.array([one.attention_mask for one in found], np.int64),
        "token_type_ids": np.array([one.type_ids for one in found], np.int64),
    }

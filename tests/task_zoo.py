"""A small real model with data for every task of `winml eval`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from onnx import ModelProto, numpy_helper

import data_zoo
import model_zoo
from data_zoo import IDS
from winml.modelkit import sample


@dataclass(frozen=True)
class Case:
    """What a task is tried on, and what must come out."""

    model: Path
    data: Path | str
    metrics: dict[str, float]


def _table(columns: int, **rows: list[float]) -> np.ndarray:
    """A row of numbers for each word of the tokenizer; zeros for words that are not named."""
    table = np.zeros((len(IDS), columns), np.float32)
    for word, values in rows.items():
        table[IDS[word]] = values
    return table


def _with(model: ModelProto, **initializers: np.ndarray) -> ModelProto:
    for name, value in initializers.items():
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    return model


def text_classifier() -> ModelProto:
    """Sums what words say for class 0 and class 1."""
    model = model_zoo.text_model(
        """g (int64[batch,sequence] input_ids, int64[batch,sequence] attention_mask) => (float[batch,2] logits)
        <int64[1] axis = {1}>
        { e = Gather(table, input_ids)  logits = ReduceSum<keepdims = 0>(e, axis) }"""
    )
    return _with(model, table=_table(2, good=[-1, 2], bad=[2, -1], dull=[1, 0]))


def embedder() -> ModelProto:
    """Token embeddings, for others to pool; what fills up is far off, so that it shows when it is not left out."""
    model = model_zoo.text_model(
        """g (int64[batch,sequence] input_ids, int64[batch,sequence] attention_mask)
        => (float[batch,sequence,3] last_hidden_state) { last_hidden_state = Gather(table, input_ids) }"""
    )
    table = _table(3, good=[1, 0, 0], film=[0.6, 0.8, 0], bad=[-1, 0.1, 0], dull=[-0.8, 0.6, 0])
    table[IDS["[PAD]"]] = [5, 5, 90]
    return _with(model, table=table)


def answerer() -> ModelProto:
    """Starts and ends an answer at the word `ada`."""
    model = model_zoo.text_model(
        """g (int64[batch,sequence] input_ids)
        => (float[batch,sequence] start_logits, float[batch,sequence] end_logits)
        <int64[1] axis = {2}>
        { s = Gather(starts, input_ids)  start_logits = Squeeze(s, axis)
          e = Gather(ends, input_ids)  end_logits = Squeeze(e, axis) }"""
    )
    return _with(model, starts=_table(1, ada=[5]), ends=_table(1, ada=[5]))


def _text(folder: Path, model: ModelProto) -> Path:
    return model_zoo.saved(model, data_zoo.tokenizer(folder) / "model.onnx")


def _image_classification(folder: Path) -> Case:
    return Case(sample.MODEL, sample.TEST, {"accuracy": 0.994, "top5_accuracy": 1.0})


def _text_classification(folder: Path) -> Case:
    rows = [{"text": t, "label": n} for t, n in [("good film", 1), ("bad film", 0), ("dull", 0), ("good, bad", 1)]]
    data = data_zoo.jsonl(folder / "data.jsonl", [*rows, {"text": "bad , bad", "label": 1}])
    return Case(_text(folder, text_classifier()), data, {"accuracy": 0.6})


def _sentence_similarity(folder: Path) -> Case:
    pairs = [
        ("good", "film", 3.0),
        ("good", "bad", 0.5),
        ("bad", "dull", 4.0),
        ("good", "good", 5.0),
        ("film", "dull", 1),
    ]
    data = data_zoo.jsonl(folder / "data.jsonl", [{"sentence1": a, "sentence2": b, "score": s} for a, b, s in pairs])
    return Case(_text(folder, embedder()), data, {"spearman": 1.0, "pearson": 0.922})


def _question_answering(folder: Path) -> Case:
    context = "it did film film . " * 40 + "ada , ada wrote it ."
    rows = [
        {"question": "who wrote it", "context": context, "answers": {"text": ["Ada"], "answer_start": [0]}},
        {"question": "who", "context": "ada wrote it", "answers": ["the ada wrote", "bad"]},
        {"question": "who", "context": "bad ada", "answers": "bad"},
    ]
    data = data_zoo.jsonl(folder / "data.jsonl", rows)
    return Case(_text(folder, answerer()), data, {"f1": (1 + 2 / 3 + 0) / 3, "exact_match": 1 / 3})


def _outputs(folder: Path) -> Case:
    return Case(model_zoo.saved(model_zoo.relu(), folder / "model.onnx"), "random", {})


CASES: dict[str, Callable[[Path], Case]] = {
    "image-classification": _image_classification,
    "text-classification": _text_classification,
    "sentence-similarity": _sentence_similarity,
    "question-answering": _question_answering,
    "outputs": _outputs,
}


def blind_digits(folder: Path) -> Path:
    """The digits classifier with its last weights gone: it says the same whatever it sees."""
    import onnx

    model = onnx.load(sample.MODEL)
    last = next(node for node in reversed(model.graph.node) if node.op_type == "Gemm")
    for tensor in model.graph.initializer:
        if tensor.name in last.input:
            blank = np.zeros_like(numpy_helper.to_array(tensor))
            tensor.CopyFrom(numpy_helper.from_array(blank, tensor.name))
    return model_zoo.saved(model, folder / "blind.onnx")

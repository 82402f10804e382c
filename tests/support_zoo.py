"""Tiny models of families that no recipe names, saved as folders by a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hf_zoo


def side_chain(steps: int = 4) -> Any:
    """An ONNX model that works out, from its open size alone, a factor that is always one: a fixed size folds it."""
    import numpy as np
    from onnx import numpy_helper

    import model_zoo

    chain = "".join(
        f"t{i} = Transpose<perm=[1,0]>(q{i}) p{i} = MatMul(q{i}, t{i}) c{i} = Tanh(p{i}) q{i + 1} = MatMul(c{i}, q0) "
        for i in range(steps)
    )
    model = model_zoo.text_model(
        f"""side_chain (float[n,160] x) => (float[n,160] y) {{
            rows = Shape<start=0, end=1>(x) sizes = Concat<axis=0>(rows, width) q0 = Expand(tiny, sizes) {chain}
            sum = ReduceSum<keepdims=0>(q{steps}) nothing = Mul(sum, zero) factor = Add(nothing, one)
            h = MatMul(x, w) y = Mul(h, factor)
        }}"""
    )
    weights = (np.random.default_rng(0).standard_normal((160, 160)) * 0.1).astype(np.float32)
    numbers = {"tiny": np.float32(0.01), "zero": np.float32(0), "one": np.float32(1), "width": np.array([160])}
    for name, value in {**numbers, "w": weights}.items():
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return model


def electra() -> Any:
    return hf_zoo._model("ElectraConfig", "ElectraForSequenceClassification", **hf_zoo.TEXT, embedding_size=16)


def regnet() -> Any:
    return hf_zoo._model(
        "RegNetConfig", "RegNetForImageClassification",
        embedding_size=8, hidden_sizes=[8, 16, 16, 16], depths=[1, 1, 1, 1], groups_width=4, num_labels=5,
    )  # fmt: skip


def qformer() -> Any:
    """A model that is one part of another: it reads vectors, of which its config does not say how many."""
    return hf_zoo._model("Blip2QFormerConfig", "Blip2QFormerModel", **hf_zoo.TEXT)


def bart_classifier() -> Any:
    return hf_zoo._model("BartConfig", "BartForSequenceClassification", **hf_zoo.SEQ2SEQ, num_labels=3)


MODELS = {"electra": electra, "regnet": regnet, "qformer": qformer, "bart_classifier": bart_classifier}

if __name__ == "__main__":
    import sys

    hf_zoo.FAMILIES.update(MODELS)
    hf_zoo.main(Path(sys.argv[1]), sys.argv[2:])

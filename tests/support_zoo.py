"""Tiny models of families that no recipe names, saved as folders by a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hf_zoo


def electra() -> Any:
    return hf_zoo._model("ElectraConfig", "ElectraForSequenceClassification", **hf_zoo.TEXT, embedding_size=16)


def regnet() -> Any:
    return hf_zoo._model(
        "RegNetConfig", "RegNetForImageClassification",
        embedding_size=8, hidden_sizes=[8, 16, 16, 16], depths=[1, 1, 1, 1], groups_width=4, num_labels=5,
    )  # fmt: skip


def vilt() -> Any:
    return hf_zoo._model("ViltConfig", "ViltForQuestionAnswering", **hf_zoo.TEXT, image_size=32, patch_size=8)


def bart_classifier() -> Any:
    return hf_zoo._model("BartConfig", "BartForSequenceClassification", **hf_zoo.SEQ2SEQ, num_labels=3)


MODELS = {"electra": electra, "regnet": regnet, "vilt": vilt, "bart_classifier": bart_classifier}

if __name__ == "__main__":
    import sys

    hf_zoo.FAMILIES.update(MODELS)
    hf_zoo.main(Path(sys.argv[1]), sys.argv[2:])

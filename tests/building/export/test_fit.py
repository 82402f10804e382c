"""Files of two models in one folder: weights against the config, tokenizer and processor against both."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from winml.modelkit.building.export.fit import find_misfit, processor_warnings
from winml.modelkit.building.export.folder import ModelFolder

NAMES = ("bert.layer.0.w", "bert.layer.1.w", "bert.word.w", "classifier.w")


def folder_of(path: Path, **files: Any) -> ModelFolder:
    for name, value in files.items():
        (path / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")
    return ModelFolder(path)


@pytest.mark.parametrize(
    ("report", "said"),
    [
        ({"mismatched_keys": {("bert.word.w", (99, 32), (120, 32))}}, r"`bert.word.w` is \[99, 32\] in the file and"),
        ({"missing_keys": {"bert.layer.1.w"}}, "the file has fewer layers than its config names, as `bert.layer.1.w`"),
        (
            {"unexpected_keys": {"bert.layer.2.w"}},
            "the file has more layers than its config names, as `bert.layer.2.w`",
        ),
    ],
)
def test_weights_of_another_config_are_a_misfit(tmp_path: Path, report: dict[str, Any], said: str) -> None:
    found = find_misfit(report, NAMES, folder_of(tmp_path, config={}))
    assert found is not None
    assert re.search(said, found.message)


def test_a_missing_head_and_superfluous_tensors_of_training_are_no_misfit(tmp_path: Path) -> None:
    report = {"missing_keys": {"classifier.w"}, "unexpected_keys": {"cls.predictions.w", "bert.position_ids"}}
    assert find_misfit(report, NAMES, folder_of(tmp_path, config={})) is None


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"tokenizer": {"model": {"vocab": {"a": 0, "b": 40}}}}, ["tokens up to number 40, but the model only 40"]),
        ({"tokenizer": {"model": {"vocab": {"a": 0, "b": 39}}}}, []),
        ({"tokenizer": {"model": {"vocab": [["a", 0.5]] * 50}}}, ["tokens up to number 49"]),
        ({"tokenizer": {"added_tokens": [{"id": 77}], "model": {"vocab": {}}}}, ["tokens up to number 77"]),
        ({"preprocessor_config": {"image_mean": [0.5], "size": 32}}, []),
        (
            {"preprocessor_config": {"image_mean": [0, 0, 0], "size": 32}},
            ["has 3 channels (`image_mean`), but the model 4"],
        ),
        ({"preprocessor_config": {"size": {"height": 64, "width": 32}}}, ["images of 64 x 32, but the model was made"]),
        ({"preprocessor_config": ["damaged"], "tokenizer": 3}, []),
    ],
)
def test_a_processor_of_another_model_is_told(tmp_path: Path, files: dict[str, Any], said: list[str]) -> None:
    config = {"vocab_size": 40, "num_channels": 4, "image_size": 32}
    found = processor_warnings(folder_of(tmp_path, config=config, **files))
    assert len(found) == len(said)
    for warning, words in zip(found, said, strict=True):
        assert words in warning

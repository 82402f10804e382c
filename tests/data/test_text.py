from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import data_zoo
from data_zoo import IDS
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.errors import DataError
from winml.modelkit.data.samples import SampleRequest
from winml.modelkit.data.text import text_encoder
from winml.modelkit.graph.inputs import InputSpec


def specs(*names: str, length: Any = "sequence", kind: str = "int64") -> tuple[InputSpec, ...]:
    return tuple(InputSpec(name, f"tensor({kind})", ("batch", length)) for name in names)


def wanted(folder: Path | None, inputs: tuple[InputSpec, ...], form: Any = "joined", **section: Any) -> SampleRequest:
    return SampleRequest(DataSection("x.txt", **section), Path("x.txt"), inputs, folder, labels=False, form=form)


def test_a_text_is_filled_up_to_the_length_of_the_model(tmp_path: Path) -> None:
    inputs = specs("input_ids", "attention_mask", "token_type_ids", length=6, kind="int32")
    made = text_encoder(wanted(data_zoo.tokenizer(tmp_path), inputs)).encode(["Good film"], "it")
    assert made["input_ids"].tolist() == [[IDS["[CLS]"], IDS["good"], IDS["film"], IDS["[SEP]"], 0, 0]]
    assert made["attention_mask"].tolist() == [[1, 1, 1, 1, 0, 0]]
    assert made["token_type_ids"].tolist() == [[0] * 6]
    assert {a.dtype for a in made.values()} == {np.dtype("int32")}


def test_a_long_text_is_cut_and_keeps_its_end_token(tmp_path: Path) -> None:
    encoder = text_encoder(wanted(data_zoo.tokenizer(tmp_path), specs("input_ids", length=4)))
    assert encoder.encode(["bad " * 50], "it")["input_ids"].tolist() == [[2, IDS["bad"], IDS["bad"], 3]]


def test_a_pair_is_told_apart_by_its_types(tmp_path: Path) -> None:
    encoder = text_encoder(wanted(data_zoo.tokenizer(tmp_path), specs("input_ids", "token_type_ids", length=8)))
    assert encoder.encode(["good film", "dull"], "it")["token_type_ids"].tolist() == [[0, 0, 0, 0, 1, 1, 0, 0]]


def test_the_side_of_the_padding_is_the_tokenizers(tmp_path: Path) -> None:
    folder = data_zoo.tokenizer(tmp_path, padding_side="left")
    assert text_encoder(wanted(folder, specs("input_ids", length=5))).encode(["bad"], "it")["input_ids"][0, 0] == 0


@pytest.mark.parametrize(
    ("settings", "asked", "length", "noted"),
    [({}, None, 128, True), ({"model_max_length": 64}, None, 64, True), ({}, 20, 20, False),
     ({"model_max_length": 10**30}, None, 128, True)],
)  # fmt: skip
def test_an_open_length_has_a_default_that_is_told(
    settings: dict[str, Any], asked: int | None, length: int, noted: bool, tmp_path: Path
) -> None:
    encoder = text_encoder(wanted(data_zoo.tokenizer(tmp_path, **settings), specs("input_ids"), length=asked))
    assert encoder.encode(["bad"], "it")["input_ids"].shape == (1, length)
    assert (encoder.note is not None) == noted


@pytest.mark.parametrize(
    ("config", "length"),
    [({"max_position_embeddings": 64}, 64), ({"max_position_embeddings": 512}, 128),
     ({"max_position_embeddings": 66, "model_type": "roberta", "pad_token_id": 0}, 65),
     ({"max_position_embeddings": 66, "model_type": "roberta", "pad_token_id": None}, 64),
     ({"max_position_embeddings": -1}, 128), ({"max_position_embeddings": True}, 128), ({}, 128)],
)  # fmt: skip
def test_an_open_length_is_no_longer_than_the_config_of_the_model_has_positions(
    config: dict[str, Any], length: int, tmp_path: Path
) -> None:
    folder = data_zoo.tokenizer(tmp_path)
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    made = text_encoder(wanted(folder, specs("input_ids"))).encode(["bad " * 200], "it")
    assert made["input_ids"].shape == (1, length)
    assert np.all(made["input_ids"] != 0), "the text fills it"


def test_no_more_tokens_than_the_model_knows_positions(tmp_path: Path) -> None:
    folder = data_zoo.tokenizer(tmp_path, model_max_length=4)
    made = text_encoder(wanted(folder, specs("attention_mask", length=6))).encode(["bad " * 9], "it")
    assert made["attention_mask"].tolist() == [[1, 1, 1, 1, 0, 0]]


def test_a_long_context_becomes_windows_that_cover_it(tmp_path: Path) -> None:
    folder = data_zoo.tokenizer(tmp_path)
    encoder = text_encoder(wanted(folder, specs("input_ids", length=12), "question"))
    context = "ada wrote it . " * 6
    runs, spans = encoder.windows("who wrote it", context, "it")
    assert len(runs) == len(spans) > 2
    assert {run["input_ids"].shape for run in runs} == {(1, 12)}
    words = {context[span[0] : span[1]] for window in spans for span in window if span}
    assert words == {"ada", "wrote", "it", "."}
    assert max(span[1] for window in spans for span in window if span) == len(context.rstrip())


def test_a_question_may_leave_little_room_but_not_none(tmp_path: Path) -> None:
    encoder = text_encoder(wanted(data_zoo.tokenizer(tmp_path), specs("input_ids", length=8), "question"))
    assert len(encoder.windows("who wrote it did", "ada did it", "sample 3")[0]) == 3
    with pytest.raises(DataError, match="question of sample 3 has 5 tokens, which leaves no room"):
        encoder.windows("who wrote it did ada", "ada did it", "sample 3")


@pytest.mark.parametrize("form", ["joined", "apart", "question"])
def test_texts_too_short_for_anything_are_refused(form: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="texts of 3 tokens are too short.*need 4"):
        text_encoder(wanted(data_zoo.tokenizer(tmp_path), specs("input_ids"), form, length=3))


def test_a_side_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="must be `left` or `right` but got 'up'"):
        text_encoder(wanted(data_zoo.tokenizer(tmp_path, padding_side="up"), specs("input_ids")))


def test_texts_give_only_token_inputs(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot fill input `pixel_values`"):
        text_encoder(wanted(data_zoo.tokenizer(tmp_path), specs("pixel_values")))
    with pytest.raises(DataError, match="takes 6 tokens, so a text cannot have 9"):
        text_encoder(wanted(data_zoo.tokenizer(tmp_path), specs("input_ids", length=6), length=9))


def test_a_missing_or_broken_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no tokenizer\.json") as caught:
        text_encoder(wanted(tmp_path, specs("input_ids")))
    assert "--processor" in (caught.value.hint or "")
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match="is not a tokenizer"):
        text_encoder(wanted(tmp_path, specs("input_ids")))


def test_a_tokenizer_without_a_padding_token_is_refused(tmp_path: Path) -> None:
    folder = data_zoo.tokenizer(tmp_path)
    (folder / "tokenizer_config.json").write_text(json.dumps({"pad_token": None}), encoding="utf-8")
    with pytest.raises(DataError, match="no padding token"):
        text_encoder(wanted(folder, specs("input_ids")))
    (folder / "tokenizer_config.json").write_text(json.dumps({"pad_token": {"content": "[PAD]"}}), encoding="utf-8")
    assert text_encoder(wanted(folder, specs("input_ids"))).tokenizer.padding["pad_id"] == 0

"""From classes of moments to words, and the words that are wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from winml.modelkit.core.errors import DataError
from winml.modelkit.evaluation.speech_recognition import vocabulary, word_errors


@pytest.mark.parametrize(
    ("said", "right", "errors"),
    [("a b c", "a b c", 0), ("a c", "a b c", 1), ("a x b c", "a b c", 1), ("", "a b", 2), ("c a b", "a b c", 2)],
)
def test_errors_are_the_fewest_changes(said: str, right: str, errors: int) -> None:
    assert word_errors(said.split(), right.split()) == errors


def test_tokens_come_together_as_ctc_says(tmp_path: Path) -> None:
    (tmp_path / "vocab.json").write_text(json.dumps({"[PAD]": 0, "_": 1, "E": 2, "L": 3, "<s>": 4}))
    settings = {"pad_token": {"content": "[PAD]"}, "word_delimiter_token": "_"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    assert vocabulary(tmp_path).text([4, 2, 2, 3, 3, 0, 3, 1, 1, 2, 0, 9]) == "ELL E"


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, r"needs the model's vocab\.json"), ("{}", "must map tokens"), ('{"a": 1}', "has no blank token `<pad>`")],
)
def test_a_vocabulary_that_says_too_little_is_refused(content: str | None, message: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "vocab.json").write_text(content)
    with pytest.raises(DataError, match=message):
        vocabulary(tmp_path)

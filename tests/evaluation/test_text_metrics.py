"""Text metrics against numbers that others published for the same texts."""

from __future__ import annotations

import pytest

from winml.modelkit.evaluation import corpus
from winml.modelkit.evaluation.text_metrics import bleu_record, chrf_record, is_exact, rouge_l, split_words

# The example of sacrebleu's README: three texts, two right ones each.
TEXTS = ["The dog bit the man.", "It wasn't surprising.", "The man had just bitten him."]
RIGHT = [
    ["The dog bit the man.", "The dog had bit the man."],
    ["It was not unexpected.", "No one was surprised."],
    ["The man bit him first.", "The man had bitten the dog."],
]


def test_bleu_is_that_of_sacrebleu() -> None:
    records = [bleu_record(text, right) for text, right in zip(TEXTS, RIGHT, strict=True)]
    assert [sum(column) for column in zip(*records, strict=True)] == [14, 7, 5, 3, 17, 14, 11, 8, 17, 18]
    assert corpus.bleu(records)(range(3)) == pytest.approx(0.48530827009929865)
    one = [bleu_record("The dog bit the man.", ["The dog had bit the man."])]
    assert corpus.bleu(one)([0]) == pytest.approx(0.5115078115793242)


def test_chrf_is_that_of_sacrebleu() -> None:
    records = [chrf_record(text, right) for text, right in zip(TEXTS, RIGHT, strict=True)]
    assert corpus.chrf(records)(range(3)) == pytest.approx(0.5973, abs=5e-5)
    one = [chrf_record("The dog bit the man.", ["The dog had bit the man."])]
    assert corpus.chrf(one)([0]) == pytest.approx(0.6764711450656517)


def test_rouge_l_is_that_of_rouge_score() -> None:
    assert rouge_l("testing", ["testing one two"]) == pytest.approx(0.5)
    # Lin's (2004) example: the order of words counts.
    assert rouge_l("the gunman kill police", ["police killed the gunman"]) == pytest.approx(0.5)
    assert rouge_l("police kill the gunman", ["police killed the gunman", "x"]) == pytest.approx(0.75)
    assert rouge_l("", ["police"]) == 0.0


def test_numbers_keep_their_points_and_marks_are_words() -> None:
    assert split_words('It cost 1,234.5, "they" said &amp; left.') == [
        "It", "cost", "1,234.5", ",", '"', "they", '"', "said", "&", "left", ".",
    ]  # fmt: skip


def test_nothing_in_common_is_nothing_and_equal_texts_are_all() -> None:
    same = "a text of five words"
    assert corpus.bleu([bleu_record(same, [same])])([0]) == pytest.approx(1.0)
    assert corpus.chrf([chrf_record(same, [same])])([0]) == pytest.approx(1.0)
    assert corpus.bleu([bleu_record("", [same])])([0]) == 0.0
    assert corpus.chrf([chrf_record("", [same])])([0]) == 0.0
    assert is_exact(" 12\n", ["12", "13"])
    assert not is_exact("1 2", ["12"])

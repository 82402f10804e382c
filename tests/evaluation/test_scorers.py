"""Labels, output choice, embeddings and answers, one at a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.data.samples import Sample
from winml.modelkit.evaluation import corpus
from winml.modelkit.evaluation.all_tasks import TASKS
from winml.modelkit.evaluation.labels import class_names
from winml.modelkit.evaluation.question_answering import normalize, token_f1
from winml.modelkit.evaluation.task import Setting


def scored(task: str, outputs: list[dict[str, Any]], sample: Sample, **setting: Any) -> Any:
    runs = [{name: np.asarray(value, np.float32) for name, value in run.items()} for run in outputs]
    made = TASKS[task].scorer(Setting(tuple(runs[0]), **{"folder": None, **setting}))
    return made.score(sample, runs)


def test_the_fifth_place_is_right_among_five_and_not_the_first() -> None:
    logits = [[5.0, 4.0, 3.0, 2.0, 1.0, 0.0]]
    assert scored("image-classification", [{"y": logits}], Sample({}, 4)).values == {"top1": 0.0, "top5": 1.0}
    assert scored("image-classification", [{"y": logits}], Sample({}, 5)).values == {"top1": 0.0, "top5": 0.0}
    assert scored("image-classification", [{"y": logits}], Sample({}, 0)).prediction == 0


def test_equal_logits_give_the_first_class_and_no_credit_to_the_others() -> None:
    flat = [{"y": [[1.0] * 8]}]
    assert scored("image-classification", flat, Sample({}, 0)).values == {"top1": 1.0, "top5": 1.0}
    assert scored("image-classification", flat, Sample({}, 5)).values == {"top1": 0.0, "top5": 0.0}


def test_classes_of_a_map_are_found_by_their_names() -> None:
    scorer = TASKS["tabular-classification"].scorer(Setting(("output_label", "output_probability"), None))
    assert scorer.notes == ()
    probable = {"output_probability": [{"rose": 0.75, "iris": 0.25}]}
    assert scorer.score(Sample({}, "rose"), [probable]).values == {"top1": 1.0}
    wrong = scorer.score(Sample({}, "iris"), [probable])
    assert (wrong.values, wrong.prediction) == ({"top1": 0.0}, "rose")
    numbers = {"output_probability": [{0: 0.1, 1: 0.9}]}
    assert scorer.score(Sample({}, "1"), [numbers]).values == {"top1": 1.0}
    with pytest.raises(DataError, match="no class `0`, the label of a sample") as caught:
        scorer.score(Sample({}, 0), [probable])
    assert caught.value.hint == "it has: iris, rose"


def test_an_output_that_is_the_class_itself_is_compared_by_name_or_number() -> None:
    scorer = TASKS["tabular-classification"].scorer(Setting(("output_label",), None))
    named, numbered = {"output_label": np.array(["rose"], object)}, {"output_label": np.array([-1])}
    assert scorer.score(Sample({}, "rose"), [named]).values == {"top1": 1.0}
    assert scorer.score(Sample({}, "-1"), [numbered]).values == {"top1": 1.0}
    assert scorer.score(Sample({}, 1), [numbered]).values == {"top1": 0.0}
    with pytest.raises(DataError, match="names of classes such as `rose`"):
        scorer.score(Sample({}, 0), [named])


def test_five_classes_have_no_top_five() -> None:
    assert scored("image-classification", [{"y": [[0.0] * 5]}], Sample({}, 0)).values == {"top1": 1.0}


def test_the_output_is_named_usual_alone_or_the_first_with_a_note() -> None:
    scorer = TASKS["text-classification"].scorer
    assert scorer(Setting(("hidden", "logits"), None)).notes == ()
    assert scorer(Setting(("y",), None)).notes == ()
    assert "`a` is judged, the first of a, b" in scorer(Setting(("a", "b"), None)).notes[0]
    assert scorer(Setting(("a", "b"), None, "b")).notes == ()
    with pytest.raises(DataError, match="no output `c`"):
        scorer(Setting(("a", "b"), None, "c"))


def test_labels_are_numbers_or_the_names_of_the_model(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"id2label": {"0": "cat", "1": "crane", "2": "crane"}}))
    names = class_names(tmp_path)
    assert [names.number(label, 3, "it") for label in ("cat", "crane", "2", 2)] == [0, 1, 2, 2]
    with pytest.raises(DataError, match="no class `cta`, the label of sample 4") as caught:
        names.number("cta", 3, "sample 4")
    assert "did you mean `cat`" in (caught.value.hint or "")
    with pytest.raises(DataError, match="label 3 of sample 4 is out of range: the model has 3 classes, 0 to 2"):
        names.number(3, 3, "sample 4")
    with pytest.raises(DataError, match="out of range"):
        names.number(-1, 3, "it")
    with pytest.raises(DataError, match="no class"):
        names.number("²", 3, "it")
    with pytest.raises(DataError, match="no class"):
        names.number("9" * 5000, 3, "it")
    for label in (1.5, True, None, [1]):
        with pytest.raises(DataError, match="must be a class or its number"):
            names.number(label, 3, "it")


def test_names_without_a_config_say_where_they_would_be(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no class `cat`") as caught:
        class_names(tmp_path).number("cat", 3, "it")
    assert "id2label" in (caught.value.hint or "")
    (tmp_path / "config.json").write_text('{"id2label": ["cat"]}')
    with pytest.raises(DataError, match="must map numbers to names"):
        class_names(tmp_path)


def _pair(mask: list[int]) -> Sample:
    given = {"attention_mask": np.asarray([mask])}
    return Sample(given, 1.0, (given,))


@pytest.mark.parametrize(
    ("mode", "cosine"),
    [(None, 1.0), ("pooling_mode_mean_tokens", 1.0), ("pooling_mode_cls_token", 0.0), ("pooling_mode_max_tokens", 1.0)],
)
def test_tokens_are_pooled_as_the_model_says_and_padding_is_left_out(
    mode: str | None, cosine: float, tmp_path: Path
) -> None:
    if mode is not None:
        (tmp_path / "1_Pooling").mkdir()
        (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps({mode: True, "word_embedding_dimension": 2}))
    first, second = [[[1, 0], [0, 1], [9, 0]]], [[[0, 1], [1, 0], [0, 7]]]
    outputs = [{"last_hidden_state": first}, {"last_hidden_state": second}]
    found = scored("sentence-similarity", outputs, _pair([1, 1, 0]), folder=tmp_path)
    assert found.prediction == pytest.approx(cosine)
    notes = TASKS["sentence-similarity"].scorer(Setting(("last_hidden_state",), tmp_path)).notes
    assert bool(notes) == (mode is None)


def test_an_unknown_pooling_is_refused(tmp_path: Path) -> None:
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text('{"pooling_mode_lasttoken": true}')
    with pytest.raises(DataError, match="pooling_mode_lasttoken"):
        TASKS["sentence-similarity"].scorer(Setting(("last_hidden_state",), tmp_path))


def test_an_embedding_that_is_ready_is_taken_as_it_is() -> None:
    outputs = [{"sentence_embedding": [[3.0, 0.0]], "x": 0}, {"sentence_embedding": [[3.0, 4.0]], "x": 0}]
    assert scored("sentence-similarity", outputs, Sample({}, "2.5", ({},))).values == {
        "similarity": pytest.approx(0.6),
        "gold": 2.5,
    }


@pytest.mark.parametrize(
    ("answer", "gold", "f1"),
    [
        ("The Eiffel Tower!", "eiffel tower", 1.0),
        ("tower", "the Eiffel tower", 2 / 3),
        ("a b b", "b c", 0.5),
        ("the", "a", 1.0),
        ("the", "tower", 0.0),
        ("", "tower", 0.0),
    ],
)
def test_answers_are_compared_word_by_word_without_articles_and_punctuation(answer: str, gold: str, f1: float) -> None:
    assert token_f1(answer, gold) == pytest.approx(f1)


def test_an_article_inside_a_word_stays() -> None:
    assert normalize("Theatre, an a.") == ["theatre"]


SPANS = (None, (0, 3), (4, 7), (8, 11), None)
CONTEXT = "one two six"


def _answer(start: list[float], end: list[float], gold: Any = "two", **setting: Any) -> Any:
    sample = Sample({}, gold, (), CONTEXT, (SPANS,), "sample 0")
    return scored("question-answering", [{"start_logits": [start], "end_logits": [end]}], sample, **setting)


def test_an_answer_lies_in_the_context_and_does_not_end_before_it_starts() -> None:
    assert _answer([9, 0, 5, 0, 0], [9, 4, 3, 0, 9]).prediction == "two"
    assert _answer([0, 5, 0, 0, 0], [0, 0, 0, 5, 0]).prediction == "one two six"


def test_the_best_window_answers() -> None:
    sample = Sample({}, "six", ({},), CONTEXT, (SPANS, SPANS), "sample 0")
    runs = [
        {"start_logits": [[0, 3, 0, 0, 0]], "end_logits": [[0, 3, 0, 0, 0]]},
        {"start_logits": [[0, 0, 0, 4, 0]], "end_logits": [[0, 0, 0, 4, 0]]},
    ]
    found = scored("question-answering", runs, sample)
    assert found.prediction == "six"
    assert found.values == {"exact": 1.0, "f1": 1.0}


def test_outputs_of_other_names_are_told_and_of_other_lengths_refused() -> None:
    assert "`a` and `b`" in TASKS["question-answering"].scorer(Setting(("a", "b"), None)).notes[0]
    with pytest.raises(DataError, match="needs two outputs"):
        TASKS["question-answering"].scorer(Setting(("a",), None))
    with pytest.raises(DataError, match="have 4 and 5 numbers for 5 tokens"):
        _answer([0] * 4, [0] * 5)


@pytest.mark.parametrize("gold", [[], {"text": []}, 5, [1]])
def test_a_question_without_an_answer_is_refused(gold: Any) -> None:
    with pytest.raises(DataError, match="answers of sample 0"):
        _answer([0] * 5, [0] * 5, gold)


def test_ready_inputs_cannot_be_answered() -> None:
    with pytest.raises(DataError, match="needs texts"):
        scored("question-answering", [{"start_logits": [[0]], "end_logits": [[0]]}], Sample({}, "a"))


def test_one_number_is_a_probability_until_one_lies_outside_0_to_1() -> None:
    scorer = TASKS["binary-classification"].scorer(Setting(("y",), None))
    first = scorer.score(Sample({}, 1), [{"y": np.asarray([[0.3]])}])
    assert (first.values["right"], first.prediction) == (0.0, 0)
    scorer.score(Sample({}, 0), [{"y": np.asarray([[-2.0]])}])
    assert [scored.values["right"] for scored in scorer.finish(complete=True)] == [1.0, 1.0]  # type: ignore[attr-defined]
    assert "read as a logit, because some of its numbers lie outside" in scorer.notes[0]


@pytest.mark.parametrize(("options", "right"), [({}, 1.0), ({"threshold": "0.7"}, 0.0), ({"scores": "logit"}, 1.0)])
def test_the_user_decides_threshold_and_reading(options: dict[str, str], right: float) -> None:
    assert scored("binary-classification", [{"y": [0.6]}], Sample({}, 1), options=options).values["right"] == right


@pytest.mark.parametrize("options", [{"threshold": "1"}, {"threshold": "x"}, {"scores": "odds"}, {"over": "first"}])
def test_options_of_a_binary_output_are_checked(options: dict[str, str]) -> None:
    with pytest.raises(RequestError):
        TASKS["binary-classification"].scorer(Setting(("y",), None, None, options))


@pytest.mark.parametrize(("label", "outputs"), [(2, [0.5]), ("yes", [0.5]), (None, [0.5]), (1, [0.1, 0.9])])
def test_labels_are_0_or_1_and_an_output_is_one_number(label: Any, outputs: list[float]) -> None:
    with pytest.raises(DataError):
        scored("binary-classification", [{"y": outputs}], Sample({}, label))


def test_ranks_count_equal_scores_half() -> None:
    of = corpus.ranked_right([[0.5], [0.5], [0.2], [0.9]], [[1], [0], [0], [1]])
    assert of(range(4)) == pytest.approx(3.5 / 4)
    assert of([0, 1]) == 0.5
    assert of([0, 3]) is None


def _read(classes: list[int], count: int, **options: str) -> Any:
    logits = np.eye(count, dtype=np.float32)[classes][None]
    return scored("text-recognition", [{"y": logits}], Sample({}, "ab"), options=options)


def test_an_alphabet_is_a_file_a_list_or_the_characters(tmp_path: Path) -> None:
    lines, listed = tmp_path / "alphabet.txt", tmp_path / "alphabet.json"
    lines.write_text("a\nb\n", encoding="utf-8")
    listed.write_text(json.dumps(["a", "b"]), encoding="utf-8")
    for alphabet in ("ab", str(lines), str(listed)):
        assert _read([1, 1, 0, 2], 3, alphabet=alphabet).prediction == "ab"
    assert _read([0, 1], 3, alphabet="ab", blank="-1").prediction == "ab"
    assert _read([1, 3, 2], 4, alphabet="ab").prediction == "a b"  # a class more than that is the space
    assert _read([1, 2], 3, alphabet="_ab").prediction == "ab"  # the alphabet has a place for the blank


@pytest.mark.parametrize("options", [{}, {"alphabet": "a"}, {"alphabet": "abcdefgh"}, {"alphabet": "ab", "blank": "x"},
                                     {"alphabet": "ab", "blank": "7"}])  # fmt: skip
def test_an_alphabet_that_does_not_fit_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(RequestError):
        _read([1, 2], 3, **options)


def test_text_that_the_alphabet_lacks_is_noted() -> None:
    scorer = TASKS["text-recognition"].scorer(Setting(("y",), None, None, {"alphabet": "ab"}))
    scorer.score(Sample({}, "axb"), [{"y": np.eye(3, dtype=np.float32)[[1, 2]][None]}])
    assert "1 labels have characters that the alphabet lacks" in scorer.notes[-1]

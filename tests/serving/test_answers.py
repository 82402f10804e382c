"""What models answer in words, by real models with their processors."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import data_zoo
import generation_zoo
import task_cases
import task_zoo
from winml.modelkit import sample
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.core.measurement import Arm, SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import to_json
from winml.modelkit.render.run import answer_lines
from winml.modelkit.serving import operations
from winml.modelkit.serving.prediction import Given, OpenArguments, RunAnswer, RunArguments, TextPiece
from winml.modelkit.session.arm import arm_arguments


class Told:
    """What an operation of a worker gets."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.events: list[Any] = []

    def tell(self, event: object) -> None:
        self.events.append(event)


def ask(model: Path, task: str | None, told: Told | None = None, given: Given | None = None, **more: Any) -> RunAnswer:
    arm = Arm(artifact=str(model), target=Target("cpu", "cpu"), session=SessionSection())
    folder = model if model.is_dir() else model.parent
    opening = OpenArguments(arm=arm_arguments(arm, None), folder=str(folder), task=task, **more)
    assert given is not None
    return operations.run(to_json(RunArguments(opening=opening, given=given)), told or Told())


def words(found: RunAnswer) -> list[str]:
    return answer_lines(found.prediction.answer)


def test_classes_have_the_names_of_the_config_and_scores_that_sum_to_one(tmp_path: Path) -> None:
    case = task_zoo._text_classification(tmp_path)
    (tmp_path / "config.json").write_text('{"id2label": {"0": "bad", "1": "good"}}')
    found = ask(case.model, "text-classification", given=Given(text="good film")).prediction.answer
    assert found.kind == "classes"
    assert [one.label for one in found.labels] == ["good", "bad"]
    assert sum(one.score for one in found.labels) == pytest.approx(1.0)
    assert found.labels[0].score == pytest.approx(1 / (1 + np.exp(-3)))


def test_a_part_of_the_context_answers_a_question_also_far_behind(tmp_path: Path) -> None:
    case = task_zoo._question_answering(tmp_path)
    context = "it did film film . " * 90 + "bad , ada wrote it ."
    found = ask(case.model, "question-answering", given=Given(text="who wrote it", text_pair=context))
    answer = found.prediction.answer
    assert answer.kind == "span"
    assert context[answer.start : answer.end] == answer.text == "ada"
    assert any("run 2 times" in note or "run 3 times" in note for note in found.prediction.notes)


def test_entities_have_their_place_in_the_text(tmp_path: Path) -> None:
    case = task_zoo._token_classification(tmp_path)
    text = "film ada who wrote"
    answer = ask(case.model, "token-classification", given=Given(text=text)).prediction.answer
    assert answer.kind == "entities"
    assert [(one.label, one.text, text[one.start : one.end]) for one in answer.entities] == [
        ("PER", "ada who", "ada who")
    ]


def test_boxes_are_in_pixels_of_the_image_that_was_given(tmp_path: Path) -> None:
    case = task_zoo._object_detection(tmp_path)
    answer = ask(case.model, "object-detection", given=Given(image=str(tmp_path / "1.png"))).prediction.answer
    assert answer.kind == "boxes"
    assert {one.label for one in answer.boxes} == {"cat", "dog"}
    assert all(0 <= one.box[0] < 40 and one.box[2] <= 40 for one in answer.boxes)
    none = ask(
        case.model, "object-detection", given=Given(image=str(tmp_path / "1.png")), task_options={"threshold": "1"}
    )
    assert words(none) == ["no box with a score of at least 1"]


def test_areas_are_shares_of_the_pixels(tmp_path: Path) -> None:
    case = task_zoo._image_segmentation(tmp_path)
    answer = ask(case.model, "image-segmentation", given=Given(image=str(tmp_path / "image.png"))).prediction.answer
    assert answer.kind == "areas"
    assert {one.number: one.share for one in answer.areas} == pytest.approx({0: 0.5, 1: 0.5})


def test_speech_becomes_text(tmp_path: Path) -> None:
    case = task_zoo._speech(tmp_path)
    found = ask(case.model, "automatic-speech-recognition", given=Given(audio=str(tmp_path / "0.wav")))
    assert words(found) == ["aa b"]


def test_a_text_has_a_vector_and_two_have_a_cosine(tmp_path: Path) -> None:
    case = task_zoo._sentence_similarity(tmp_path)
    two = ask(case.model, "sentence-similarity", given=Given(text="good", text_pair="good")).prediction.answer
    assert two.kind == "similarity"
    assert two.cosine == pytest.approx(1.0)
    one = ask(case.model, "feature-extraction", given=Given(text="good")).prediction.answer
    assert one.kind == "embedding"
    assert one.size == 3


def test_classes_of_a_zero_shot_model_are_those_that_are_named(tmp_path: Path) -> None:
    case = task_zoo._zero_shot_image(tmp_path)
    image = str(tmp_path / "data" / "bad" / "0.png")
    answer = ask(case.model, "zero-shot-image-classification", given=Given(image=image, labels=("good", "bad")))
    assert answer.prediction.answer.kind == "classes"
    assert answer.prediction.answer.labels[0].label == "bad"
    with pytest.raises(RequestError, match="needs the classes to choose from"):
        ask(case.model, "zero-shot-image-classification", given=Given(image=image))


def test_gaps_are_filled_with_words(tmp_path: Path) -> None:
    case = task_cases.CASES["fill-mask"](tmp_path)
    answer = ask(case.model, "fill-mask", given=Given(text="good [MASK]"), top=2).prediction.answer
    assert answer.kind == "words"
    assert [len(gap) for gap in answer.gaps] == [2]
    with pytest.raises(RequestError, match="no gap to fill"):
        ask(case.model, "fill-mask", given=Given(text="good film"))


def test_outputs_stand_alone_where_the_task_is_unknown(tmp_path: Path) -> None:
    images = np.load(sample.TEST)["image"]
    np.savez(tmp_path / "one.npz", image=images[:1])
    found = ask(sample.MODEL, None, given=Given(arrays=str(tmp_path / "one.npz")))
    assert found.prediction.answer.kind == "outputs"
    assert "task of the model is unknown" in found.prediction.answer.reason
    (output,) = found.prediction.outputs
    assert (output.name, output.shape, output.not_finite, len(output.first)) == ("logits", (1, 10), 0, 8)


def test_a_batch_has_no_single_answer(tmp_path: Path) -> None:
    np.savez(tmp_path / "two.npz", image=np.load(sample.TEST)["image"][:2])
    found = ask(sample.MODEL, "image-classification", given=Given(arrays=str(tmp_path / "two.npz")))
    assert "batch" in words(found)[0]


def test_what_is_not_finite_is_no_answer(tmp_path: Path) -> None:
    np.savez(tmp_path / "nan.npz", image=np.full((1, 1, 48, 48), np.nan, np.float32))
    found = ask(sample.MODEL, "image-classification", given=Given(arrays=str(tmp_path / "nan.npz")))
    assert "NaN or infinite" in words(found)[0]
    assert found.prediction.outputs[0].not_finite == 10
    assert found.prediction.outputs[0].lowest is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Given(image="missing.png"), "image processor|one four-dimensional|not found"),
        (Given(text=" "), "the text is empty"),
        (Given(text="good", text_pair=None, labels=("one",)), "two or more|needs the classes"),
        (Given(prompt="good"), "generate text"),
    ],
)
def test_inputs_that_do_not_fit_are_refused_with_the_reason(tmp_path: Path, given: Given, message: str) -> None:
    case = task_zoo._text_classification(tmp_path)
    with pytest.raises((RequestError, DataError), match=message):
        ask(case.model, "text-classification", given=given)


def test_an_unknown_task_or_option_names_the_nearest(tmp_path: Path) -> None:
    case = task_zoo._text_classification(tmp_path)
    with pytest.raises(RequestError, match="unknown task `text-clasification`") as caught:
        ask(case.model, "text-clasification", given=Given(text="good"))
    assert "text-classification" in (caught.value.hint or "")
    with pytest.raises(RequestError, match="no option `chatt`"):
        ask(case.model, None, given=Given(text="good"), task_options={"chatt": "true"})


@pytest.fixture
def decoder(tmp_path: Path) -> Path:
    table = generation_zoo.chain(who="wrote", wrote="it", it="did", did="ada", ada="[SEP]")
    return generation_zoo.decoder(tmp_path / "model", table, drift=0.0)


def test_text_comes_in_pieces_that_make_the_whole(decoder: Path) -> None:
    told = Told()
    found = ask(decoder, None, told, Given(prompt="who"), generates=True, runtime="onnxruntime", new_tokens=10)
    answer = found.prediction.answer
    assert answer.kind == "text"
    assert (answer.text, answer.tokens, answer.finish) == ("wrote it did ada", 5, "stop")
    assert all(isinstance(event, TextPiece) for event in told.events)
    assert "".join(event.text for event in told.events) == answer.text
    assert len(told.events) == 4


def test_an_answer_ends_at_the_limit_or_at_a_text(decoder: Path) -> None:
    short = ask(
        decoder, None, given=Given(prompt="who"), generates=True, runtime="onnxruntime", new_tokens=2
    ).prediction.answer
    assert short.kind == "text"
    assert (short.text, short.finish) == ("wrote it", "length")
    stopped = ask(
        decoder,
        None,
        given=Given(prompt="who"),
        generates=True,
        runtime="onnxruntime",
        new_tokens=10,
        task_options={"stop": " did"},
    ).prediction.answer
    assert stopped.kind == "text"
    assert (stopped.text, stopped.finish) == ("wrote it", "stop")


def test_a_model_without_a_chat_template_says_so(decoder: Path) -> None:
    with pytest.raises(DataError, match="no chat template"):
        ask(
            decoder,
            None,
            given=Given(prompt="who"),
            generates=True,
            runtime="onnxruntime",
            task_options={"chat": "true"},
        )


def test_an_encoder_with_a_decoder_answers_a_text(tmp_path: Path) -> None:
    said = {"good": "wrote", "bad": "it"}
    folder = generation_zoo.pair(tmp_path / "model", said)
    found = ask(folder, None, given=Given(text="good bad"), generates=True, new_tokens=8)
    assert words(found) == ["wrote it"]


def test_a_text_that_is_cut_is_noted(tmp_path: Path) -> None:
    case = task_zoo._text_classification(tmp_path)
    found = ask(case.model, "text-classification", given=Given(text="good " * 40), length=8)
    assert any("cut to its first 8 tokens" in note for note in found.prediction.notes)
    data_zoo.tokenizer(tmp_path)

"""Data of the newer forms that is not what it should be: one error that names the place, never a crash."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import data_zoo
import task_cases
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.errors import DataError
from winml.modelkit.data.arrays import PlainInput, read_array
from winml.modelkit.data.dataset import open_dataset
from winml.modelkit.evaluation.all_tasks import TASKS
from winml.modelkit.session.opening import CPU
from winml.modelkit.session.session import WinMLSession

Rows = list[dict[str, Any]]


def samples(task: str, folder: Path, change: Callable[[Path], None], **section: Any) -> list[Any]:
    """The samples of a task's case after its data was changed."""
    case = task_cases.CASES[task](folder)
    change(Path(case.data))
    with WinMLSession(case.model, target=CPU) as session:
        inputs = session.inputs
    form = TASKS[task].form
    data = DataSection(str(case.data), **section)
    return list(open_dataset(data, inputs, model_folder=folder, labels=True, form=form))


def rows(**values: Any) -> Callable[[Path], None]:
    """Sets values of the first row of a .jsonl file."""

    def change(path: Path) -> None:
        lines = path.read_text(encoding="utf-8").splitlines()
        data_zoo.jsonl(path, [{**json.loads(lines[0]), **values}, *map(json.loads, lines[1:])])

    return change


def document(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    """Changes the value of a .json file."""

    def edit(path: Path) -> None:
        value = json.loads(path.read_text(encoding="utf-8"))
        change(value)
        path.write_text(json.dumps(value), encoding="utf-8")

    return edit


def annotation(**values: Any) -> Callable[[Path], None]:
    """Changes the first annotation of a COCO file."""
    return document(lambda value: value["annotations"][0].update(values))


def written(name: str, text: str) -> Callable[[Path], None]:
    """Another text in a file of the data, or below its folder."""
    return lambda path: (path / name if path.is_dir() else path).write_text(text, encoding="utf-8") and None


@pytest.mark.parametrize(
    ("task", "change", "message"),
    [
        ("fill-mask", rows(text="no gap"), "must have one gap"),
        ("fill-mask", rows(text="[MASK] and [MASK]"), "must have one gap"),
        ("fill-mask", rows(label=" "), "no words that could be left out"),
        ("multiple-choice", rows(choices=[]), "must be a list of words"),
        ("reranking", rows(positive="good"), "must be a list of words"),
        ("document-question-answering", rows(boxes=[[0, 0, 1, 1]]), "for each of its 5 words"),
        ("document-question-answering", rows(boxes=[[0, 0, 1, 1001]] * 5), "from 0 to 1000"),
        ("depth-estimation", rows(depth="missing.npy"), "is missing"),
        ("depth-estimation", rows(scale=0), "must be a number above 0"),
        ("depth-estimation", rows(depth="model.onnx"), "is not a readable image"),
        ("mask-generation", rows(points=[[1]]), "must be a list of"),
        ("mask-generation", rows(points=[[float("nan"), 1]]), "must be a list of"),
        ("time-series-classification", rows(values=[[1], [2]]), "must have shape"),
        ("retrieval", written("corpus.jsonl", "{}\n"), "must be an object with `_id` and `text`"),
        ("retrieval", written("corpus.jsonl", "[\n"), "is not JSON"),
        ("retrieval", written("qrels/test.tsv", "q1\td1\n"), "line 1 of .* must have question, text and score"),
        ("retrieval", written("qrels/test.tsv", "zz\td1\t1\n"), "no question of .* has a relevant text"),
        ("time-series-forecasting", written("", "date,value\n1,x\n"), "must have a number in every field"),
        ("time-series-forecasting", written("", "date,value\n1,nan\n"), "has NaN or infinite values"),
        ("time-series-forecasting", written("", "date,value\n1,2,3\n"), "has 3 fields, the first 2"),
        ("time-series-forecasting", written("", "date,value\n1,2\n"), "a sample takes 4 and 2 more"),
        ("panoptic-segmentation", document(lambda d: d.pop("images")), "has no list `images`"),
        ("panoptic-segmentation", annotation(segments_info=None), "without `segments_info`"),
        ("panoptic-segmentation", annotation(image_id=99), "annotation of image 99"),
        ("panoptic-segmentation", document(lambda d: d["categories"].pop()), "category 18 without a name"),
        ("panoptic-segmentation", document(lambda d: d["images"][0].update(file_name="no.jpg")), "is missing"),
        ("panoptic-segmentation", document(lambda d: d["images"][0].update(file_name="../0.jpg")), "outside"),
        ("panoptic-segmentation", annotation(file_name="/etc/passwd"), "outside"),
        ("panoptic-segmentation", annotation(file_name="C:\\0.png"), "outside"),
        ("keypoint-detection", annotation(keypoints=[1, 2]), "without `keypoints`"),
        ("keypoint-detection", annotation(bbox=[1, 2, 0, 4]), "without `keypoints`"),
        ("keypoint-detection", document(lambda d: d.update(annotations=[])), "has no samples"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_data_is_said(
    task: str, change: Callable[[Path], None], message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message):
        samples(task, tmp_path, change)


def test_the_passages_of_a_question_may_have_grades(tmp_path: Path) -> None:
    graded = [{"query": "who", "passages": ["good", "bad"], "relevance": [0, 2]}]
    found = samples("reranking", tmp_path, lambda path: data_zoo.jsonl(path, graded) and None)
    assert (found[0].label, len(found[0].more)) == ([0.0, 2.0], 1)
    (tmp_path / "other").mkdir()
    with pytest.raises(DataError, match="a number from 0 for each"):
        samples(
            "reranking", tmp_path / "other", lambda p: data_zoo.jsonl(p, [{**graded[0], "relevance": [1]}]) and None
        )


def test_a_text_alone_has_each_word_left_out_in_turn_but_not_more_than_the_most(tmp_path: Path) -> None:
    text = "good " * 40
    found = samples("fill-mask", tmp_path, lambda path: data_zoo.jsonl(path, [{"text": text}]) and None)[0]
    assert len(found.label) == 1 + len(found.more) == 16
    places = [gap[0][0] for gap in found.label]
    assert places == sorted(set(places))
    masked = data_zoo.IDS["[MASK]"]
    for run, place in zip((found.inputs, *found.more), places, strict=True):
        assert np.flatnonzero(run["input_ids"][0] == masked).tolist() == [place]


def test_what_sentence_transformers_puts_before_texts_is_put_there(tmp_path: Path) -> None:
    prompts = {"prompts": {"query": "who ", "passage": "it "}}
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(prompts), encoding="utf-8")
    found = samples("retrieval", tmp_path, lambda path: None)
    first = [int(sample.inputs["input_ids"][0, 1]) for sample in found]
    assert first == [data_zoo.IDS["who"]] * 2 + [data_zoo.IDS["it"]] * 4
    assert [bool(sample.about.get("text")) for sample in found] == [False] * 2 + [True] * 4


def test_a_page_has_the_boxes_of_its_words_and_none_for_its_question(tmp_path: Path) -> None:
    sample = samples("document-question-answering", tmp_path, lambda path: None)[0]
    boxes, ids = sample.inputs["bbox"][0].tolist(), sample.inputs["input_ids"][0].tolist()
    # [CLS] who wrote it [SEP] film film ada wrote it [SEP] and filling.
    assert ids[4] == ids[10] == data_zoo.IDS["[SEP]"]
    assert boxes[:4] == [[0] * 4] * 4
    assert boxes[4] == boxes[10] == [1000] * 4
    assert boxes[5:10] == [[10 * i, 20, 10 * i + 9, 40] for i in range(5)]
    assert boxes[11] == [0] * 4
    assert sample.context == "film film ada wrote it"
    assert sample.context[slice(*sample.spans[0][7])] == "ada"


def test_boxes_of_coco_are_objects_by_the_name_of_their_category(tmp_path: Path) -> None:
    data_zoo.image_processor(tmp_path)
    (tmp_path / "images").mkdir()
    data_zoo.image(tmp_path / "images" / "a.png", (9, 9), 5)
    value = {
        "images": [{"id": 7, "file_name": "a.png"}],
        "annotations": [{"image_id": 7, "bbox": [1, 2, 3, 4], "category_id": 3, "iscrowd": 1}],
        "categories": [{"id": 3, "name": "cat"}],
    }
    (tmp_path / "boxes.json").write_text(json.dumps(value), encoding="utf-8")
    spec = PlainInput("pixel_values", "float32", ("batch", 3, "height", "width"))
    data = open_dataset(DataSection(str(tmp_path / "boxes.json")), [spec], model_folder=tmp_path, labels=True)
    assert [sample.label for sample in data] == [[{"bbox": [1, 2, 3, 4], "category": "cat", "iscrowd": 1}]]


def test_an_array_file_is_read_no_further_than_its_header_says_truly(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    for values in (np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3)), np.zeros((0, 2))):
        np.save(path, values)
        np.testing.assert_array_equal(read_array(path), values)
    whole = path.read_bytes()
    np.save(path, np.asarray(["a"]))
    with pytest.raises(DataError, match="holds no numbers"):
        read_array(path)
    for content in (b"", b"\x93NUMPY", whole.replace(b"(0, 2)", b"(9, 2)"), whole + b"x"):
        path.write_bytes(content)
        with pytest.raises(DataError, match="is not a .npy file of numbers"):
            read_array(path)

"""Boxes: what DETR's outputs say, which of them are right, and the precision of all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from winml.modelkit.core.errors import DataError
from winml.modelkit.data.samples import Sample
from winml.modelkit.evaluation.all_tasks import TASKS
from winml.modelkit.evaluation.average_precision import Ranking
from winml.modelkit.evaluation.labels import ClassNames
from winml.modelkit.evaluation.object_detection import Object, objects, record
from winml.modelkit.evaluation.task import Setting

CAT = {"bbox": [40, 60, 20, 80], "category": 0}


def there(number: int, *box: float, crowd: bool = False) -> Object:
    return Object(number, (box[0], box[1], box[2], box[3]), crowd)


def said(**by_class: list[list[float]]) -> dict[int, Any]:
    """Rows of left, top, width, height, score for each class."""
    made = {int(name[1:]): np.asarray(rows, np.float64) for name, rows in by_class.items()}
    return {number: (rows[:, 4], rows[:, :4]) for number, rows in made.items()}


def test_precision_is_that_of_cocos_own_program() -> None:
    # 0.36518 and 0.47525 were made with pycocotools 2.0.11 from the same boxes: a box found twice, one in a crowd,
    # two that are equally sure, a class said where it is not, an image with nothing in it.
    images = [
        record(
            [there(0, 0, 0, 10, 10), there(0, 20, 0, 10, 10), there(0, 40, 0, 40, 40, crowd=True)],
            said(
                c0=[[0, 0, 10, 9, 0.9], [0, 1, 10, 10, 0.8], [45, 5, 9, 9, 0.7], [20, 3, 10, 10, 0.6]],
                c1=[[60, 60, 9, 9, 0.95]],
            ),
        ),
        record(
            [there(1, 5, 5, 20, 20)],
            said(c1=[[5, 5, 20, 18, 0.5], [5, 5, 20, 20, 0.5]], c0=[[0, 0, 4, 4, 0.65]]),
        ),
        record([], said(c0=[[0, 0, 9, 9, 0.99]])),
    ]
    ranking = Ranking(images)
    assert ranking.precision(range(3), range(10)) == pytest.approx(0.36518151815, abs=1e-10)
    assert ranking.precision(range(3), range(1)) == pytest.approx(0.47524752475, abs=1e-10)
    assert ranking.precision([0, 2], range(10)) == Ranking([images[0], images[2]]).precision(range(2), range(10))


def test_without_an_object_there_is_no_precision() -> None:
    assert Ranking([record([], said(c0=[[0, 0, 9, 9, 0.9]]))]).precision([0], range(10)) is None


def _scored(label: Any, **outputs: Any) -> Any:
    values = {
        "logits": [[[2.0, 1.0, 0.0], [0.0, 3.0, 1.0], [0.0, 0.5, 4.0]]],
        "pred_boxes": [[[0.5, 0.5, 0.2, 0.4], [0.25, 0.75, 0.5, 0.5], [0.1, 0.1, 0.1, 0.1]]],
    }
    run = {name: np.asarray(value, np.float32) for name, value in {**values, **outputs}.items()}
    scorer = TASKS["object-detection"].scorer(Setting(tuple(run), None))
    return scorer.score(Sample({}, label, where="sample 3", size=(200, 100)), [run])


def test_outputs_become_boxes_as_transformers_makes_them() -> None:
    # DetrImageProcessor.post_process_object_detection of transformers 5.22 gives 0.6652, 0.8438 and these corners.
    found = _scored([CAT])
    assert [(b["category"], b["score"]) for b in found.prediction] == [
        (0, pytest.approx(0.6652, abs=1e-4)),
        (1, pytest.approx(0.8438, abs=1e-4)),
    ]
    assert found.prediction[0]["bbox"] == pytest.approx([40, 60, 20, 80], abs=1e-4)
    assert found.prediction[1]["bbox"] == pytest.approx([0, 100, 50, 100], abs=1e-4)
    assert found.values["boxes"]["0"] == {"objects": 1, "found": [[pytest.approx(0.6652, abs=1e-4), 1023, 0]]}
    assert [row[0] for row in found.values["boxes"]["1"]["found"]] == pytest.approx([0.8438, 0.0288], abs=1e-4)


def test_objects_may_be_a_list_or_lists() -> None:
    lists = Sample({}, {"bbox": [[1, 2, 3, 4], [5, 6, 7, 8]], "category": ["cat", 1], "iscrowd": [0, 1]})
    found = objects(lists, ClassNames({"cat": 0}), 2)
    assert found == [there(0, 1, 2, 3, 4), there(1, 5, 6, 7, 8, crowd=True)]


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ({"bbox": [[1, 2, 3, 4]], "category": []}, "lists of different lengths"),
        ([{**CAT, "category": 2}], "label 2 of sample 3 is out of range: the model has 2 classes"),
        ([{"bbox": [1, 2, 3, 4]}], "must be a class or its number but is None"),
        ([{**CAT, "bbox": [1, 2, 0, 4]}], "`bbox` of an object of sample 3 must be"),
        ([{**CAT, "bbox": [1, 2, float("nan"), 4]}], "`bbox` of an object of sample 3 must be"),
        ([{**CAT, "bbox": "1 2 3 4"}], "`bbox` of an object of sample 3 must be"),
    ],
)
def test_objects_that_mean_nothing_are_refused(label: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        _scored(label)


def test_outputs_of_another_form_are_refused() -> None:
    with pytest.raises(DataError, match="`pred_boxes` must be batch, query and number"):
        _scored([CAT], pred_boxes=[[0.5, 0.5, 0.2, 0.4]])


def test_models_of_another_manner_are_refused() -> None:
    with pytest.raises(DataError, match="needs the outputs logits and pred_boxes"):
        TASKS["object-detection"].scorer(Setting(("boxes", "scores"), None))

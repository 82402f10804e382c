"""What the scorers of tasks with more than a class decide, against values worked out in another way."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from winml.modelkit.core.errors import DataError
from winml.modelkit.data.keypoint_crops import Crop
from winml.modelkit.data.samples import Sample
from winml.modelkit.evaluation.all_tasks import TASKS
from winml.modelkit.evaluation.depth_estimation import align
from winml.modelkit.evaluation.document_question_answering import letter_similarity
from winml.modelkit.evaluation.image_to_image import psnr_db, ssim
from winml.modelkit.evaluation.keypoint_detection import SIGMAS, keypoint_similarity, peaks
from winml.modelkit.evaluation.ranking import ndcg, recall, reciprocal_rank
from winml.modelkit.evaluation.task import LateScorer, Setting
from winml.modelkit.evaluation.text_to_audio import log_spectral_distance
from winml.modelkit.evaluation.universal_segmentation import Segment, find_segments, panoptic_record
from winml.modelkit.evaluation.visual_question_answering import vqa_accuracy


def scored(task: str, output: dict[str, Any], sample: Sample, folder: Path | None = None) -> Any:
    run = {name: np.asarray(value, np.float32) for name, value in output.items()}
    return TASKS[task].scorer(Setting(tuple(run), folder)).score(sample, [run])


def test_an_order_is_worth_what_its_first_ten_places_hold() -> None:
    assert ndcg([0, 3, 2], [3, 2, 0]) == pytest.approx((3 / math.log2(3) + 2 / math.log2(4)) / (3 + 2 / math.log2(3)))
    assert ndcg([0.0] * 10 + [1.0], [1.0]) == 0
    assert reciprocal_rank([0, 0, 1, 1]) == pytest.approx(1 / 3)
    assert reciprocal_rank([0] * 10 + [1]) == 0
    assert recall([1, 0, 1], [1, 1, 1, 0]) == pytest.approx(2 / 3)


def test_nearness_is_fitted_to_depths_before_it_is_judged(tmp_path: Path) -> None:
    depths = np.asarray([[1.0, 2.0], [4.0, 8.0]])
    nearness = 3 / depths + 5
    np.testing.assert_allclose(align(nearness.ravel(), depths.ravel()), depths.ravel())
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "depth_anything"}))
    sample = Sample({}, depths)
    relative = scored("depth-estimation", {"predicted_depth": [nearness]}, sample, tmp_path)
    assert relative.values == {"near": 1.0, "relative": pytest.approx(0, abs=1e-6), "rmse": pytest.approx(0, abs=1e-5)}
    (tmp_path / "config.json").write_text(
        json.dumps({"model_type": "depth_anything", "depth_estimation_type": "metric"})
    )
    metric = scored("depth-estimation", {"predicted_depth": [nearness]}, sample, tmp_path)
    assert metric.values["near"] == 0.0
    notes = TASKS["depth-estimation"].scorer(Setting(("predicted_depth",), tmp_path)).notes
    assert notes == ("depths are judged as metres, without a fit",)


def test_similarity_of_images_is_that_of_its_definition_window_by_window() -> None:
    rng = np.random.default_rng(3)
    first = rng.random((14, 13, 1))
    second = np.clip(first + 0.1 * rng.standard_normal((14, 13, 1)), 0, 1)
    places = np.arange(11) - 5
    weights = np.exp(-(places[:, None] ** 2 + places[None] ** 2) / (2 * 1.5**2))
    weights /= weights.sum()
    found = []
    for y in range(4):
        for x in range(3):
            a, b = first[y : y + 11, x : x + 11, 0], second[y : y + 11, x : x + 11, 0]
            ma, mb = (weights * a).sum(), (weights * b).sum()
            va, vb = (weights * (a - ma) ** 2).sum(), (weights * (b - mb) ** 2).sum()
            both = (weights * (a - ma) * (b - mb)).sum()
            found.append((2 * ma * mb + 1e-4) * (2 * both + 9e-4) / ((ma**2 + mb**2 + 1e-4) * (va + vb + 9e-4)))
    assert ssim(first, second) == pytest.approx(np.mean(found))
    assert ssim(first, first) == pytest.approx(1)
    assert psnr_db(first, first) == 100
    assert psnr_db(np.zeros((2, 2, 1)), np.full((2, 2, 1), 0.1)) == pytest.approx(20)
    # An image that is smaller than a window has a smaller window.
    assert ssim(first[:4, :5], first[:4, :5]) == pytest.approx(1)


def test_what_was_filled_up_is_cut_off_before_images_are_compared() -> None:
    target = np.full((4, 6, 3), 51, np.uint8)
    made = np.ones((1, 3, 8, 8), np.float32)
    made[:, :, :4, :6] = 0.2
    assert scored("image-to-image", {"reconstruction": made}, Sample({}, target)).values["psnr"] == 100
    with pytest.raises(DataError, match="at least 4 x 6 pixels"):
        scored("image-to-image", {"reconstruction": made[:, :, :3]}, Sample({}, target))


def test_ten_times_less_sound_is_twenty_decibels_away() -> None:
    wave = np.random.default_rng(1).standard_normal(4000)
    assert log_spectral_distance(wave / 10, wave) == pytest.approx(20)
    assert log_spectral_distance(wave, wave[:2000]) == pytest.approx(0)
    assert log_spectral_distance(wave[:100], wave[:100]) == 0


@pytest.mark.parametrize(
    ("answer", "right", "worth"),
    [("Ada", "ada", 1.0), ("adam", "ada", 0.75), ("ada  l", "ada l", 1.0), ("ad", "film", 0.0), ("ab", "cb", 0.0)],
)
def test_an_answer_with_few_wrong_letters_is_worth_the_rest(answer: str, right: str, worth: float) -> None:
    assert letter_similarity(answer, right) == pytest.approx(worth)


def test_an_answer_about_an_image_is_worth_how_many_people_gave_it() -> None:
    assert vqa_accuracy("red", ["red"] * 10) == 1
    assert vqa_accuracy("red", ["red"] * 3 + ["blue"] * 7) == pytest.approx((3 * 2 / 3 + 7 * 1) / 10)
    assert vqa_accuracy("the red", ["blue"] * 9 + ["Red!"]) == pytest.approx(9 * (1 / 3) / 10)
    assert vqa_accuracy("red", ["red"]) == 1
    assert vqa_accuracy("red", ["blue", "green"]) == 0


def test_a_peak_leans_to_its_higher_neighbour_and_goes_back_to_pixels() -> None:
    maps = np.zeros((2, 5, 6))
    maps[0, 2, 3], maps[0, 2, 4], maps[0, 1, 3] = 9, 4, 2
    maps[1, 0, 5] = 1
    points, heights = peaks(maps)
    assert points.tolist() == [[3.25, 1.75], [5, 0]]
    assert heights.tolist() == [9, 1]
    crop = Crop.around([10, 10, 24, 32], (32, 24))
    assert crop.span == (30.0, 40.0)
    corners = crop.back(np.asarray([[0.0, 0.0], [5.0, 4.0]]), (5, 6))
    assert corners.tolist() == [[7, 6], [37, 46]]
    # A narrow box is cut out as wide as the proportions of the input want.
    assert Crop.around([0, 0, 4, 32], (32, 24)).span == (30.0, 40.0)


def test_keypoints_are_judged_by_the_size_of_the_person_and_the_spread_of_the_point() -> None:
    right = np.zeros((17, 3))
    right[:2, 2] = 1
    off = np.zeros((17, 2))
    off[1, 0] = 3.0
    off[5, 0] = 99.0
    expected = (1 + math.exp(-9 / (2 * (2 * SIGMAS[1]) ** 2 * 400))) / 2
    assert keypoint_similarity(off, right, 400.0) == pytest.approx(expected)


def _halves() -> tuple[np.ndarray, np.ndarray]:
    left = np.zeros((4, 4), bool)
    left[:, :2] = True
    return left, ~left


def test_crowds_and_void_are_neither_found_nor_missed() -> None:
    left, right = _halves()
    none = np.zeros((4, 4), bool)
    assert panoptic_record([Segment(0, left, False, True)], right, [(0, left), (1, right)]) == {"0": [1, 1, 0, 0]}
    crowd = [Segment(0, left, True, True)]
    assert panoptic_record(crowd, none, [(0, left)]) == {}
    assert panoptic_record(crowd, none, [(1, left)]) == {"1": [0, 0, 1, 0]}
    # Pixels of a find that are void do not count against it.
    assert panoptic_record([Segment(0, left, False, True)], right, [(0, left | right)]) == {"0": [1, 1, 0, 0]}


def test_stuff_of_one_class_is_one_segment_and_things_are_not() -> None:
    left, right = _halves()
    masks = np.where(np.stack([left, right]), 9.0, -9.0).astype(np.float32)
    logits = np.asarray([[6.0, 0.0], [6.0, 0.0]])
    assert [int(mask.sum()) for _, mask in find_segments(logits, masks, (4, 4), set())] == [8, 8]
    assert [int(mask.sum()) for _, mask in find_segments(logits, masks, (4, 4), {0})] == [16]
    assert find_segments(logits[:, ::-1], masks, (4, 4), set()) == []


@pytest.mark.slow
@pytest.mark.hf
def test_segments_are_those_of_transformers() -> None:
    import torch
    from transformers import MaskFormerImageProcessorPil
    from transformers.models.maskformer.modeling_maskformer import MaskFormerForInstanceSegmentationOutput

    rng = np.random.default_rng(5)
    for _ in range(5):
        logits = (rng.standard_normal((1, 12, 5)) * 4).astype(np.float32)
        masks = np.repeat(np.repeat(rng.standard_normal((1, 12, 3, 3)) * 6, 4, axis=2), 4, axis=3).astype(np.float32)
        given = MaskFormerForInstanceSegmentationOutput(
            class_queries_logits=torch.from_numpy(logits), masks_queries_logits=torch.from_numpy(masks)
        )
        right = MaskFormerImageProcessorPil().post_process_panoptic_segmentation(
            given, target_sizes=[(20, 24)], label_ids_to_fuse={0, 1}
        )[0]
        theirs = {(s["label_id"], int((right["segmentation"] == s["id"]).sum())) for s in right["segments_info"]}
        mine = {(n, int(m.sum())) for n, m in find_segments(logits[0].astype(np.float64), masks[0], (20, 24), {0, 1})}
        assert mine == theirs


def test_as_many_numbers_as_classes_are_shares_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"id2label": {"0": "cat", "1": "dog"}}))
    label = [{"bbox": [0, 0, 10, 10], "category": "cat"}, {"bbox": [0, 0, 10, 10], "category": "dog"}]
    sample = Sample({}, label, size=(10, 20))
    boxes = [[[0.25, 0.5, 0.5, 1.0]]]
    both = scored("object-detection", {"logits": [[[3.0, 2.0]]], "pred_boxes": boxes}, sample, tmp_path)
    found = both.values["boxes"]
    assert found["0"]["found"][0][0] == pytest.approx(1 / (1 + math.exp(-3)))
    assert found["1"]["found"][0][0] == pytest.approx(1 / (1 + math.exp(-2)))
    # With one number more the last is no class, and a query has one class.
    one = scored("object-detection", {"logits": [[[3.0, 2.0, 0.0]]], "pred_boxes": boxes}, sample, tmp_path)
    assert one.values["boxes"]["1"]["found"] == []


def test_a_search_that_was_stopped_gives_nothing_and_a_text_without_direction_is_not_found() -> None:
    scorer = TASKS["retrieval"].scorer(Setting(("sentence_embedding",), None))
    assert isinstance(scorer, LateScorer)
    for vector, about, label in (
        ([1.0, 0.0], {"query": "q"}, {"b": 1.0}),
        ([0.0, 0.0], {"text": "a"}, None),
        ([1.0, 1.0], {"text": "b"}, None),
    ):
        scorer.score(Sample({}, label, about=about), [{"sentence_embedding": np.asarray([vector])}])
    assert list(scorer.finish(complete=False)) == []
    assert [(s.values["rank"], s.prediction) for s in scorer.finish(complete=True)] == [(1.0, "b")]


def test_a_passage_of_two_classes_is_ranked_by_the_second() -> None:
    scorer = TASKS["reranking"].scorer(Setting(("logits",), None))
    runs = [{"logits": np.asarray([[0.0, 1.0]])}, {"logits": np.asarray([[5.0, 2.0]])}]
    assert scorer.score(Sample({}, [1.0, 0.0]), runs).values == {"rank": 1.0, "ndcg": 1.0}
    with pytest.raises(DataError, match="has 3 numbers"):
        scorer.score(Sample({}, [1.0]), [{"logits": np.zeros((1, 3))}])

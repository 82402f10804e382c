from __future__ import annotations

import math
from typing import Any

import pytest

from winml.modelkit.core.intervals import wilson_interval
from winml.modelkit.core.latency import Interval
from winml.modelkit.evaluation import checks
from winml.modelkit.evaluation.corpus import Records
from winml.modelkit.evaluation.metrics import SCALED, Estimate, Metric, estimate, estimate_drop

ACCURACY = Metric("accuracy", "share", "top1")
F1 = Metric("f1", "mean", "f1")
SPEARMAN = Metric("spearman", "spearman", "similarity")


def test_a_share_has_wilsons_interval() -> None:
    found = estimate(ACCURACY, {"top1": [1.0] * 497 + [0.0] * 3})
    assert (found.value, found.n, found.method) == (0.994, 500, "wilson")
    assert (found.interval.low, found.interval.high) == wilson_interval(0.994, 500)


def test_seven_hundredths_of_a_point_are_no_drop_and_seven_points_are() -> None:
    reference = [1.0] * 9000 + [0.0] * 1000
    for lost, clear in ((7, False), (700, True)):
        candidate = [0.0] * lost + reference[lost:]
        found = estimate_drop(ACCURACY, {"top1": reference}, {"top1": candidate})
        assert found.value == pytest.approx(lost / 10_000)
        assert (found.interval.low > 0.05) == clear
        assert checks.judge_drop(found, 0.05, "interval") == ("exceeded" if clear else "within")


def _drop(count: int, worse: int, better: int) -> Estimate:
    reference = [1.0] * (count - better) + [0.0] * better
    candidate = [0.0] * worse + [1.0] * (count - worse)
    return estimate_drop(ACCURACY, {"top1": reference}, {"top1": candidate})


def test_only_samples_that_the_models_differ_on_count() -> None:
    """500 equal answers rule out a drop of one point whatever the accuracy is; 20 do not, and say how many would."""
    for right in (500, 440, 0):
        scores = {"top1": [1.0] * right + [0.0] * (500 - right)}
        found = estimate_drop(ACCURACY, scores, scores)
        assert (found.worse, found.better, found.value) == (0, 0, 0.0)
        assert checks.judge_drop(found, 0.01, "interval") == "within"
    few = _drop(20, 0, 0)
    assert checks.judge_drop(few, 0.01, "interval") == "inconclusive"
    needed = checks.samples_needed(few, 0.01)
    assert needed is not None
    assert checks.judge_drop(_drop(needed, 0, 0), 0.01, "interval") == "within"
    assert checks.judge_drop(_drop(needed - 1, 0, 0), 0.01, "interval") == "inconclusive"


def test_the_samples_that_would_decide_decide() -> None:
    found = _drop(500, 4, 2)
    assert (found.worse, found.better) == (4, 2)
    needed = checks.samples_needed(found, 0.01)
    assert needed is not None
    factor = -(-needed // 500)
    assert checks.judge_drop(_drop(500 * factor, 4 * factor, 2 * factor), 0.01, "interval") == "within"
    assert checks.samples_needed(_drop(500, 6, 1), 0.01) is None  # it lies on the limit itself


@pytest.mark.parametrize("metric", [F1, SPEARMAN])
def test_other_metrics_say_how_many_samples_would_decide_too(metric: Metric) -> None:
    series = {"similarity": [0.1, 0.4, 0.2, 0.8, 0.6, 0.5] * 5, "gold": [1, 3, 2, 4, 5, 2.5] * 5, "f1": [0.5, 1.0] * 15}
    needed = checks.samples_needed(estimate(metric, series), estimate(metric, series).value - 0.01)
    assert needed is not None
    assert needed > 30


def test_means_that_never_vary_still_have_an_interval() -> None:
    found = estimate(F1, {"f1": [1.0] * 50})
    assert found.interval.low == pytest.approx(wilson_interval(1.0, 50)[0])
    same = estimate_drop(F1, {"f1": [0.5, 1.0] * 25}, {"f1": [0.5, 1.0] * 25})
    assert (same.value, same.method) == (0.0, "wilson")
    assert same.interval.low == -same.interval.high < 0


def test_a_drop_of_means_is_taken_pair_by_pair() -> None:
    reference = [i / 100 for i in range(100)]
    found = estimate_drop(
        F1, {"f1": reference}, {"f1": [v - (0.02 if i % 2 else 0.0) for i, v in enumerate(reference)]}
    )
    assert found.value == pytest.approx(0.01)
    assert found.interval.high - found.interval.low < 0.01


def test_a_correlation_that_is_not_there_is_unknown_with_the_reason() -> None:
    constant = estimate(SPEARMAN, {"similarity": [0.5] * 5, "gold": [1, 2, 3, 4, 5]})
    assert (constant.value, constant.interval) == (None, None)
    assert "same for all samples" in constant.reason
    few = estimate(SPEARMAN, {"similarity": [0.1, 0.2, 0.3], "gold": [1, 2, 3]})
    assert (few.value, few.interval) == (pytest.approx(1.0), None)
    assert "at least 4" in few.reason


def test_a_drop_of_correlations_is_zero_around_for_equal_models() -> None:
    series = {"similarity": [0.1, 0.4, 0.2, 0.8, 0.6, 0.5], "gold": [1, 3, 2, 4, 5, 2.5]}
    found = estimate_drop(SPEARMAN, series, series)
    assert found.value == 0.0
    assert found.interval.low < 0.0 < found.interval.high
    unknown = estimate_drop(SPEARMAN, series, {**series, "similarity": [0.0] * 6})
    assert (unknown.value, checks.judge_drop(unknown, 0.1, "interval")) == (None, "inconclusive")


def _found(value: float | None, low: float | None = None, high: float = 0.0) -> Estimate:
    interval = None if low is None else Interval(low=low, high=high, level=0.95)
    return Estimate(value=value, interval=interval, n=100, method="wilson", reason=None)


@pytest.mark.parametrize(
    ("found", "limit", "by", "answer"),
    [
        (_found(0.02, 0.011, 0.03), 0.01, "interval", "exceeded"),
        (_found(0.02, 0.01, 0.03), 0.01, "interval", "inconclusive"),
        (_found(0.0, -0.01, 0.01), 0.01, "interval", "within"),
        (_found(0.0, -0.01, 0.011), 0.01, "interval", "inconclusive"),
        (_found(0.02), 0.01, "interval", "inconclusive"),
        (_found(0.02), 0.01, "value", "exceeded"),
        (_found(0.01, -0.5, 0.5), 0.01, "value", "within"),
        (_found(None), 0.01, "value", "inconclusive"),
    ],
)
def test_a_drop_is_within_beyond_or_open(found: Estimate, limit: float, by: Any, answer: str) -> None:
    assert checks.judge_drop(found, limit, by) == answer


@pytest.mark.parametrize(
    ("found", "limit", "by", "answer"),
    [
        (_found(0.9, 0.88, 0.92), 0.93, "interval", "exceeded"),
        (_found(0.9, 0.88, 0.92), 0.92, "interval", "inconclusive"),
        (_found(0.9, 0.88, 0.92), 0.9, "interval", "inconclusive"),
        (_found(0.9, 0.88, 0.92), 0.88, "interval", "within"),
        (_found(0.9, 0.88, 0.92), 0.9, "value", "within"),
        (_found(0.9, 0.88, 0.92), 0.901, "value", "exceeded"),
        (_found(None), 0.5, "interval", "inconclusive"),
    ],
)
def test_a_metric_is_high_enough_too_low_or_open(found: Estimate, limit: float, by: Any, answer: str) -> None:
    assert checks.judge_metric(found, limit, by) == answer


ENTITY_F1 = Metric("f1", "ratio", "matched", ("predicted", "expected"))
WER = Metric("wer", "ratio", "errors", ("words",), lower=True)


def test_a_ratio_is_of_sums_and_not_the_mean_of_ratios() -> None:
    series = {"matched": [1.0, 4.0] * 4, "predicted": [1.0, 8.0] * 4, "expected": [4.0, 7.0] * 4}
    assert estimate(ENTITY_F1, series).value == pytest.approx(2 * 5 / (9 + 11))


def test_a_ratio_has_the_interval_of_its_samples() -> None:
    words = [10.0 + i % 7 for i in range(200)]
    errors = [float(i % 3 == 0) * (1 + i % 2) for i in range(200)]
    found = estimate(WER, {"errors": errors, "words": words})
    assert found.method == "jackknife"
    # The spread of a ratio, linearised: residuals over the mean whole.
    ratio = sum(errors) / sum(words)
    residuals = [e - ratio * w for e, w in zip(errors, words, strict=True)]
    spread = (sum(r * r for r in residuals) / 199 / 200) ** 0.5 / (sum(words) / 200)
    assert found.interval.high - found.value == pytest.approx(1.96 * spread, rel=0.3)


def test_words_that_are_more_often_wrong_are_a_drop() -> None:
    words = [10.0] * 40
    before, after = [float(i % 4 == 0) for i in range(40)], [float(i % 2 == 0) for i in range(40)]
    found = estimate_drop(WER, {"errors": before, "words": words}, {"errors": after, "words": words})
    assert found.value == pytest.approx(0.025)
    assert found.interval.low > 0
    assert found.method == "paired-jackknife"


def test_without_a_spread_the_interval_is_what_was_not_met() -> None:
    words = {"words": [10.0] * 40, "errors": [0.0] * 40}
    found = estimate(WER, words)
    assert (found.value, found.interval.low, found.method) == (0.0, 0.0, "wilson")
    assert found.interval.high == pytest.approx(wilson_interval(0.0, 40)[1])
    same = estimate_drop(WER, words, words)
    assert same.interval.low == -same.interval.high < 0


def test_areas_are_summed_over_images_before_they_are_divided() -> None:
    metric = Metric("mean_iou", "mean_iou", "overlap")
    found = estimate(metric, {"overlap": [{"0": [1, 2]}, {"0": [9, 10], "4": [0, 5]}] * 4})
    assert found.value == pytest.approx((10 / 12 + 0) / 2)
    assert found.interval.low < found.value < found.interval.high <= 1.0


def test_few_samples_or_nothing_to_find_have_no_interval() -> None:
    few = estimate(WER, {"errors": [1.0, 0.0], "words": [3.0, 4.0]})
    assert (few.value, few.interval) == (pytest.approx(1 / 7), None)
    nothing = estimate(ENTITY_F1, {"matched": [0.0] * 9, "predicted": [0.0] * 9, "expected": [0.0] * 9})
    assert (nothing.value, nothing.reason) == (None, "the samples hold nothing to find")
    once = {"matched": [1.0] + [0.0] * 8, "predicted": [1.0] + [0.0] * 8, "expected": [1.0] + [0.0] * 8}
    assert estimate(ENTITY_F1, once).reason == "all there is to find is in a few samples"


ERROR = Metric("mae", "number", "error", lower=True)
DECIBELS = Metric("psnr_db", "number", "error")


def test_numbers_on_a_scale_of_their_own_have_a_mean_with_a_bootstrap() -> None:
    found = estimate(ERROR, {"error": [1.0, 2.0, 3.0, 50.0]})
    assert (found.value, found.method) == (14.0, "bootstrap")
    assert found.interval is not None
    assert 1.0 <= found.interval.low < 14 < found.interval.high <= 50.0
    same = estimate(ERROR, {"error": [4.0] * 10})
    assert same.interval is not None
    # One kind of sample in so many may be off by as much as the number itself.
    assert same.interval.high - 4 == pytest.approx(4 * wilson_interval(0.0, 10)[1])
    nothing = estimate(ERROR, {"error": [0.0] * 10})
    assert (nothing.value, nothing.interval) == (0.0, None)
    unknown = estimate(ERROR, {"error": [1.0, None]})
    assert (unknown.value, unknown.reason) == (None, "1 of 2 samples gave no number")


def test_more_error_is_a_drop_and_more_decibels_are_none() -> None:
    series = ({"error": [1.0, 2.0, 4.0]}, {"error": [2.0, 4.0, 5.0]})
    assert estimate_drop(ERROR, *series).value == pytest.approx(4 / 3)
    assert estimate_drop(DECIBELS, *series).value == pytest.approx(-4 / 3)
    equal = estimate_drop(ERROR, series[0], series[0])
    assert equal.value == 0
    assert equal.interval is not None
    assert equal.interval.high == pytest.approx(4 * wilson_interval(0.0, 3, level=0.9)[1])
    # By how many samples it would be known that the drop is below 0.5: 4 times the share that may be unseen.
    needed = checks.samples_needed(equal, 0.5)
    assert needed is not None
    assert 4 * wilson_interval(0.0, needed, level=0.9)[1] <= 0.5 < 4 * wilson_interval(0.0, needed - 1, level=0.9)[1]
    assert estimate_drop(ERROR, series[0], {"error": [1.0, None, 4.0]}).value is None


def test_perplexity_is_of_all_words_together() -> None:
    metric = Metric("perplexity", "perplexity", "loss", ("gaps",), lower=True)
    series = {"loss": [math.log(2.0) * 3, math.log(4.0)] * 4, "gaps": [3.0, 1.0] * 4}
    assert estimate(metric, series).value == pytest.approx(2 ** ((3 + 2) / 4))


def test_r_squared_is_against_the_mean_and_leaves_out_what_does_not_vary() -> None:
    metric = Metric("r2", "r2", "pairs")
    right, predicted = [1.0, 2.0, 3.0, 6.0], [1.0, 2.0, 4.0, 5.0]
    pairs = [[[r, p], [7.0, 0.0]] for r, p in zip(right, predicted, strict=True)]
    assert estimate(metric, {"pairs": pairs}).value == pytest.approx(1 - 2 / 14)
    broken = estimate(metric, {"pairs": [*pairs, [[1.0, None], [7.0, None]]]})
    assert (broken.value, broken.reason) == (None, "some samples gave no number")


def test_panoptic_quality_is_a_mean_over_classes() -> None:
    metric = Metric("pq", "pq", "segments")
    records = [{"0": [0.8, 1, 0, 0]}, {"0": [0.0, 0, 1, 1], "1": [0.9, 1, 0, 1]}]
    assert estimate(metric, {"segments": records}).value == pytest.approx((0.8 / 2 + 0.9 / 1.5) / 2)


SCORE = Metric("mine", "score", "mine")
TOTAL = Metric("mine", "total", "mine")
BOUNDED = Metric("mine", "total", "mine", bounds=(0.0, 100.0))


def records(value: float | None, count: int = 10) -> Records:
    """Samples whose `total` is always the same."""
    return Records(range(count), lambda kept: {"mine": value})


@pytest.mark.parametrize(
    ("found", "limit"),
    [
        (estimate(SCORE, {"mine": [5.0] * 10}), 4.9),
        (estimate_drop(SCORE, {"mine": [8.0] * 10}, {"mine": [5.0] * 10}), 3.1),
        (estimate(TOTAL, {"mine": records(5.0)}), 4.9),
        (estimate(TOTAL, {"mine": records(-5.0)}), -5.1),
        (estimate(TOTAL, {"mine": records(1.0)}), 0.9),
        (estimate_drop(TOTAL, {"mine": records(8.0)}, {"mine": records(5.0)}), 3.1),
        (estimate(BOUNDED, {"mine": records(100.0)}), 99.0),
    ],
)
def test_equal_scores_on_a_scale_of_their_own_say_how_many_samples_would_decide(found: Estimate, limit: float) -> None:
    assert found.method == SCALED
    assert found.interval is not None
    assert found.value is not None
    assert found.interval.low <= limit <= found.interval.high
    needed = checks.samples_needed(found, limit)
    assert needed is not None
    # The interval becomes narrower with what may be unseen in so many samples.
    level = found.interval.level
    seen = wilson_interval(0.0, 10, level=level)[1]
    width = max(found.interval.high - found.value, found.value - found.interval.low) / seen
    distance = abs(found.value - limit)
    assert width * wilson_interval(0.0, needed, level=level)[1] <= distance
    assert width * wilson_interval(0.0, needed - 1, level=level)[1] > distance - 1e-9


def test_a_metric_of_all_samples_without_a_value_says_why() -> None:
    auc = Metric("auc", "auc", "numbers", ("labels",))
    one_class = {"numbers": [[0.1], [0.7]] * 4, "labels": [[1], [1]] * 4}
    both = {"numbers": [[0.1], [0.7]] * 4, "labels": [[0], [1]] * 4}
    assert estimate(auc, one_class).reason == "all labels are the same"
    assert estimate_drop(auc, both, one_class).reason == "all labels are the same"
    unknown, known = {"mine": records(None)}, {"mine": records(2.0)}
    said = "`total` gave no number for these 10 samples"
    assert estimate(TOTAL, unknown).reason == said
    assert [estimate_drop(TOTAL, *pair).reason for pair in ((unknown, known), (known, unknown))] == [said, said]

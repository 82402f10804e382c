"""Ranges from histograms."""

from __future__ import annotations

import numpy as np
import pytest

from winml.modelkit.stages.quantize.thresholds import BINS, Histogram, Range, entropy, percentile


def histogram(values: np.ndarray) -> Histogram:
    low, high = float(values.min()), float(values.max())
    return Histogram(Range(low, high), np.histogram(values, BINS, (low, high))[0].astype(np.int64))


NORMAL = np.random.default_rng(0).standard_normal(200_000)


def test_all_values_are_the_whole_range() -> None:
    made = histogram(NORMAL)
    found = percentile(made, 100.0)
    assert found.low == pytest.approx(made.range.low)
    assert found.high == pytest.approx(made.range.high)


def test_a_percentile_cuts_both_sides_alike() -> None:
    found = percentile(histogram(NORMAL), 98.0)
    assert found.low == pytest.approx(np.percentile(NORMAL, 1), abs=0.01)
    assert found.high == pytest.approx(np.percentile(NORMAL, 99), abs=0.01)


def test_entropy_cuts_an_outlier_and_keeps_the_body() -> None:
    found = entropy(histogram(np.append(NORMAL, 100.0)))
    assert 3.0 < found.high < 30.0
    assert found.low == NORMAL.min()


def test_entropy_does_not_give_in_to_zeros() -> None:
    rectified = np.maximum(NORMAL, 0.0)
    assert entropy(histogram(rectified)).high > 2.0


def test_a_uniform_range_is_kept() -> None:
    values = np.random.default_rng(0).random(100_000)
    assert entropy(histogram(values)).high > 0.95

"""Ranges from histograms."""

from __future__ import annotations

import numpy as np
import pytest

from winml.modelkit.building.quantize.thresholds import (
    SIDE,
    Collector,
    Histogram,
    Range,
    entropy,
    least_error,
    percentile,
)


def histogram(*parts: np.ndarray) -> Histogram:
    collector = Collector()
    for part in parts:
        collector.add(part, limit=1e30)
    return collector.histogram()


NORMAL = np.random.default_rng(0).standard_normal(200_000)


def test_all_values_are_the_whole_range() -> None:
    made = histogram(NORMAL)
    assert percentile(made, 100.0) == made.range
    assert made.range.low == pytest.approx(NORMAL.min(), abs=made.width)
    assert made.range.high == pytest.approx(NORMAL.max(), abs=made.width)


def test_a_histogram_does_not_depend_on_the_order_its_values_come_in() -> None:
    parts = [NORMAL * scale for scale in (0.001, 1.0, 50.0, 0.1)]
    forth, back = histogram(*parts), histogram(*reversed(parts))
    assert forth.range == back.range
    assert np.abs(forth.counts - back.counts).sum() < 0.002 * forth.counts.sum()  # rounding beside an edge
    assert forth.counts.sum() == 4 * NORMAL.size
    assert len(forth.counts) > SIDE / 2


def test_bins_are_those_of_numpy() -> None:
    made = histogram(NORMAL)
    expected, _ = np.histogram(NORMAL, len(made.counts), (made.range.low, made.range.high))
    assert np.abs(made.counts - expected).sum() < 0.001 * NORMAL.size


@pytest.mark.parametrize("values", [np.zeros(5), np.full(5, 4.0), np.full(5, -1e-35), np.array([-2.0, 2.0])])
def test_values_on_the_edge_are_counted(values: np.ndarray) -> None:
    assert histogram(values.astype(np.float32)).counts.sum() == len(values)


def test_a_percentile_cuts_both_sides_alike() -> None:
    found = percentile(histogram(NORMAL), 98.0)
    assert found.low == pytest.approx(np.percentile(NORMAL, 1), abs=0.01)
    assert found.high == pytest.approx(np.percentile(NORMAL, 99), abs=0.01)


def test_entropy_cuts_an_outlier_and_keeps_the_body() -> None:
    found = entropy(histogram(np.append(NORMAL, 100.0)))
    assert 3.0 < found.high < 30.0
    assert found.low < -3.0


def test_entropy_does_not_give_in_to_zeros() -> None:
    rectified = np.maximum(NORMAL, 0.0)
    assert entropy(histogram(rectified)).high > 2.0


def test_a_uniform_range_is_kept() -> None:
    values = np.random.default_rng(0).random(100_000)
    assert entropy(histogram(values)).high > 0.95


def squared_error(values: np.ndarray, found: Range, levels: int = 256) -> float:
    """What quantizing values to a range really loses."""
    low, high = min(found.low, 0.0), max(found.high, 0.0)
    step = (high - low) / (levels - 1)
    zero = np.round(-low / step)
    shown = (np.clip(np.round(values / step), -zero, levels - 1 - zero)) * step
    return float(((values - shown) ** 2).mean())


@pytest.mark.parametrize(
    "values",
    [NORMAL, np.maximum(NORMAL, 0.0), NORMAL**3, np.append(NORMAL, [60.0] * 3), np.append(NORMAL, [-90.0, 25.0])],
    ids=["normal", "relu", "heavy tails", "outliers above", "outliers on both sides"],
)
def test_the_least_error_is_less_than_that_of_any_other_method(values: np.ndarray) -> None:
    made = histogram(values.astype(np.float32))
    whole = Range(float(values.min()), float(values.max()))
    found = squared_error(values, least_error(made, levels=256, symmetric=False))
    others = [squared_error(values, rival) for rival in (whole, percentile(made, 99.99), entropy(made))]
    assert found <= 1.05 * min(others)
    assert found <= squared_error(values, whole)


def test_the_least_error_cuts_one_side_alone() -> None:
    found = least_error(histogram(np.append(NORMAL, [60.0])), levels=256, symmetric=False)
    assert 30.0 < found.high < 55.0
    assert NORMAL.min() <= found.low < -3.0


def test_the_least_error_of_symmetric_ranges_is_symmetric() -> None:
    found = least_error(histogram(np.append(NORMAL, [60.0])), levels=256, symmetric=True)
    assert found.low == -found.high
    assert found.high < 30.0


def test_16_bits_have_steps_enough_for_an_outlier() -> None:
    made = histogram(np.append(NORMAL, [60.0]))
    assert least_error(made, levels=65536, symmetric=False).high > 30.0

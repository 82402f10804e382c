from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winml.modelkit.render.figures.scale import Scale, log_range, log_ticks, padded_range, round_ticks, tick_labels


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 10.0, ["0", "2", "4", "6", "8", "10"]),
        (0.9812, 0.9951, ["0.9825", "0.9850", "0.9875", "0.9900", "0.9925", "0.9950"]),
        (-35.0, 60.0, ["-20", "0", "20", "40", "60"]),
        (0.0, 1_234_567.0, ["0", "250,000", "500,000", "750,000", "1,000,000"]),
    ],
)
def test_ticks_are_round_numbers(low: float, high: float, expected: list[str]) -> None:
    assert tick_labels(round_ticks(low, high)) == expected


def test_a_long_logarithmic_axis_has_powers_of_ten_and_a_short_one_even_steps() -> None:
    assert log_ticks(0.5, 30.0) == [0.5, 1.0, 2.0, 5.0, 10.0, 20.0]
    assert log_ticks(0.5, 900.0) == [1.0, 3.0, 10.0, 30.0, 100.0, 300.0]
    assert log_ticks(0.001, 1e6) == [0.001, 0.1, 10.0, 1000.0, 100000.0]
    assert log_ticks(0.7, 2.2) == [0.75, 1.0, 1.25, 1.5, 1.75, 2.0]


finite = st.floats(-1e9, 1e9, allow_nan=False)


@given(st.lists(finite, min_size=1, max_size=20))
def test_every_number_and_every_tick_lies_on_the_axis(values: list[float]) -> None:
    low, high = padded_range(values)
    scale = Scale(low, high, 10.0, 500.0)
    assert all(10.0 <= scale.at(value) <= 500.0 for value in values)
    ticks = scale.ticks()
    assert 1 <= len(ticks) <= 6
    assert all(9.9 <= scale.at(tick) <= 500.1 for tick in ticks)


@given(st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=20))
def test_every_number_and_every_tick_lies_on_a_logarithmic_axis(values: list[float]) -> None:
    low, high = log_range(values)
    scale = Scale(low, high, 10.0, 500.0, log=True)
    assert all(10.0 <= scale.at(value) <= 500.0 for value in values)
    assert all(9.9 <= scale.at(tick) <= 500.1 for tick in scale.ticks())


@given(st.lists(finite, min_size=2, max_size=6, unique=True))
def test_labels_tell_ticks_apart(values: list[float]) -> None:
    ticks = round_ticks(*padded_range(values))
    assert len(set(tick_labels(ticks))) == len(ticks)


def test_numbers_that_are_none_do_not_count() -> None:
    assert padded_range([1.0, math.inf, math.nan, 2.0]) == pytest.approx((0.94, 2.06))
    assert padded_range([]) == (0.0, 1.0)
    assert log_range([0.0, -1.0]) == (0.1, 10.0)

"""Statistics against numpy, printed t tables, closed forms and a simulation."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from winml.modelkit.core.statistics import (
    f_quantile,
    incomplete_beta,
    log_t_interval,
    mean,
    median,
    percentile,
    std,
    t_cdf,
    t_quantile,
)

VALUES = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=40)
SHARES = st.floats(0.001, 0.999)
DEGREES = st.floats(0.5, 200.0)
ROUNDING = 1e-8
"""Near its middle the distribution is computed from 1 - t²/df, which rounds to 1 for t below 1e-8."""


def close_to(value: float, values: list[float]) -> object:
    """Equal up to rounding at the size of the values it was computed from."""
    return pytest.approx(value, rel=1e-9, abs=1e-9 * max(1.0, *map(abs, values)))


@settings(deadline=None)
@given(VALUES, st.floats(0.0, 1.0))
def test_percentile_is_that_of_numpy(values: list[float], share: float) -> None:
    assert percentile(sorted(values), share) == close_to(float(np.quantile(values, share)), values)


def test_percentile_is_linear_between_neighbours() -> None:
    assert [percentile([10, 20, 40], share) for share in (0.0, 0.25, 0.5, 0.75, 1.0)] == [10, 15, 20, 30, 40]


def test_percentile_of_one_value_is_that_value() -> None:
    assert [percentile([7], share) for share in (0.0, 0.5, 0.99, 1.0)] == [7, 7, 7, 7]


def test_percentile_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="percentile of nothing"):
        percentile([], 0.5)


@settings(deadline=None)
@given(VALUES)
def test_median_mean_and_std_are_those_of_numpy(values: list[float]) -> None:
    assert median(values) == close_to(float(np.median(values)), values)
    assert mean(values) == close_to(float(np.mean(values)), values)
    if len(values) > 1:
        assert std(values) == close_to(float(np.std(values, ddof=1)), values)


def test_median_does_not_depend_on_order() -> None:
    assert median([9, 1, 5]) == 5
    assert median([9, 1, 5, 3]) == 4


def test_mean_adds_without_losing_small_values() -> None:
    assert mean([1e16, 1.0, -1e16]) == pytest.approx(1 / 3)


def test_std_of_fewer_than_two_values_is_unknown_rather_than_zero() -> None:
    assert std([]) is None
    assert std([3.0]) is None
    assert std([3.0, 3.0]) == 0.0


# Rows of a printed table of Student's distribution.
T_TABLE = [
    (0.9, {1: 3.078, 2: 1.886, 3: 1.638, 5: 1.476, 10: 1.372, 30: 1.310, 120: 1.289}),
    (0.975, {1: 12.706, 2: 4.303, 3: 3.182, 5: 2.571, 10: 2.228, 30: 2.042, 120: 1.980}),
    (0.995, {1: 63.657, 2: 9.925, 3: 5.841, 5: 4.032, 10: 3.169, 30: 2.750, 120: 2.617}),
]


@pytest.mark.parametrize(
    ("share", "df", "expected"), [(share, df, t) for share, row in T_TABLE for df, t in row.items()]
)
def test_t_quantile_is_that_of_the_printed_table(share: float, df: int, expected: float) -> None:
    assert t_quantile(share, df) == pytest.approx(expected, abs=5.1e-4)


def test_t_quantile_nears_the_normal_quantile_for_many_degrees_of_freedom() -> None:
    assert t_quantile(0.975, 1e5) == pytest.approx(1.959964, abs=5e-5)


@settings(deadline=None)
@given(SHARES, DEGREES)
def test_t_cdf_undoes_t_quantile(share: float, df: float) -> None:
    assert t_cdf(t_quantile(share, df), df) == pytest.approx(share, abs=ROUNDING)


@settings(deadline=None)
@given(SHARES, DEGREES)
def test_t_quantile_is_symmetric_about_zero(share: float, df: float) -> None:
    assert t_quantile(share, df) == pytest.approx(-t_quantile(1 - share, df), rel=1e-6, abs=10 * ROUNDING)


def test_t_quantile_of_one_half_is_zero() -> None:
    assert t_quantile(0.5, 3) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(("share", "df"), [(0.0, 3), (1.0, 3), (-0.1, 3), (1.1, 3), (math.nan, 3), (0.9, 0), (0.9, -1)])
def test_t_quantile_outside_its_domain_is_an_error(share: float, df: float) -> None:
    with pytest.raises(ValueError, match="is defined for"):
        t_quantile(share, df)


@settings(deadline=None)
@given(st.floats(-1e6, 1e6))
def test_t_cdf_has_its_closed_form_for_one_and_two_degrees_of_freedom(t: float) -> None:
    assert t_cdf(t, 1) == pytest.approx(0.5 + math.atan(t) / math.pi, abs=ROUNDING)
    assert t_cdf(t, 2) == pytest.approx(0.5 + t / (2 * math.sqrt(2 + t * t)), abs=ROUNDING)


@settings(deadline=None)
@given(st.floats(0.5, 50), st.floats(0.5, 50), st.floats(0.001, 0.999))
def test_incomplete_beta_is_a_share_and_mirrors_itself(a: float, b: float, x: float) -> None:
    value = incomplete_beta(a, b, x)
    assert -1e-12 <= value <= 1 + 1e-12
    assert value == pytest.approx(1 - incomplete_beta(b, a, 1 - x), abs=1e-9)


@pytest.mark.parametrize("x", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_incomplete_beta_has_its_closed_forms(x: float) -> None:
    assert incomplete_beta(1, 1, x) == pytest.approx(x)
    assert incomplete_beta(3, 1, x) == pytest.approx(x**3)
    assert incomplete_beta(1, 2, x) == pytest.approx(1 - (1 - x) ** 2)


@pytest.mark.parametrize(
    ("share", "df1", "df2", "expected"),
    [
        (0.95, 1, 10, 4.965),
        (0.95, 5, 10, 3.326),
        (0.95, 10, 30, 2.165),
        (0.99, 2, 5, 13.274),
        (0.99, 5, 10, 5.636),
        (0.5, 7, 7, 1.0),
    ],
)
def test_f_quantile_is_that_of_the_printed_table(share: float, df1: int, df2: int, expected: float) -> None:
    assert f_quantile(share, df1, df2) == pytest.approx(expected, abs=5.1e-4)


@settings(deadline=None, max_examples=50)
@given(st.floats(0.51, 0.999), st.floats(1, 100))
def test_f_with_one_degree_of_freedom_is_t_squared(share: float, df: float) -> None:
    assert f_quantile(2 * share - 1, 1, df) == pytest.approx(t_quantile(share, df) ** 2, rel=1e-6)


@settings(deadline=None, max_examples=50)
@given(st.floats(0.01, 0.99), st.floats(1, 100), st.floats(1, 100))
def test_f_quantile_turns_over_when_its_degrees_of_freedom_change_places(share: float, df1: float, df2: float) -> None:
    assert f_quantile(share, df1, df2) == pytest.approx(1 / f_quantile(1 - share, df2, df1), rel=1e-6)


@pytest.mark.parametrize(("share", "df1", "df2"), [(0.0, 3, 3), (1.0, 3, 3), (0.9, 0, 3), (0.9, 3, 0), (0.9, 3, -1)])
def test_f_quantile_outside_its_domain_is_an_error(share: float, df1: float, df2: float) -> None:
    with pytest.raises(ValueError, match="is defined for"):
        f_quantile(share, df1, df2)


def test_interval_of_three_values_is_the_one_computed_by_hand() -> None:
    # The logs are -1, 0 and 1: mean 0, standard deviation 1, t 4.302653 for two degrees of freedom.
    half = 4.302653 / math.sqrt(3)
    low, high = log_t_interval([math.exp(-1), 1.0, math.exp(1)])
    assert low == pytest.approx(math.exp(-half), rel=1e-6)
    assert high == pytest.approx(math.exp(half), rel=1e-6)


def test_interval_of_equal_values_is_that_value() -> None:
    assert log_t_interval([8.0, 8.0, 8.0]) == pytest.approx((8.0, 8.0))


def test_interval_is_wider_for_a_higher_level() -> None:
    values = [8.0, 8.4, 8.1, 8.3]
    low_90, high_90 = log_t_interval(values, level=0.90)
    low_99, high_99 = log_t_interval(values, level=0.99)
    assert low_99 < low_90 < high_90 < high_99


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(0.1, 10.0), min_size=3, max_size=8), st.floats(1e-3, 1e3))
def test_interval_scales_with_its_values_so_that_the_unit_does_not_matter(values: list[float], factor: float) -> None:
    low, high = log_t_interval(values)
    assert log_t_interval([factor * v for v in values]) == pytest.approx((factor * low, factor * high), rel=1e-6)


def test_interval_of_one_value_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least two values"):
        log_t_interval([8.0])


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_interval_of_a_value_that_is_not_positive_is_an_error(value: float) -> None:
    with pytest.raises(ValueError):
        log_t_interval([8.0, value, 8.1])


def test_interval_covers_the_true_geometric_mean_as_often_as_it_says() -> None:
    rng = random.Random(20)
    true_log, draws, covered = math.log(8.0), 2000, 0
    for _ in range(draws):
        low, high = log_t_interval([rng.lognormvariate(true_log, 0.05) for _ in range(5)])
        covered += low <= 8.0 <= high
    assert 0.935 <= covered / draws <= 0.965

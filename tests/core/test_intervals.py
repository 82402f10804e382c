"""Intervals against scipy's numbers, closed forms and simulations."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winml.modelkit.core.intervals import (
    bootstrap_interval,
    correlation_difference_interval,
    correlation_interval,
    normal_quantile,
    paired_difference_interval,
    pearson,
    ranks,
    spearman,
    wilson_interval,
)

X, Y = [1, 2, 3, 4, 5, 5, 7, 8.5], [2, 1, 4, 3, 7, 6, 8, 8]


@pytest.mark.parametrize(("share", "value"), [(0.975, 1.959963984540054), (0.5, 0.0), (0.001, -3.090232306167813)])
def test_normal_quantiles_are_scipys(share: float, value: float) -> None:
    assert normal_quantile(share) == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize(
    ("right", "count", "low", "high"),
    [
        (497, 500, 0.9825097478959467, 0.9979574037280398),
        (0, 10, 0.0, 0.27753279986288926),
        (10, 10, 0.7224672001371109, 1.0),
        (3, 7, 0.1582198552514697, 0.7495416354723428),
    ],
)
def test_wilson_intervals_are_scipys(right: int, count: int, low: float, high: float) -> None:
    assert wilson_interval(right / count, count) == pytest.approx((low, high), abs=1e-9)


def test_correlations_and_fishers_interval_are_scipys() -> None:
    assert ranks(X) == [1.0, 2.0, 3.0, 4.0, 5.5, 5.5, 7.0, 8.0]
    assert pearson(X, Y) == pytest.approx(0.9138528783912072)
    assert spearman(X, Y) == pytest.approx(0.9397590361445782)
    found = correlation_interval(0.9138528783912072, 8, by_rank=False)
    assert found == pytest.approx((0.5875303007095943, 0.9845242810797898))


def test_a_correlation_with_something_that_never_varies_is_unknown() -> None:
    assert pearson([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]) is None
    assert spearman([1.0, 2.0], [4.0, 4.0]) is None


def test_an_interval_of_ranks_is_wider_and_a_perfect_one_is_a_point() -> None:
    plain, by_rank = (correlation_interval(0.8, 50, by_rank=flag) for flag in (False, True))
    assert by_rank[0] < plain[0] < 0.8 < plain[1] < by_rank[1]
    assert correlation_interval(1.0, 50, by_rank=False) == (1.0, 1.0)
    with pytest.raises(ValueError, match="four pairs"):
        correlation_interval(0.5, 3, by_rank=False)


Counts = st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(0, 500)).filter(any)


@given(Counts)
def test_the_interval_of_a_difference_holds_it_and_turns_with_it(counts: tuple[int, int, int]) -> None:
    first, second, alike = counts
    count = first + second + alike
    low, high = paired_difference_interval(first, second, count)
    assert low <= (first - second) / count <= high
    assert paired_difference_interval(second, first, count) == pytest.approx((-high, -low), abs=1e-12)
    more = paired_difference_interval(first, second, count + 100)
    assert more[1] - more[0] < high - low


def test_the_ends_of_a_paired_difference_are_where_the_score_test_turns() -> None:
    """At both ends the score statistic of Tango (1998), with the likeliest nuisance found by search, is z."""
    first, second, count = 12, 2, 50

    def log_likelihood(share: float, difference: float) -> float:
        alike = 1 - 2 * share - difference
        if share <= 0 or share + difference <= 0 or alike <= 0:
            return -math.inf
        return (
            first * math.log(share + difference) + second * math.log(share) + (count - first - second) * math.log(alike)
        )

    for end, sign in zip(paired_difference_interval(first, second, count), (1, -1), strict=True):
        share = max((i / 100_000 for i in range(1, 50_000)), key=lambda s: log_likelihood(s, end))
        score = (first - second - count * end) / math.sqrt(count * (2 * share + end * (1 - end)))
        assert score == pytest.approx(sign * normal_quantile(0.975), abs=0.01)


def test_equal_answers_rule_out_a_drop_by_their_number() -> None:
    """About three or four parts in the number of samples: 500 rule out one point, 20 do not."""
    for count in (20, 500, 10_000):
        low, high = paired_difference_interval(0, 0, count)
        assert -low == pytest.approx(high)
        assert 3.0 < high * count < 4.0
    assert paired_difference_interval(0, 0, 500)[1] < 0.01 < paired_difference_interval(0, 0, 20)[1]


def _changed_answers(rng: random.Random, count: int, worse: float, better: float) -> tuple[int, int]:
    draws = [rng.random() for _ in range(count)]
    return sum(d < worse for d in draws), sum(worse <= d < worse + better for d in draws)


def test_a_true_drop_is_missed_no_more_often_than_stated() -> None:
    rng, draws = random.Random(4), 800
    covered = 0
    for _ in range(draws):
        low, high = paired_difference_interval(*_changed_answers(rng, 200, 0.05, 0.03), 200)
        covered += low <= 0.02 <= high
    assert covered / draws >= 0.935


@pytest.mark.parametrize(("correlate", "by_rank"), [(pearson, False), (spearman, True)])
def test_equal_correlations_are_seldom_called_different(
    correlate: Callable[[list[float], list[float]], float | None], by_rank: bool
) -> None:
    rng, draws, covered = random.Random(8), 300, 0
    for _ in range(draws):
        gold = [rng.gauss(0, 1) for _ in range(60)]
        shared = [g + rng.gauss(0, 0.8) for g in gold]
        one, two = ([s + rng.gauss(0, 0.3) for s in shared] for _ in range(2))
        values = [correlate(gold, one), correlate(gold, two), correlate(one, two)]
        assert None not in values
        low, high = correlation_difference_interval(*values, 60, by_rank=by_rank)  # type: ignore[arg-type]
        covered += low <= 0.0 <= high
    assert 0.92 <= covered / draws <= 0.99


def test_predictions_that_go_together_tell_more_about_their_difference() -> None:
    together, apart = (correlation_difference_interval(0.8, 0.8, r, 40, by_rank=False) for r in (1.0, 0.64))
    assert apart[0] < together[0] < 0.0 < together[1] < apart[1]
    assert correlation_difference_interval(1.0, 1.0, 1.0, 40, by_rank=True) == (0.0, 0.0)


def test_the_bootstrap_is_the_same_for_a_seed_and_about_a_t_interval() -> None:
    rng = random.Random(3)
    values = [rng.random() for _ in range(200)]
    low, high = bootstrap_interval(values, seed=1)
    assert (low, high) == bootstrap_interval(values, seed=1)
    assert (low, high) != bootstrap_interval(values, seed=2)
    middle, half = sum(values) / 200, 1.96 * math.sqrt(1 / 12 / 200)
    assert low == pytest.approx(middle - half, abs=0.012)
    assert high == pytest.approx(middle + half, abs=0.012)

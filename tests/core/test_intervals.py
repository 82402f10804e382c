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
    paired_share_interval,
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


Pairs = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60)


@given(Pairs)
def test_the_interval_of_a_difference_holds_it_and_turns_with_it(pairs: list[tuple[bool, bool]]) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    low, high = paired_share_interval(first, second)
    difference = (sum(first) - sum(second)) / len(pairs)
    assert low <= difference + 1e-12
    assert difference <= high + 1e-12
    assert paired_share_interval(second, first) == pytest.approx((-high, -low), abs=1e-12)


def test_newcombes_interval_by_hand() -> None:
    """Both right 20, first alone 12, second alone 2, none 16: phi = (320 - 24 - 25) / sqrt(32·18·22·28)."""
    first = [True] * 32 + [False] * 18
    second = [True] * 20 + [False] * 12 + [True] * 2 + [False] * 16
    (l1, u1), (l2, u2) = wilson_interval(0.64, 50), wilson_interval(0.44, 50)
    phi = 271 / math.sqrt(32 * 18 * 22 * 28)
    a, b, c, d = 0.64 - l1, u2 - 0.44, u1 - 0.64, 0.44 - l2
    low = 0.2 - math.sqrt(a * a + b * b - 2 * phi * a * b)
    high = 0.2 + math.sqrt(c * c + d * d - 2 * phi * c * d)
    assert paired_share_interval(first, second) == pytest.approx((low, high))


def _pairs_with_a_drop(rng: random.Random) -> tuple[list[bool], list[bool]]:
    first, second = [], []
    for _ in range(200):
        draw = rng.random()
        right = rng.random() < 0.9
        first.append(draw < 0.05 or (draw >= 0.08 and right))
        second.append(0.05 <= draw < 0.08 or (draw >= 0.08 and right))
    return first, second


def test_a_true_drop_is_missed_no_more_often_than_stated() -> None:
    rng, draws = random.Random(4), 800
    covered = 0
    for _ in range(draws):
        low, high = paired_share_interval(*_pairs_with_a_drop(rng))
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

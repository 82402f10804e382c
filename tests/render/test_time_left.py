from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winml.modelkit.render.time_left import Count, TimeLeft, estimate_left


@pytest.mark.parametrize(
    ("done", "total", "elapsed_s", "left_s"),
    [
        (1, 4, 10.0, 30.0),
        (3, 4, 30.0, 10.0),
        (4, 4, 40.0, 0.0),
        (5, 4, 40.0, 0.0),
        (0.5, 2, 5.0, 15.0),
    ],
    ids=["a quarter", "three quarters", "all", "more than all", "no whole numbers"],
)
def test_the_rest_takes_as_long_as_what_is_done(done: float, total: float, elapsed_s: float, left_s: float) -> None:
    assert estimate_left(done, total, elapsed_s) == left_s


@pytest.mark.parametrize(
    ("done", "total", "elapsed_s"),
    [(1, None, 10.0), (0, 4, 10.0), (2, 4, 0.5)],
    ids=["no total", "nothing done", "too short to know"],
)
def test_what_is_not_known_is_unknown(done: float, total: float | None, elapsed_s: float) -> None:
    assert estimate_left(done, total, elapsed_s) is None


def test_between_estimates_the_time_runs_down_with_the_clock() -> None:
    left = TimeLeft()
    left.correct(20.0, now=100.0)
    assert [left.left_s(100.0 + s) for s in (0, 1, 19)] == [20.0, 19.0, 1.0]


def test_an_estimate_that_has_run_out_is_unknown_and_never_negative() -> None:
    left = TimeLeft()
    left.correct(2.0, now=0.0)
    assert left.left_s(2.0) is None
    assert left.left_s(50.0) is None
    left.correct(7.0, now=50.0)
    assert left.left_s(50.0) == 7.0


def test_an_estimate_that_is_withdrawn_is_unknown() -> None:
    left = TimeLeft()
    left.correct(20.0, now=0.0)
    left.correct(None, now=1.0)
    assert left.left_s(1.0) is None


@given(st.lists(st.tuples(st.floats(0.01, 60.0), st.floats(0.0, 10_000.0)), min_size=1, max_size=30))
def test_a_new_estimate_moves_the_time_by_half_of_the_difference_at_most(steps: list[tuple[float, float]]) -> None:
    left, now = TimeLeft(), 0.0
    for seconds, estimate in steps:
        now += seconds
        before = left.left_s(now)
        left.correct(estimate, now)
        after = left.left_s(now)
        assert after is None or after > 0
        if before is not None and after is not None:
            assert abs(after - before) <= abs(estimate - before) / 2 + 1e-6


def test_estimates_that_come_often_move_it_little() -> None:
    left = TimeLeft()
    left.correct(100.0, now=0.0)
    left.correct(200.0, now=0.1)
    moved = left.left_s(0.1)
    assert moved is not None
    assert 99.9 < moved < 103.0


def test_steady_work_is_estimated_well_all_along() -> None:
    count = Count(0, 100, now=0.0)
    for done in range(1, 100):
        count.advance(done, 100, now=done * 0.5)
        left = count.left_s(done * 0.5)
        assert left is None if done * 0.5 < 1 else left == pytest.approx((100 - done) * 0.5)


def test_the_speed_counts_from_the_first_count_not_from_zero() -> None:
    count = Count(60, 100, now=0.0)  # a run that was resumed
    count.advance(70, 100, now=10.0)
    assert count.left_s(10.0) == 30.0


def test_a_total_may_change_while_work_goes_on() -> None:
    count = Count(0, 16, now=0.0)
    count.advance(2, 16, now=10.0)
    assert count.left_s(10.0) == 70.0
    count.advance(3, 6, now=15.0)
    left = count.left_s(15.0)
    assert left is not None
    assert 15.0 <= left < 65.0


def test_nothing_is_left_of_what_is_all_done() -> None:
    count = Count(0, 2, now=0.0)
    count.advance(1, 2, now=5.0)
    count.advance(2, 2, now=10.0)
    assert count.left_s(10.0) is None

"""The judge as a pure function, against simulations of what it promises."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.measured import a_round

from winml.modelkit.core.measurement import Round
from winml.modelkit.core.statistics import f_quantile
from winml.modelkit.core.verdict import Verdict, gain_pct
from winml.modelkit.measuring.judge import estimate, gate, judge, replay, round_value, round_values
from winml.modelkit.measuring.protocols import PROTOCOLS

CPU = PROTOCOLS["cpu"]


def draw(rng: random.Random, gain: float, spread: float, count: int) -> list[float]:
    return [rng.gauss(-math.log1p(-gain / 100), spread) for _ in range(count)]


def decide(rng: random.Random, gain: float, spread: float, *, calibrated: bool = True) -> Verdict:
    lent = draw(rng, 0, spread, CPU.calibration_rounds) if calibrated else []
    return replay(draw(rng, gain, spread, CPU.max_rounds), calibration=lent, other=[], protocol=CPU, metric="cpu")


@pytest.mark.parametrize("calibrated", [True, False])
@pytest.mark.parametrize("spread", [0.003, 0.02, 0.05])
def test_a_candidate_that_gains_nothing_is_hardly_ever_kept(spread: float, calibrated: bool) -> None:
    rng = random.Random(f"{spread}{calibrated}")
    kept = sum(decide(rng, 0, spread, calibrated=calibrated).kept for _ in range(1500))
    # At the design rate of 0.3 % more than 13 of 1500 happen once in a thousand times.
    assert kept <= 13


def test_a_gain_of_three_percent_is_kept_on_a_machine_of_ordinary_noise() -> None:
    rng = random.Random(1)
    verdicts = [decide(rng, 3, 0.004) for _ in range(300)]
    assert sum(v.kept for v in verdicts) >= 297
    assert sum(v.rounds for v in verdicts) / 300 < 4


def test_a_slower_candidate_is_never_kept() -> None:
    rng = random.Random(2)
    assert not any(decide(rng, -3, s).kept for s in (0.003, 0.01, 0.03) for _ in range(500))


def test_noise_that_drowns_the_gain_is_inconclusive_and_says_what_is_needed() -> None:
    verdicts = [decide(random.Random(n), 3, 0.15) for n in range(100)]
    unclear = [v for v in verdicts if v.verdict == "INCONCLUSIVE"]
    assert len(unclear) > 70
    assert all("a decision needs about" in v.reason and v.interval_pct is not None for v in unclear)
    assert {v.tendency for v in unclear} == {None, "faster"}
    for verdict in unclear:
        assert verdict.reason.startswith("rounds vary by" if verdict.tendency is None else "probably faster: ")


def test_rounds_that_are_too_few_but_all_slower_are_told_as_that() -> None:
    verdict = judge([-0.23, -0.20, -0.24], protocol=CPU, metric="cpu", last=True)
    assert verdict is not None
    assert (verdict.verdict, verdict.tendency) == ("INCONCLUSIVE", "slower")
    assert verdict.reason == "probably slower: 25.0 % more time, but a decision needs about 4 rounds, 3 were run"


def test_a_small_sure_gain_is_marginal_and_a_tiny_one_is_not_kept() -> None:
    quiet = [0.0001, -0.0001] * 8
    marginal = judge([0.0150, 0.0151, 0.0149], calibration=quiet, protocol=CPU, metric="cpu")
    tiny = judge([0.0050, 0.0051, 0.0049], calibration=quiet, protocol=CPU, metric="cpu")
    assert marginal is not None
    assert marginal.verdict == "MARGINAL_KEEP"
    assert tiny is not None
    assert tiny.verdict == "DISCARD"


def test_there_is_no_look_before_the_first_one() -> None:
    quiet = [0.001, -0.001] * 8
    assert judge([0.5, 0.5], calibration=quiet, protocol=CPU, metric="cpu") is None
    assert judge([0.5, 0.51, 0.5], calibration=[], protocol=CPU, metric="cpu") is None
    assert judge([0.5, 0.51, 0.5, 0.5], calibration=[], protocol=CPU, metric="cpu") is not None


def test_two_lucky_rounds_at_the_end_of_the_time_are_not_a_verdict() -> None:
    verdict = judge([0.5, 0.5001], calibration=[0.001, -0.001] * 8, protocol=CPU, metric="cpu", last=True)
    assert verdict is not None
    assert verdict.verdict == "INCONCLUSIVE"
    one = judge([0.5], protocol=CPU, metric="cpu", last=True)
    assert one is not None
    assert one.verdict == "INCONCLUSIVE"


def test_a_calibration_never_makes_rounds_look_quieter_than_they_are() -> None:
    own = estimate([0.01, -0.01, 0.012, -0.008], [])
    pooled = estimate([0.01, -0.01, 0.012, -0.008], [0.009, -0.009] * 8)
    assert own is not None
    assert pooled is not None
    assert pooled.calibrated
    assert pooled.error >= own.error


@pytest.mark.parametrize("quieter", [2.0, 3.0])
def test_a_calibration_from_quieter_times_keeps_the_error_rate_below_one_percent(quieter: float) -> None:
    rng = random.Random(quieter)
    kept = 0
    for _ in range(2000):
        lent = draw(rng, 0, 0.03 / quieter, CPU.calibration_rounds)
        values = draw(rng, 0, 0.03, CPU.max_rounds)
        kept += replay(values, calibration=lent, other=[], protocol=CPU, metric="cpu").kept
    assert kept <= 35  # at 1 % more than 35 of 2000 happen once in a thousand times


def test_no_gain_on_the_deciding_clock_and_a_sure_one_on_the_other_is_inconclusive() -> None:
    verdict = judge(
        [0.001, -0.001, 0.0],
        calibration=[0.001, -0.001] * 8,
        other=[0.30, 0.31, 0.29],
        protocol=CPU,
        metric="cpu",
    )
    assert verdict is not None
    assert verdict.verdict == "INCONCLUSIVE"
    assert "wall clock shows one" in verdict.reason


def test_a_calibration_from_quieter_times_lends_nothing() -> None:
    quiet, noisy = [0.001, -0.001] * 8, [0.10, -0.06, 0.12, 0.02]
    found = estimate(noisy, quiet)
    assert found is not None
    assert not found.calibrated
    assert found.df == 3


def test_clocks_that_contradict_each_other_decide_nothing() -> None:
    values, opposite = [0.05, 0.051, 0.049], [-0.03, -0.031, -0.029]
    quiet = [0.001, -0.001] * 8
    verdict = judge(values, calibration=quiet, other=opposite, protocol=CPU, metric="cpu")
    assert verdict is not None
    assert verdict.verdict == "INCONCLUSIVE"
    assert "wall clock shows the opposite" in verdict.reason
    agreeing = judge(values, calibration=quiet, other=[0.02, -0.01, 0.03], protocol=CPU, metric="cpu")
    assert agreeing is not None
    assert agreeing.verdict == "KEEP"
    assert agreeing.other_clock.clock == "wall"


def test_more_candidates_need_stronger_evidence() -> None:
    quiet = [0.01, -0.01] * 8
    values = [0.055, 0.065, 0.060]
    alone = judge(values, calibration=quiet, protocol=CPU, metric="cpu", tests=1)
    among_many = judge(values, calibration=quiet, protocol=CPU, metric="cpu", tests=50)
    assert alone is not None
    assert alone.kept
    assert among_many is None


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=16), st.lists(st.floats(-0.1, 0.1), max_size=16))
def test_swapping_the_arms_never_keeps_both(values: list[float], lent: list[float]) -> None:
    one = replay(values, calibration=lent, other=[], protocol=CPU, metric="cpu")
    other = replay([-v for v in values], calibration=[-v for v in lent], other=[], protocol=CPU, metric="cpu")
    assert not (one.kept and other.kept)


@given(st.lists(st.floats(-2, 2), max_size=20))
def test_any_values_get_some_verdict(values: list[float]) -> None:
    assert replay(values, calibration=[], other=[], protocol=CPU, metric="wall").verdict in (
        "KEEP", "MARGINAL_KEEP", "DISCARD", "INCONCLUSIVE",
    )  # fmt: skip


def test_gains_are_shares_of_the_time_of_the_base() -> None:
    assert gain_pct(math.log(2)) == pytest.approx(50)
    assert gain_pct(-math.log(2)) == pytest.approx(-100)


def test_f_quantiles_are_those_of_the_tables() -> None:
    assert f_quantile(0.95, 2, 16) == pytest.approx(3.634, abs=0.001)
    assert f_quantile(0.99, 5, 16) == pytest.approx(4.437, abs=0.001)
    assert f_quantile(0.95, 1, 10) == pytest.approx(4.965, abs=0.001)


class TestGate:
    """`--fail-if-slower`."""

    QUIET = (0.002, -0.002) * 8

    def test_it_fails_when_slower_by_more_than_the_limit(self) -> None:
        slower = [math.log(1 / 1.05) + e for e in (0.001, 0.0, -0.001)]
        assert gate(slower, calibration=self.QUIET, protocol=CPU, limit_pct=3) == "fail"

    def test_it_passes_what_is_slower_by_less(self) -> None:
        slower = [math.log(1 / 1.01) + e for e in (0.001, 0.0, -0.001)]
        assert gate(slower, calibration=self.QUIET, protocol=CPU, limit_pct=3) == "pass"

    def test_it_goes_on_in_between_and_is_unknown_at_the_end(self) -> None:
        unclear = [-0.03, 0.01, -0.07]
        noisy = (0.04, -0.04) * 8
        assert gate(unclear, calibration=noisy, protocol=CPU, limit_pct=3) is None
        assert gate(unclear, calibration=noisy, protocol=CPU, limit_pct=3, last=True) == "unknown"

    def test_an_equal_candidate_fails_hardly_ever(self) -> None:
        rng = random.Random(5)
        failed = 0
        for _ in range(1000):
            values, lent = draw(rng, 0, 0.01, 16), draw(rng, 0, 0.01, 16)
            answers = (gate(values[:n], calibration=lent, protocol=CPU, limit_pct=1) for n in range(3, 17))
            failed += next((a for a in answers if a is not None), None) == "fail"
        assert failed <= 10


def _round(arm: int, number: int, wall: tuple[int, ...]) -> Round:
    return a_round(wall, arm=arm, round=number, order=arm)


def test_a_round_is_the_median_over_its_pairs() -> None:
    base, candidate = _round(0, 0, (200, 400, 900)), _round(1, 0, (100, 100, 900))
    assert round_value(base, candidate, "wall", paired=True) == pytest.approx(math.log(2))
    assert round_value(base, candidate, "wall", paired=False) == pytest.approx(math.log(4))
    with pytest.raises(ValueError, match="stands still"):
        round_value(base, _round(1, 0, (0, 1, 1)), "cpu", paired=True)


def test_rounds_in_which_an_arm_is_missing_do_not_count() -> None:
    rounds = (_round(0, 0, (2,)), _round(1, 0, (1,)), _round(0, 1, (5,)))
    assert len(round_values(rounds, 1, "wall", paired=True)) == 1

"""The page of a comparison: verdicts, times and agreement of its result, whatever the outcome."""

from __future__ import annotations

import math
from typing import Any

import pytest

from measured import ARM, ENVIRONMENT, PAIR, a_round, measurement
from pictures import HOSTILE, check_page, marks
from winml.modelkit.core import plain_text
from winml.modelkit.core.distance import Distance
from winml.modelkit.core.latency import ArmTimes, Interval, Spread
from winml.modelkit.core.placement import Placement
from winml.modelkit.core.verdict import OtherClock, Outcome, Verdict
from winml.modelkit.measuring.calibration import Calibration, ClockValues
from winml.modelkit.measuring.compare_result import (
    Candidate,
    ComparedArm,
    CompareResult,
    Confirmation,
    Parity,
    Sentinel,
)
from winml.modelkit.render.pages.compare import compare_page, round_medians
from winml.modelkit.render.pages.page import Cell, Facts, Figure, Page, Table, figures


def _spread(median: float | None, low: float = 0.0, high: float = 0.0) -> Spread:
    interval = Interval(low=low, high=high, level=0.95) if low else None
    return Spread(median=median, interval=interval, interval_reason=None if low else "a probe of 3 runs", rounds=3)


def _candidate(label: str, word: Outcome = "KEEP", gain: float | None = 48.2, **changes: Any) -> Candidate:
    rounds = [
        a_round((base + 3_000_000,), (base,), arm=arm, round=number, order=arm)
        for number in range(3)
        for arm, base in ((0, 8_000_000 + 100_000 * number), (1, 4_000_000 + 50_000 * number))
    ]
    interval = None if gain is None else (gain - 4.0, gain + 4.0)
    whole: dict[str, Any] = {
        "verdict": Verdict(word, "48.2 % less time", gain, interval, 3, 5.2, "cpu", 0.003, OtherClock("wall", 30.0)),
        "times": ArmTimes(metric="cpu", base_ms=_spread(8.1, 8.0, 8.2), candidate_ms=_spread(4.05, 4.0, 4.1)),
        "parity": Parity(outputs=(Distance(same_shape=True, equal=False, max_abs=0.1, cosine=0.9985, relative=0.01),),
                         min_cosine=0.9985, max_relative=0.01, within_tolerance=True),
        "measurement": measurement(*rounds, arms=(ARM, ARM), protocol=PAIR),
        "calibration": "sha256:a",
        "conditions": Sentinel(base_drift_pct=2.5, load_max=4.5, pressure_max_pct=None, priority=None),
    }  # fmt: skip
    return Candidate(label=label, arm=ARM, **{**whole, **changes})


def _result(*candidates: Candidate, **changes: Any) -> CompareResult:
    whole: dict[str, Any] = {
        "base": ComparedArm(label="fp32.onnx", arm=ARM),
        "candidates": candidates,
        "calibrations": {"sha256:a": Calibration(values=ClockValues(cpu=(0.01, -0.01), wall=(0.02, 0.0)), seconds=40.0,
                                                 cached=True)},
        "fail_if_slower_pct": None,
        "environment": ENVIRONMENT,
        "warnings": (),
    }  # fmt: skip
    return CompareResult(**{**whole, **changes})


def _figure(page: Page, name: str) -> Figure:
    return next(one for one in figures(page) if one.name == name)


def _table(page: Page, title: str) -> Table:
    return next(one for one in page.blocks if isinstance(one, Table) and one.title == title)


def test_the_answer_is_that_of_the_best_candidate_with_its_evidence() -> None:
    page = compare_page(_result(_candidate("slow.onnx", "DISCARD", -20.0), _candidate("int8.onnx")))
    assert page.state == "KEEP"
    assert page.answer == ("int8.onnx is 1.93 times as fast as fp32.onnx (1.79 to 2.09 at 95 %; 3 rounds of CPU time).")
    assert page.title == "2 candidates against fp32.onnx on cpu"
    texts = check_page(page)
    assert list(texts) == ["speedups", "latency", "agreement"]
    assert {"int8.onnx", "1.93x faster ✓", "1.20x slower ✗"} <= set(texts["speedups"])
    assert [row.cells[0] for row in _table(page, "Candidates").rows] == ["int8.onnx", "slow.onnx"]


@pytest.mark.parametrize(
    ("word", "gain", "answer"),
    [
        ("DISCARD", -25.0, "Nothing is proven faster than fp32.onnx. int8.onnx is 0.80 times as fast as fp32.onnx ("),
        (
            "INCONCLUSIVE",
            0.0,
            "Nothing is proven faster than fp32.onnx. int8.onnx is as fast as fp32.onnx (0.96 to 1.04",
        ),
        ("FAILED", None, "int8.onnx failed: 48.2 % less time."),
        ("IDENTICAL", None, "int8.onnx is the same model as fp32.onnx: 48.2 % less time."),
    ],
)
def test_every_outcome_has_a_sentence(word: Outcome, gain: float | None, answer: str) -> None:
    page = compare_page(_result(_candidate("int8.onnx", word, gain)))
    assert page.answer.startswith(answer)
    assert page.state == word
    check_page(page)


def test_a_confirmed_gain_says_so_and_rounds_are_those_that_confirmed_it() -> None:
    fresh = measurement(a_round((1,), (2_000_000,)), a_round((1,), (1_000_000,), arm=1), arms=(ARM, ARM), protocol=PAIR)
    first = _candidate("a").verdict
    again = Confirmation(first=first, verdict=first, measurement=fresh, calibration=None)
    one = _candidate("int8.onnx", confirmation=again)
    assert compare_page(_result(one)).answer.endswith("confirmed on fresh rounds.")
    assert round_medians(one, 0, "cpu") == (2.0,)
    assert round_medians(one, 1, "cpu") == (1.0,)


def test_the_gate_is_part_of_the_answer() -> None:
    slow = _candidate("slow", "DISCARD", -9.0, gate="fail")
    assert compare_page(_result(slow, fail_if_slower_pct=3.0)).answer.endswith("Slower by more than 3 %: slow.")
    fine = _candidate("fine", gate="pass")
    page = compare_page(_result(fine, fail_if_slower_pct=3.0))
    assert page.answer.endswith("None is slower by more than 3 %.")
    assert Cell("pass", state="passed") in _table(page, "Candidates").rows[0].cells
    open_ = _candidate("open", "INCONCLUSIVE", 0.0, gate="unknown")
    assert "cannot be told whether open is" in compare_page(_result(open_, fail_if_slower_pct=3.0)).answer


def test_times_of_both_arms_are_drawn_with_their_rounds() -> None:
    page = compare_page(_result(_candidate("int8.onnx")))
    picture = _figure(page, "latency")
    assert picture.title == "CPU time per run"
    assert picture.sentence == "CPU time of a run, as medians of rounds: int8.onnx 4.05 ms, fp32.onnx (base) 8.10 ms."
    assert marks(picture.draw(760)) == [
        "fp32.onnx (base): median 8.1 ms of 3 rounds, 95 % 8 to 8.2 ms",
        "int8.onnx: median 4.05 ms of 3 rounds, 95 % 4 to 4.1 ms",
    ]
    assert picture.draw(760).count("wk-round") == 6
    assert round_medians(_candidate("x"), 0, "cpu") == pytest.approx((8.0, 8.1, 8.2))


def test_the_base_of_several_candidates_is_the_median_of_all_its_rounds_and_clocks_are_apart() -> None:
    wall = ArmTimes(metric="wall", base_ms=_spread(11.1), candidate_ms=_spread(7.05))
    page = compare_page(_result(_candidate("a"), _candidate("b"), _candidate("c", times=wall)))
    assert (
        marks(_figure(page, "latency").draw(760))[0] == "fp32.onnx (base): median 8.1 ms of 6 rounds with 2 candidates"
    )
    assert "no interval: a probe of 3 runs" in marks(_figure(page, "latency-wall").draw(760))[1]
    check_page(page)


def test_times_that_are_not_known_are_not_drawn_as_zero() -> None:
    nothing = ArmTimes(metric="cpu", base_ms=_spread(None), candidate_ms=_spread(None))
    assert "latency" not in check_page(compare_page(_result(_candidate("a", times=nothing))))


def test_outputs_that_are_too_far_are_named() -> None:
    far = Distance(same_shape=True, equal=False, max_abs=9.0, cosine=0.5, relative=1.0)
    odd = Distance(same_shape=False, equal=False, max_abs=None, cosine=None, relative=None)
    parity = Parity(outputs=(far, odd), min_cosine=None, max_relative=None, within_tolerance=False)
    page = compare_page(_result(_candidate("good"), _candidate("bad", parity=parity)))
    picture = _figure(page, "agreement")
    assert picture.sentence == "Outputs of bad are too far from those of fp32.onnx."
    assert marks(picture.draw(760)) == ["bad, output 1: cosine 0.500000, too far", "good: cosine 0.998500, near"]
    assert picture.values is not None
    assert Cell("too far", state="exceeded") in picture.values.rows[-1].cells
    assert "unknown" in picture.values.rows[-1].cells


def test_equal_outputs_need_no_picture() -> None:
    same = Distance(same_shape=True, equal=True, max_abs=0.0, cosine=1.0, relative=0.0)
    parity = Parity(outputs=(same,), min_cosine=1.0, max_relative=0.0, within_tolerance=True)
    page = compare_page(_result(_candidate("same", parity=parity)))
    assert "agreement" not in check_page(page)
    assert _table(page, "Agreement of outputs").note == "All outputs equal those of fp32.onnx."


def test_an_arm_that_fell_back_has_a_picture_and_the_others_one_line() -> None:
    fell = Placement("QNNExecutionProvider", {"QNNExecutionProvider": 8, "CPUExecutionProvider": 2},
                     {"QNNExecutionProvider": 2}, {"Einsum": 2})  # fmt: skip
    fine = Placement("CPUExecutionProvider", {"CPUExecutionProvider": 10}, {}, {"Conv": 10})
    page = compare_page(_result(_candidate("npu", placement=fell), _candidate("cpu", placement=fine)))
    assert "placement-1" in check_page(page)
    assert "Einsum fell back" in _figure(page, "placement-1").sentence
    folded = next(one for one in page.blocks if isinstance(one, Facts) and one.title == "Placement")
    assert folded.folded == "1 arm ran where asked"
    assert folded.pairs == (("cpu", "All 10 nodes ran on CPU."),)


def test_conditions_and_calibrations_are_folded_and_unknown_is_said() -> None:
    page = compare_page(_result(_candidate("a")))
    conditions = _table(page, "Conditions")
    assert conditions.folded == "load was at most 4.5"
    assert conditions.rows[0].cells == ("a", "4.5", "2.5 %", "unknown", "unknown", "no", "+30.0 % wall time")
    calibrations = next(one for one in page.blocks if isinstance(one, Facts) and one.title == "Calibrations")
    assert calibrations.pairs[0][1].startswith("CPU time varies by 1.41 %")


def test_many_candidates_with_hostile_names_and_wild_numbers() -> None:
    many = [
        _candidate(f"{HOSTILE * 4}{n}", gain=100.0 - 10.0 ** (n % 5 - 2), warnings=(HOSTILE,),
                   placement=Placement(HOSTILE, {HOSTILE: 1, "CPUExecutionProvider": 2}, {}, {HOSTILE: 2}))
        for n in range(45)
    ]  # fmt: skip
    result = _result(*many, warnings=(HOSTILE,), base=ComparedArm(label=HOSTILE, arm=ARM))
    page = compare_page(plain_text.values(result))
    check_page(page)
    assert "The 40 best of 45 candidates are drawn." in _figure(page, "speedups").sentence


def test_a_hundred_thousand_rounds_make_a_small_picture() -> None:
    some = [a_round((8_000_000 + int(1e6 * math.sin(n)),), arm=n % 2, round=n // 2) for n in range(1000)]
    rounds = some * 100
    one = _candidate("a", measurement=measurement(*rounds, arms=(ARM, ARM), protocol=PAIR))
    page = compare_page(_result(one))
    assert len(_figure(page, "latency").draw(760)) < 60_000
    assert len(_figure(page, "speedups").draw(760)) < 40_000


def test_nothing_compared_is_said() -> None:
    page = compare_page(_result())
    assert page.answer == "Nothing was compared."
    assert page.state is None
    check_page(page)

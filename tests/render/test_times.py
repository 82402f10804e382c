from __future__ import annotations

import pytest
from tests.measured import ARM, ENVIRONMENT

from winml.modelkit.core.latency import ArmTimes, Interval, Spread
from winml.modelkit.core.verdict import Verdict, gain_pct, speedup
from winml.modelkit.measuring.compare_result import Candidate, ComparedArm, CompareResult
from winml.modelkit.render.compare import compare_text
from winml.modelkit.render.times import milliseconds, speedup_text


def spread(middle: float | None, *bounds: float) -> Spread:
    interval = Interval(low=bounds[0], high=bounds[1], level=0.95) if bounds else None
    return Spread(median=middle, interval=interval, interval_reason=None, rounds=5)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (spread(1.9312, 1.9, 1.97), "1.93 (1.90 … 1.97)"),
        (spread(0.08421), "0.0842"),
        (spread(99.96), "100"),
        (spread(1234.5, 1200.4, 1300.6), "1234 (1200 … 1301)"),
        (spread(None), ""),
        (None, ""),
    ],
)
def test_milliseconds_have_three_digits_and_their_interval(given: Spread | None, words: str) -> None:
    assert milliseconds(given) == words


@pytest.mark.parametrize(
    ("gain", "words"), [(48.2, "1.93x faster"), (-100.0, "2.00x slower"), (0.2, "same speed"), (None, "")]
)
def test_a_gain_is_told_as_a_factor(gain: float | None, words: str) -> None:
    assert speedup_text(None if gain is None else speedup(gain)) == words


def test_a_bound_beyond_all_bounds_is_still_a_number() -> None:
    assert speedup(gain_pct(50.0)) > 1e9


def test_a_comparison_shows_milliseconds_of_both_arms_and_the_factor() -> None:
    verdict = Verdict(
        "KEEP", "48.2 % less time", gain_pct=48.2, interval_pct=(43.8, 52.2), rounds=5, seconds=5.2, metric="cpu"
    )
    times = ArmTimes(metric="cpu", base_ms=spread(8.41, 8.33, 8.52), candidate_ms=spread(4.36, 4.2, 4.51))
    candidate = Candidate(label="u8s8.onnx", arm=ARM, verdict=verdict, times=times)
    text = compare_text(
        CompareResult(
            base=ComparedArm(label="fp32.onnx", arm=ARM),
            candidates=(candidate,),
            calibrations={},
            fail_if_slower_pct=None,
            environment=ENVIRONMENT,
            warnings=(),
        )
    )
    head, row = text.splitlines()[1:3]
    assert head.split()[:4] == ["candidate", "ms", "base", "ms"]
    assert row.startswith("  u8s8.onnx  4.36 (4.20 … 4.51)  8.41 (8.33 … 8.52)  1.93x faster  +48.2 %")

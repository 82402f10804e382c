from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winml.modelkit.core.sweep import Config, Sweep
from winml.modelkit.measuring.recorded import judge_pair

RESNET_NPU = {
    "h0": [1.311, 0.952, 0.964], "h1": [0.99, 4.003, 2.716], "h2": [1.147, 1.114, 1.947],
    "h3": [1.054, 2.175, 4.107], "h4": [132.3, 134.97, 130.669],
}  # fmt: skip
DINO = {"h0": [20.037, 20.009, 20.048], "h1": [19.924, 19.975, 19.897], "h3": [20.197, 20.071, 19.988]}
DINOV2_BASE = {
    "h0": [38.991, 38.68, 36.256], "h1": [34.556, 34.668, 33.148], "h3": [33.001, 26.224, 26.227],
    "h4": [26.064, 25.921, 25.872],
}  # fmt: skip
DINOV2_CPU = {
    "h0": [142.033, 105.561, 112.599], "h1": [150.633, 1123.338, 762.812], "h3": [1057.558, 1095.186, 1128.223],
}  # fmt: skip
OPSETS = {"h0": 17, "h1": 17, "h2": 19, "h3": 21, "h4": 17}


def sweep(sessions: dict[str, list[float]], order: str = "sequential") -> Sweep:
    passes = {"h4": ("conv_activation_fusion",)}
    return Sweep(order, tuple(Config(n, OPSETS[n], passes.get(n, ()), tuple(ms)) for n, ms in sessions.items()))


def test_a_difference_far_beyond_all_drift_is_supported() -> None:
    judged = judge_pair(sweep(RESNET_NPU), "h0", "h4")
    assert (judged.answer, judged.effect, judged.ranges_apart) == ("supported", "slower", True)
    assert "4.2 times" in judged.reason


def test_equal_times_are_neutral() -> None:
    judged = judge_pair(sweep(DINO), "h0", "h3")
    assert (judged.answer, judged.effect) == ("not supported", "neutral")


def test_a_step_inside_a_config_leaves_its_gain_open() -> None:
    judged = judge_pair(sweep(DINOV2_BASE), "h0", "h3")
    assert judged.answer == "insufficient"
    assert "sequential" in judged.reason
    assert "differ by 26 %" in judged.reason


def test_entries_of_one_config_give_one_answer() -> None:
    """h0 and h1 are the same config: whichever is named, what the record says of h3 is the same."""
    against = [judge_pair(sweep(DINOV2_BASE), base, "h3") for base in ("h0", "h1")]
    assert [(j.answer, j.effect) for j in against] == [("insufficient", "unknown")] * 2
    assert all("h1 -> h3 is not supported" in j.reason and "h0 -> h3 is insufficient" in j.reason for j in against)


def test_a_gain_that_continues_a_trend_is_not_supported() -> None:
    judged = judge_pair(sweep(DINOV2_BASE), "h0", "h4")
    assert judged.ranges_apart
    assert judged.answer == "not supported"
    assert "drift one way by 49 %" in judged.reason


def test_equal_configs_that_differ_as_much_refute_a_claim() -> None:
    judged = judge_pair(sweep(DINOV2_CPU), "h0", "h3")
    assert judged.ranges_apart
    assert judged.answer == "not supported"
    assert "equal configs (h0, h1) differ by 10.6 times" in judged.reason


def test_interleaved_sessions_need_not_clear_the_drift() -> None:
    sessions = {"h0": [10.0, 10.1, 12.9], "h3": [8.0, 8.1, 8.05]}
    assert judge_pair(sweep(sessions), "h0", "h3").answer != "supported"
    steady = {"h0": [10.0, 10.1, 10.05], "h3": [9.0, 9.1, 9.05]}
    assert judge_pair(sweep(steady, "interleaved"), "h0", "h3").effect == "faster"


@pytest.mark.parametrize("sessions", [{"h0": [1.0, 1.1], "h3": [2.0, 2.1, 2.2]}, {"h0": [1.0, 1.1, 1.2], "h3": []}])
def test_few_sessions_are_insufficient_and_said_so(sessions: dict[str, list[float]]) -> None:
    judged = judge_pair(sweep(sessions), "h0", "h3")
    assert judged.answer == "insufficient"
    assert judged.reason.startswith("too few")


def test_a_config_that_is_not_recorded_is_insufficient() -> None:
    assert judge_pair(sweep(DINO), "h0", "h4").reason == "h4 is not in the record"


def test_what_was_not_recorded_is_never_the_same_config() -> None:
    unknown = Config("h0", None, None, (1.0, 2.0, 3.0))
    assert not unknown.equals(unknown)


@given(
    st.lists(st.floats(0.1, 100), min_size=3, max_size=5),
    st.lists(st.floats(0.1, 100), min_size=3, max_size=5),
    st.floats(0.01, 100),
)
def test_answers_do_not_depend_on_the_unit_and_turn_with_the_arms(
    base: list[float], candidate: list[float], factor: float
) -> None:
    there = judge_pair(sweep({"h0": base, "h3": candidate}), "h0", "h3")
    scaled = judge_pair(sweep({"h0": [factor * v for v in base], "h3": [factor * v for v in candidate]}), "h0", "h3")
    back = judge_pair(sweep({"h3": candidate, "h0": base}), "h3", "h0")
    assert there.gain_pct is not None
    assert scaled.gain_pct is not None
    assert math.isclose(there.gain_pct, scaled.gain_pct, rel_tol=1e-6, abs_tol=1e-6)
    turned = {"faster": "slower", "slower": "faster"}
    if there.answer == "supported":
        assert back.effect == turned[there.effect]


@given(st.lists(st.floats(0.5, 2), min_size=6, max_size=6))
def test_sessions_of_one_config_never_support_a_difference_between_its_entries(values: list[float]) -> None:
    assert judge_pair(sweep({"h0": values[:3], "h1": values[3:]}), "h0", "h1").answer != "supported"

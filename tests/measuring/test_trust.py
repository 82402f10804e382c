"""Every doubt about a number, at and beyond the point where it starts."""

from __future__ import annotations

import pytest
from tests.measured import a_round, environment, measurement

from winml.modelkit.core.measurement import Arm, Measurement, SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.measuring.trust import warnings

CPU = Target("cpu", "cpu")
STEADY = [1_000_000] * 30


def measured(
    *sessions: list[int],
    cpu_share: float = 1.0,
    load: float | None = 0.1,
    cores: int = 4,
    threads: int | None = None,
    target: Target = CPU,
    pressure_pct: float | None = None,
) -> Measurement:
    """A measurement of these wall times, one list per session, on a quiet machine unless told otherwise."""
    rounds = tuple(
        a_round(
            tuple(wall),
            tuple(int(ns * cpu_share) for ns in wall),
            round=i,
            process=100 + i,
            order=i,
            load_before=load if i == 0 else 9.0,
            load_after=9.0,
        )
        for i, wall in enumerate(sessions)
    )
    arm = Arm(artifact="model.onnx", target=target, session=SessionSection(threads=threads))
    return measurement(*rounds, arms=(arm,), environment=environment(cores=cores, pressure_pct=pressure_pct))


def test_steady_runs_on_a_quiet_machine_raise_no_doubt() -> None:
    assert warnings(measured(STEADY, STEADY, STEADY, pressure_pct=0.5)) == []


def test_without_a_sample_there_is_nothing_to_doubt() -> None:
    assert warnings(measured()) == []
    assert warnings(measured([])) == []


# Load


def test_a_loaded_machine_is_told_with_its_cores() -> None:
    assert warnings(measured(STEADY, load=3.1)) == [
        "machine load was 3.1 on 4 cores; do not compare configs by these numbers"
    ]


def test_load_is_judged_per_core_and_only_above_three_quarters() -> None:
    assert warnings(measured(STEADY, load=3.0, cores=4)) == []
    assert warnings(measured(STEADY, load=3.0, cores=3)) != []


def test_only_the_load_before_the_first_session_counts_because_later_load_is_our_own() -> None:
    # `measured` gives every later session a load of 9.
    assert warnings(measured(STEADY, STEADY, load=0.1)) == []


def test_pressure_stands_in_where_load_is_low_or_unknown() -> None:
    sentence = "programs waited for a CPU 40 % of the time before the run; do not compare configs by these numbers"
    assert warnings(measured(STEADY, load=0.1, pressure_pct=40.2)) == [sentence]
    assert warnings(measured(STEADY, load=None, pressure_pct=40.2)) == [sentence]
    assert warnings(measured(STEADY, pressure_pct=25.0)) == []
    assert warnings(measured(STEADY, pressure_pct=25.1)) != []


def test_load_and_pressure_are_one_doubt() -> None:
    found = warnings(measured(STEADY, load=9.0, pressure_pct=90.0))
    assert len(found) == 1
    assert found[0].startswith("machine load was 9.0")


def test_a_system_that_tells_neither_load_nor_pressure_raises_no_doubt() -> None:
    assert warnings(measured(STEADY, load=None, pressure_pct=None)) == []
    assert warnings(measured(STEADY, load=None)) == []


# Waiting


def test_a_single_thread_that_waits_for_a_core_is_told() -> None:
    assert warnings(measured(STEADY, cpu_share=0.7, threads=1)) == [
        "the process waited 30 % of the time for a core; do not compare configs by these numbers"
    ]


def test_a_little_waiting_is_normal() -> None:
    assert warnings(measured(STEADY, cpu_share=0.86, threads=1)) == []


@pytest.mark.parametrize("threads", [None, 2])
def test_with_more_threads_cpu_time_says_nothing_about_waiting(threads: int | None) -> None:
    assert warnings(measured(STEADY, cpu_share=0.1, threads=threads)) == []


def test_on_another_device_cpu_time_says_nothing_about_waiting() -> None:
    assert warnings(measured(STEADY, cpu_share=0.1, threads=1, target=Target("qnn", "npu"))) == []


# Spread, drift, sessions


def test_runs_that_spread_are_told_by_p10_to_p90() -> None:
    alternating = [1_000_000, 1_000_000, 2_000_000] * 20
    assert warnings(measured(alternating)) == ["runs within a session spread by 100 % of the median (p10 to p90)"]


def interleaved(low: int, high: int) -> list[int]:
    """Evenly spread times whose order shows no drift."""
    ordered = range(low, high + 1)
    return [*ordered[::3], *ordered[1::3], *ordered[2::3]]


def test_spread_is_taken_from_p10_to_p90_over_the_median_and_told_above_half() -> None:
    assert warnings(measured(interleaved(100, 200))) == [
        "runs within a session spread by 53 % of the median (p10 to p90)"
    ]
    assert warnings(measured(interleaved(110, 200))) == []


def test_a_few_outliers_are_no_spread() -> None:
    outliers = [1_000_000] * 57 + [9_000_000] * 3
    assert "spread" not in " ".join(warnings(measured(outliers)))


def test_the_session_that_spreads_most_is_the_one_told() -> None:
    calm, wild = [10, 10, 10, 11] * 10, [10, 16, 22, 16] * 10
    [sentence] = [w for w in warnings(measured(calm, wild)) if "spread" in w]
    assert sentence == "runs within a session spread by 75 % of the median (p10 to p90)"


def test_runs_that_become_slower_are_told() -> None:
    assert warnings(measured([100] * 10 + [110] * 10 + [120] * 10)) == [
        "runs became 20 % slower within a session; raise `--warmup` or wait for the machine to cool"
    ]


def test_runs_that_become_faster_are_told() -> None:
    assert warnings(measured([125] * 10 + [110] * 10 + [100] * 10)) == [
        "runs became 20 % faster within a session; raise `--warmup` or wait for the machine to cool"
    ]


def test_the_strongest_drift_of_all_sessions_is_told_whatever_its_direction() -> None:
    slower, faster = [100] * 10 + [110] * 10 + [115] * 10, [125] * 10 + [112] * 10 + [100] * 10
    drifts = [w for w in warnings(measured(slower, faster)) if "became" in w]
    assert drifts == ["runs became 20 % faster within a session; raise `--warmup` or wait for the machine to cool"]


def test_a_drift_below_a_tenth_is_still_normal() -> None:
    assert warnings(measured([1000] * 10 + [1050] * 10 + [1099] * 10)) == []


def test_fewer_than_thirty_runs_are_too_few_to_see_a_drift() -> None:
    climbing = [100] * 10 + [110] * 9 + [120] * 10
    assert len(climbing) == 29
    assert warnings(measured(climbing)) == []


def test_sessions_that_disagree_are_told() -> None:
    assert warnings(measured([100] * 30, [100] * 30, [120] * 30)) == [
        "session medians differ by 20 %; do not compare configs by these numbers"
    ]


def test_sessions_within_a_tenth_agree() -> None:
    assert warnings(measured([1000] * 30, [1099] * 30)) == []


def test_sessions_without_samples_are_left_out() -> None:
    assert warnings(measured(STEADY, [], STEADY)) == []


# Number of runs


def test_few_runs_are_told_over_all_sessions() -> None:
    assert warnings(measured([100] * 10, [100] * 9)) == ["only 19 runs: the higher percentiles are unreliable"]
    assert warnings(measured([100] * 10, [100] * 10)) == []


def test_several_doubts_are_all_told() -> None:
    found = warnings(measured([100] * 5, [200] * 5, load=9.0, cpu_share=0.5, threads=1))
    assert [w.split()[0] for w in found] == ["machine", "the", "session", "only"]

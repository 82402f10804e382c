"""Summaries of a measurement in ms, against numbers worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.measured import a_round, measurement, session_report

from winml.modelkit.core.latency import Interval, Spread
from winml.modelkit.core.measurement import Round
from winml.modelkit.core.statistics import log_t_interval
from winml.modelkit.core.values import to_json
from winml.modelkit.measuring.summary import arm_times, cpu_time, latency, summarize_session, throughput

MS = 1_000_000


def measured(*walls_ms: list[float], cpu_factor: float = 2.0) -> tuple[Round, ...]:
    return tuple(
        a_round(
            tuple(int(v * MS) for v in wall),
            tuple(int(v * cpu_factor * MS) for v in wall),
            round=i,
            process=100 + i,
            order=i,
            load_before=0.25,
            load_after=None,
        )
        for i, wall in enumerate(walls_ms)
    )


def test_percentiles_are_over_all_samples_of_all_sessions() -> None:
    summary = latency(measured([9, 11, 10], [5, 8, 7, 6], [1, 4, 2, 3]))
    assert {k: getattr(summary, k) for k in ("mean", "min", "max", "p50", "p90", "p95", "p99")} == {
        "mean": 6,
        "min": 1,
        "max": 11,
        "p50": 6,
        "p90": pytest.approx(10),
        "p95": pytest.approx(10.5),
        "p99": pytest.approx(10.9),
    }
    assert summary.std == pytest.approx(11**0.5)


def test_the_summary_has_the_fields_of_the_contract() -> None:
    fields = {"mean", "min", "max", "p50", "p90", "p95", "p99", "std", "interval", "interval_reason"}
    rounds = measured([1, 2], [3, 4], [5, 6])
    assert set(to_json(latency(rounds))) == fields
    assert set(to_json(cpu_time(rounds))) == {*fields, "per"}


def test_the_interval_is_that_of_the_session_medians() -> None:
    summary = latency(measured([8.0, 8.2, 99.0], [8.4, 8.4, 8.4], [8.1, 8.3, 8.5]))
    low, high = log_t_interval([8.2, 8.4, 8.3])
    assert summary.interval == Interval(low=pytest.approx(low), high=pytest.approx(high), level=0.95)
    assert summary.interval_reason is None


@pytest.mark.parametrize("count", [1, 2])
def test_fewer_than_three_sessions_have_no_interval_but_a_reason(count: int) -> None:
    summary = latency(measured(*[[8.0, 8.2]] * count))
    assert summary.interval is None
    assert summary.interval_reason == f"an interval needs at least 3 sessions but there are {count}"


def test_cpu_time_is_summarised_beside_wall_time() -> None:
    rounds = measured([1, 2, 3], [1, 2, 3], [1, 2, 3], cpu_factor=3.0)
    assert latency(rounds).p50 == 2
    assert cpu_time(rounds).p50 == 6
    assert cpu_time(rounds).interval == Interval(low=pytest.approx(6), high=pytest.approx(6), level=0.95)


def test_a_clock_too_coarse_to_see_a_run_leaves_no_interval_but_a_reason() -> None:
    # The CPU clock of a process on Windows advances in steps of 15.6 ms: most runs of a fast model take 0 of it.
    found = cpu_time(measured([1, 2, 3], [1, 2, 3], [1, 2, 3], cpu_factor=0.0))
    assert (found.p50, found.interval, found.per) == (0, None, "session")
    assert found.interval_reason


def test_the_steps_of_a_coarse_clock_are_divided_over_the_runs_of_a_session() -> None:
    step = 15_625_000
    found = cpu_time([replace(r, cpu_ns=(0,) * 9 + (step,)) for r in measured([4] * 10, [4] * 10, [4] * 10)])
    assert (found.per, found.p50) == ("session", pytest.approx(1.5625))


def test_one_sample_has_no_standard_deviation() -> None:
    summary = latency(measured([3]))
    assert summary.std is None
    assert summary.min == summary.p50 == summary.p99 == summary.max == 3


def test_a_session_is_summarised_in_ms() -> None:
    taken = session_report(1 * MS, 2 * MS, 3 * MS, cpu_ns=(2 * MS, 4 * MS, 6 * MS), load_after=None)
    assert to_json(summarize_session(100, taken)) == {
        "process": 100,
        "iterations": 3,
        "p50_ms": 2,
        "cpu_p50_ms": 4,
        "open_ms": 12,
        "first_run_ms": 30,
        "load_before": 0.5,
        "load_after": None,
    }
    assert summarize_session(100, replace(taken, first_run_ns=None)).first_run_ms is None


def test_throughput_is_runs_over_the_time_spent_running() -> None:
    assert to_json(throughput(measured([10, 30], [20, 40]), None)) == {
        "runs_per_s": pytest.approx(40),
        "batch": None,
        "samples_per_s": None,
    }


def test_throughput_counts_samples_where_the_batch_is_known() -> None:
    assert to_json(throughput(measured([10, 10]), 8)) == {
        "runs_per_s": pytest.approx(100),
        "batch": 8,
        "samples_per_s": pytest.approx(800),
    }


def test_arms_have_a_median_and_an_interval_each_on_the_clock_that_decides() -> None:
    base = measured([4, 5, 6], [6, 6, 6], [7, 7, 9])
    candidate = [replace(r, arm=1, wall_ns=tuple(v // 2 for v in r.wall_ns)) for r in base]
    both = measurement(*base, *candidate)
    times = arm_times(both, "wall")
    low, high = log_t_interval([5, 6, 7])
    interval = Interval(low=low, high=high, level=0.95)
    assert times.base_ms == Spread(median=6, interval=interval, interval_reason=None, rounds=3)
    assert times.candidate_ms.median == 3
    assert arm_times(both, "cpu").base_ms.median == 12


def test_few_rounds_have_a_median_and_the_reason_why_no_interval() -> None:
    times = arm_times(measurement(*measured([4, 5, 6])), "wall")
    assert (times.base_ms.median, times.base_ms.interval) == (5, None)
    assert "at least 3" in (times.base_ms.interval_reason or "")
    assert times.candidate_ms.median is None

from __future__ import annotations

import threading

import pytest

from winml.modelkit.session.measure import timed_loop


def test_times_every_run_on_both_clocks() -> None:
    runs: list[int] = []
    wall, cpu = timed_loop(
        lambda: runs.append(1), iterations=7, duration_s=None, stop=threading.Event(), progress=lambda _: None
    )
    assert len(runs) == len(wall) == len(cpu) == 7
    assert min(wall) > 0


def test_a_duration_ends_the_loop_and_overrides_the_count() -> None:
    wall, _ = timed_loop(lambda: None, iterations=3, duration_s=0.05, stop=threading.Event(), progress=lambda _: None)
    assert len(wall) > 3


def test_stop_ends_the_loop_after_the_running_iteration() -> None:
    stop = threading.Event()
    stop.set()
    wall, _ = timed_loop(lambda: None, iterations=100, duration_s=None, stop=stop, progress=lambda _: None)
    assert len(wall) == 1


def test_progress_is_told_on_long_loops() -> None:
    told: list[int] = []
    timed_loop(lambda: None, iterations=1, duration_s=0.6, stop=threading.Event(), progress=told.append)
    assert told == sorted(told)
    assert len(told) >= 1


def test_an_error_of_a_run_goes_on() -> None:
    def broken() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        timed_loop(broken, iterations=1, duration_s=None, stop=threading.Event(), progress=lambda _: None)

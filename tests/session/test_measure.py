from __future__ import annotations

import threading

import pytest

from winml.modelkit.session.measure import repeat


def test_runs_as_often_as_asked() -> None:
    runs: list[int] = []
    repeat(lambda: runs.append(1), iterations=7, duration_s=None, stop=threading.Event(), progress=lambda _: None)
    assert len(runs) == 7


def test_a_duration_ends_the_loop_and_overrides_the_count() -> None:
    runs: list[int] = []
    repeat(lambda: runs.append(1), iterations=3, duration_s=0.05, stop=threading.Event(), progress=lambda _: None)
    assert len(runs) > 3


def test_stop_ends_the_loop_after_the_running_iteration() -> None:
    stop, runs = threading.Event(), list[int]()
    stop.set()
    repeat(lambda: runs.append(1), iterations=100, duration_s=None, stop=stop, progress=lambda _: None)
    assert len(runs) == 1


def test_progress_is_told_on_long_loops() -> None:
    told: list[int] = []
    repeat(lambda: None, iterations=1, duration_s=0.6, stop=threading.Event(), progress=told.append)
    assert told == sorted(told)
    assert len(told) >= 1


def test_an_error_of_a_run_goes_on() -> None:
    def broken() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        repeat(broken, iterations=1, duration_s=None, stop=threading.Event(), progress=lambda _: None)

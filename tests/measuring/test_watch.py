from __future__ import annotations

import os
import time

from winml.modelkit.core.events import Event
from winml.modelkit.measuring.sessions import MachineSampled, SessionStarted
from winml.modelkit.measuring.watch import Watch
from winml.modelkit.session.report import ReadingTrace, Utilization, Warm


def test_samples_between_warm_up_and_the_end_of_each_session_and_passes_events_on() -> None:
    events: list[Event] = []
    watch = Watch(events.append)
    for number in (0, 1):
        watch.on_event(SessionStarted(number, os.getpid()))
        watch.on_event(Warm())
        time.sleep(0.15)
    watch.end()
    summary = watch.summary()
    told = [e for e in events if isinstance(e, MachineSampled)]
    assert [type(e) for e in events if e not in told] == [SessionStarted, Warm] * 2
    assert summary.samples == len(told) >= 2
    found = summary.sources["memory_pct"]
    assert found.min <= found.mean <= found.max


def test_sampling_stops_when_the_trace_is_read() -> None:
    watch = Watch(lambda _: None)
    watch.on_event(SessionStarted(0, os.getpid()))
    watch.on_event(Warm())
    watch.on_event(ReadingTrace())
    samples = watch.summary().samples
    time.sleep(0.25)
    assert watch.summary().samples == samples == 1


def test_nothing_that_ran_is_nothing_sampled() -> None:
    assert Watch(lambda _: None).summary() == Utilization(interval_s=None, samples=0, sources={}, missing={})

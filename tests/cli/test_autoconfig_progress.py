from __future__ import annotations

import sys
from typing import Any

import pytest

from screen import Clock, Terminal
from search_world import make_trial
from winml.modelkit.cli import console, live_line
from winml.modelkit.cli.autoconfig_progress import SearchProgress
from winml.modelkit.core.verdict import Verdict
from winml.modelkit.measuring.events import CalibrationRoundDone, CalibrationStarted, RoundDone, RoundsStarted
from winml.modelkit.search.events import ConfirmationEnded, ConfirmationStarted, SearchPlanned, TrialEnded, TrialStarted
from winml.modelkit.search.insight import Insight
from winml.modelkit.search.space import Space
from winml.modelkit.search.strategy import Confirmation, SearchLimits, State
from winml.modelkit.search.trial import FreshRounds, exact_series

CHOICE = (("quantize.scheme", "int8"), ("optimize.conv_activation_fusion", "on"))
LEADER = make_trial("h1", CHOICE[:1], "measured", series=exact_series(0.7), seconds=2.0)
INSIGHT = Insight((), (), Space((), {}), lambda advice, config: False)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def told(monkeypatch: pytest.MonkeyPatch, clock: Clock, *events: Any, columns: int = 200) -> list[str]:
    """What the line says after each event, a second apart."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(console, "reads_escapes", lambda stream: True)
    monkeypatch.setattr(live_line, "terminal_columns", lambda stream: columns)
    monkeypatch.setattr(SearchProgress, "next_tick_s", lambda self: 1e6)
    with SearchProgress(clock) as shown:
        for event in events:
            clock.advance(1.0)
            shown.on_event(event)
    return [frame for frame in terminal.frames if frame]


def test_the_running_trial_is_shown_with_the_leader_and_what_it_does(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    lines = told(monkeypatch, clock, TrialStarted("h2", CHOICE, State((LEADER,))), RoundDone(3))
    changes = "quantize.scheme=int8, optimize.conv_activation_fusion=on"
    assert lines == [
        f"h2 · h1 leads, 50.3 % saved · {changes}  0:01",
        f"h2 · h1 leads, 50.3 % saved · round 3 · {changes}  0:02",
    ]


def test_a_line_never_wraps(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    assert told(monkeypatch, clock, TrialStarted("h2", CHOICE, State()), columns=20) == ["h2 · quantiz…  0:01"]


def test_the_time_left_is_that_of_the_budget_and_runs_down_by_itself(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    planned = SearchPlanned(INSIGHT, SearchLimits(budget_s=60.0), trials=4)
    lines = told(
        monkeypatch,
        clock,
        planned,
        TrialStarted("h2", (), State((LEADER,), seconds=20.0)),
        RoundDone(1),
        RoundDone(2),
        columns=120,
    )
    assert [line.split("  ")[0] for line in lines[-3:]] == [
        "h2 (2 of at most 4) · h1 leads, 50.3 % saved · baseline",
        "h2 (2 of at most 4) · h1 leads, 50.3 % saved · round 1 · baseline",
        "h2 (2 of at most 4) · h1 leads, 50.3 % saved · round 2 · baseline",
    ]
    assert [line.rpartition("  ")[2] for line in lines[-3:]] == [
        "0:02, 40 s of the budget left",
        "0:03, 39 s of the budget left",
        "0:04, 38 s of the budget left",
    ]


def test_a_confirmation_and_the_noise_are_counted(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    lines = told(
        monkeypatch,
        clock,
        CalibrationStarted(16),
        CalibrationRoundDone(3),
        ConfirmationStarted("h1", State((LEADER,))),
        RoundsStarted(3, 16, 60.0),
        RoundDone(2),
    )
    assert lines[0] == "measuring noise of the baseline: A/A round 3 of 16  0:02"
    assert lines[-1] == "h1 confirming on fresh rounds · h1 leads, 50.3 % saved · round 2 of at most 16  0:05"


def test_a_trial_ends_with_what_became_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    verdict = Verdict("KEEP", "faster", gain_pct=50.3, interval_pct=(49.0, 51.5), metric="cpu")
    counted = Verdict("KEEP", "27.0 % less, counted", gain_pct=27.0, interval_pct=(27.0, 27.0))
    with SearchProgress() as shown:
        shown.on_event(TrialEnded(make_trial("h0", (), "baseline"), None))
        shown.on_event(TrialEnded(LEADER, verdict))
        shown.on_event(TrialEnded(LEADER, counted))
        shown.on_event(TrialEnded(make_trial("h2", CHOICE[:1], "slower", "3.0 times slower"), None))
        shown.on_event(ConfirmationEnded(Confirmation("h1", True, verdict, FreshRounds())))
        shown.on_event(ConfirmationEnded(Confirmation("h1", False, Verdict("FAILED", "it crashed"), FreshRounds())))
    assert capsys.readouterr().err.splitlines() == [
        "note: h0 baseline · 1.0 s",
        "note: h1 kept · quantize.scheme=int8 · 2.01x faster (1.96 … 2.06) · 2.0 s",
        "note: h1 kept · quantize.scheme=int8 · +27.0 % saved · 2.0 s",
        "note: h2 screened out · quantize.scheme=int8 · 3.0 times slower · 1.0 s",
        "note: h1 confirmed on fresh rounds · 2.01x faster (1.96 … 2.06)",
        "note: h1 not confirmed · it crashed",
    ]

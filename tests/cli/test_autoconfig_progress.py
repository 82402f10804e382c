from __future__ import annotations

from typing import Any

import pytest

from search_world import make_trial
from winml.modelkit.cli import progress
from winml.modelkit.cli.autoconfig_progress import SearchProgress
from winml.modelkit.core.verdict import Verdict
from winml.modelkit.measuring.events import RoundDone
from winml.modelkit.search.events import TrialEnded, TrialStarted
from winml.modelkit.search.strategy import State
from winml.modelkit.search.trial import exact_series

CHOICE = (("quantize.scheme", "int8"), ("optimize.conv_activation_fusion", "on"))
LEADER = make_trial("h1", CHOICE[:1], "measured", series=exact_series(0.7), seconds=2.0)


def told(monkeypatch: pytest.MonkeyPatch, *events: Any, columns: int = 200) -> list[str]:
    monkeypatch.setattr(progress, "_columns", lambda: columns)
    with SearchProgress() as shown:
        written: list[str] = []
        monkeypatch.setattr(shown, "_live", True)
        monkeypatch.setattr("sys.stderr.write", written.append)
        for event in events:
            shown.on_event(event)
    return [text.removeprefix("\r\x1b[K") for text in written]


def test_the_running_trial_is_shown_with_the_leader_and_what_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = told(monkeypatch, TrialStarted("h2", CHOICE, State((LEADER,))), RoundDone(3))
    changes = "quantize.scheme=int8, optimize.conv_activation_fusion=on"
    assert lines[0] == f"h2 · h1 leads, 50.3 % saved · {changes}"
    assert lines[1] == f"h2 · h1 leads, 50.3 % saved · round 3 · {changes}"


def test_a_line_never_wraps(monkeypatch: pytest.MonkeyPatch) -> None:
    (line, _) = told(monkeypatch, TrialStarted("h2", CHOICE, State()), columns=20)
    assert line == "h2 · quantize.sche…"


def test_a_trial_ends_with_its_verdict(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    verdict = Verdict("KEEP", "faster", gain_pct=50.3, interval_pct=(49.0, 51.5))
    with SearchProgress() as shown:
        shown.on_event(TrialEnded(LEADER, verdict))
    assert "h1 quantize.scheme=int8: KEEP, +50.3 % saved (+49.0 … +51.5) (2.0 s)" in capsys.readouterr().err

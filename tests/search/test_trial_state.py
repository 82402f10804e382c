"""The word for every trial that there can be."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest

from winml.modelkit.core.verdict import Clock, OtherClock, Outcome, Verdict
from winml.modelkit.search.trial import TrialOutcome
from winml.modelkit.search.trial_state import TrialState, name_state

INTERVALS: dict[str, tuple[float, float] | None] = {
    "faster": (3.0, 9.0),
    "slower": (-9.0, -3.0),
    "either": (-3.0, 3.0),
    "unknown": None,
}
CLOCKS: tuple[Clock | None, ...] = ("cpu", "wall", None)
NOT_TIMED = {
    "baseline": "baseline",
    "same": "same graph",
    "failed": "failed",
    "inaccurate": "inaccurate",
    "slower": "screened out",
}
BY_INTERVAL = {
    "DISCARD": {"slower": "slower"},
    "INCONCLUSIVE": {"slower": "probably slower", "faster": "probably faster"},
}
"""Where the interval matters, for what was timed."""
MEASURED = {
    "KEEP": "kept",
    "MARGINAL_KEEP": "kept",
    "DISCARD": "no gain",
    "INCONCLUSIVE": "undecided",
    "IDENTICAL": "same graph",
    "FAILED": "not measured",
}


def expected(outcome: str, verdict: Verdict | None, side: str, confirmed: bool | None) -> str:
    if outcome != "measured":
        return NOT_TIMED[outcome]
    if confirmed is not None:
        return "confirmed" if confirmed else "not confirmed"
    if verdict is None:
        return "not measured"
    interval = None if verdict.metric is None else verdict.interval_pct
    if verdict.verdict == "DISCARD" and interval is not None and interval[1] >= 2.0:
        return "behind"  # its rounds rule out no gain of 2 %: the champion does
    timed = {} if verdict.metric is None else BY_INTERVAL.get(verdict.verdict, {})
    return timed.get(side, MEASURED[verdict.verdict])


def test_every_combination_has_its_word() -> None:
    seen = set()
    outcomes, words = get_args(TrialOutcome), (None, *get_args(Outcome))
    for outcome, word, side, metric, confirmed in itertools.product(
        outcomes, words, INTERVALS, CLOCKS, (None, True, False)
    ):
        verdict = None if word is None else Verdict(word, "", 1.0, INTERVALS[side], metric=metric)
        state = name_state(outcome, verdict, confirmed=confirmed)
        assert state == expected(outcome, verdict, side, confirmed), (outcome, word, side, metric, confirmed)
        seen.add(state)
    assert seen == set(get_args(TrialState)), "a word that no trial can have"


@pytest.mark.parametrize(
    ("other", "state"),
    [
        ("faster", "undecided"),
        ("slower", "probably slower"),
        ("either", "probably slower"),
        ("unknown", "probably slower"),
    ],
)
def test_a_clock_that_shows_the_opposite_leaves_it_undecided(other: str, state: str) -> None:
    clock = OtherClock("wall", 1.0, INTERVALS[other])
    verdict = Verdict("INCONCLUSIVE", "", -6.0, INTERVALS["slower"], metric="cpu", other_clock=clock)
    assert name_state("measured", verdict) == state


def test_the_bounds_of_an_interval_are_on_no_side() -> None:
    for bounds in ((0.0, 5.0), (-5.0, 0.0), (0.0, 0.0)):
        assert name_state("measured", Verdict("INCONCLUSIVE", "", 0.0, bounds, metric="cpu")) == "undecided"

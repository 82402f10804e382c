"""The word for a trial in texts: what became of it, in one or two plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from winml.modelkit.core.measurement import CompareProtocol

if TYPE_CHECKING:
    from winml.modelkit.core.verdict import Verdict
    from winml.modelkit.search.trial import TrialOutcome

TrialState = Literal[
    "baseline",
    "same graph",
    "failed",
    "inaccurate",
    "screened out",
    "not measured",
    "slower",
    "behind",
    "no gain",
    "probably slower",
    "undecided",
    "probably faster",
    "kept",
    "not confirmed",
    "confirmed",
]


_BEFORE_ROUNDS: dict[TrialOutcome, TrialState] = {
    "baseline": "baseline",
    "same": "same graph",
    "failed": "failed",
    "inaccurate": "inaccurate",
    "slower": "screened out",
}
"""Trials that were not timed; one that is `slower` took far longer in a few runs, and nothing else was measured."""


def name_state(outcome: TrialOutcome, verdict: Verdict | None, *, confirmed: bool | None = None) -> TrialState:
    """The state of a trial from its outcome and verdict; `confirmed` is what fresh rounds said, None without them."""
    if outcome != "measured":
        return _BEFORE_ROUNDS[outcome]
    if confirmed is not None:
        return "confirmed" if confirmed else "not confirmed"
    if verdict is None or verdict.verdict == "FAILED":
        return "not measured"
    if verdict.verdict == "IDENTICAL":
        return "same graph"
    if verdict.kept:
        return "kept"
    # Sizes and pieces are counted, not timed: nothing is slower by them.
    tendency = None if verdict.metric is None else verdict.tendency
    if verdict.verdict == "DISCARD":
        if verdict.metric and verdict.interval_pct and verdict.interval_pct[1] >= CompareProtocol.marginal_pct:
            return "behind"  # what it may gain is ruled out by the champion, not by its rounds
        return "slower" if tendency == "slower" else "no gain"
    if tendency is None:
        return "undecided"
    return "probably slower" if tendency == "slower" else "probably faster"

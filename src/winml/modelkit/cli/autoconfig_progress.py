"""Progress of a search: finished trials as lines, the running one as a line that is written over."""

from __future__ import annotations

import math
from typing import Any

from winml.modelkit.building.events import StageStarted
from winml.modelkit.cli.console import say
from winml.modelkit.cli.progress import LineProgress
from winml.modelkit.core.verdict import gain_pct
from winml.modelkit.measuring.events import CalibrationRoundDone, RoundDone
from winml.modelkit.search.events import (
    ConfirmationEnded,
    ConfirmationStarted,
    DeliveryStarted,
    ModelStarted,
    PassesProbed,
    RoundStarted,
    SearchPlanned,
    TrialEnded,
    TrialStarted,
)
from winml.modelkit.search.race import rank_runners
from winml.modelkit.search.space import label
from winml.modelkit.search.strategy import State


class SearchProgress(LineProgress):
    """The running trial, the leader, the time left; verdicts as they come."""

    _now, _label = "", ""
    _budget_s = math.inf

    def show(self, event: Any) -> None:
        match event:
            case TrialStarted():
                self._begin(f"{event.id}{self._status(event.state)}", label(event.choice))
            case RoundStarted():
                self._begin(f"{event.id} another round{self._status(event.state)}")
            case ConfirmationStarted():
                self._begin(f"{event.id} confirming on fresh rounds{self._status(event.state)}")
            case DeliveryStarted():
                self._begin(f"building the champion {event.id}")
            case StageStarted():
                self._step(event.stage)
            case PassesProbed():
                self.write("testing which passes change the model")
            case RoundDone():
                self._step(f"round {event.number}")
            case CalibrationRoundDone():
                self.write(f"measuring noise of the baseline: A/A round {event.number}")
            case ModelStarted() | SearchPlanned() | TrialEnded() | ConfirmationEnded():
                self._say(event)

    def _begin(self, now: str, label: str = "") -> None:
        self._now, self._label = now, label
        self._step()

    def _step(self, step: str = "") -> None:
        """The running trial; what it changes comes last, because that is what a narrow terminal may cut off."""
        self.write(" · ".join(part for part in (self._now, step, self._label) if part))

    def _status(self, state: State) -> str:
        ranked = rank_runners(state.trials)
        leads = ranked and ranked[0].score > 0
        best = f" · {ranked[0].trial.id} leads, {gain_pct(ranked[0].score):.1f} % saved" if leads else ""
        left = self._budget_s - state.seconds
        return f"{best}{'' if math.isinf(left) else f' · {max(0.0, left):.0f} s left'}"

    def _say(self, event: ModelStarted | SearchPlanned | TrialEnded | ConfirmationEnded) -> None:
        """A line that stays."""
        self.write("")
        match event:
            case ModelStarted():
                say("note", f"model {event.number} of {event.total}: {event.model}")
            case SearchPlanned():
                self._budget_s = event.limits.budget_s
                skipped = sum(note.excludes for note in event.insight.notes)
                count = event.insight.space.size
                say("note", f"{'thousands of' if count is None else count} choices; {skipped} levels skipped")
            case TrialEnded():
                trial = event.trial
                say("note", f"{trial.id} {trial.label}: {_outcome(event)} ({trial.seconds:.1f} s)")
            case ConfirmationEnded():
                done = event.confirmation
                word = "KEEP_CONFIRMED" if done.confirmed else "MARGINAL_UNCONFIRMED"
                say("note", f"{done.trial} {word}: {done.verdict.reason}")


def _outcome(event: TrialEnded) -> str:
    trial, verdict = event.trial, event.verdict
    if verdict is None:
        return f"{trial.outcome}{': ' + trial.reason if trial.reason else ''}"
    if verdict.gain_pct is None:
        return f"{verdict.verdict}: {verdict.reason}"
    low, high = verdict.interval_pct or (verdict.gain_pct, verdict.gain_pct)
    between = "" if low == high else f" ({low:+.1f} … {high:+.1f})"
    return f"{verdict.verdict}, {verdict.gain_pct:+.1f} % saved{between}"

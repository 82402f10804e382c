"""Progress of a search: finished trials as lines, the running one as a line that is written over."""

from __future__ import annotations

import math
from typing import Any

from winml.modelkit.building.events import StageStarted
from winml.modelkit.cli.console import say
from winml.modelkit.cli.progress import LineProgress
from winml.modelkit.core.verdict import gain_pct
from winml.modelkit.measuring.events import CalibrationRoundDone, CalibrationStarted, RoundDone, RoundsStarted
from winml.modelkit.render.autoconfig import gain_words
from winml.modelkit.render.progress_line import OF_BUDGET
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
from winml.modelkit.search.trial_state import name_state


class SearchProgress(LineProgress):
    """The running trial, the leader, the time left; verdicts as they come."""

    times_whole = True
    _now, _label = "", ""
    _budget_s = math.inf
    _trials: int | None = None
    _most_rounds: int | None = None
    _calibration_rounds = 0

    def show(self, event: Any) -> None:
        match event:
            case TrialStarted():
                number = len(event.state.trials) + 1
                of = "" if self._trials is None else f" ({number} of at most {self._trials})"
                self._begin(f"{event.id}{of}{self._status(event.state)}", label(event.choice))
            case RoundStarted():
                self._begin(f"{event.id} another round{self._status(event.state)}")
            case ConfirmationStarted():
                self._begin(f"{event.id} confirming on fresh rounds{self._status(event.state)}")
            case DeliveryStarted():
                self._begin(f"building the champion {event.id}")
            case StageStarted():
                self._step(event.stage)
            case PassesProbed():
                self.begin("testing which passes change the model")
            case RoundsStarted() | RoundDone() | CalibrationStarted() | CalibrationRoundDone():
                self._show_round(event)
            case ModelStarted() | SearchPlanned() | TrialEnded() | ConfirmationEnded():
                self._say(event)

    def _begin(self, now: str, label: str = "") -> None:
        self._now, self._label, self._most_rounds = now, label, None
        self._step()

    def _step(self, step: str = "") -> None:
        """The running trial; what it changes comes last, because that is what a narrow terminal may cut off."""
        self.step(f"{self._now} · {step}" if step else self._now, self._label)

    def _show_round(self, event: RoundsStarted | RoundDone | CalibrationStarted | CalibrationRoundDone) -> None:
        match event:
            case RoundsStarted():
                self._most_rounds = event.most
            case RoundDone():
                of = "" if self._most_rounds is None else f" of at most {self._most_rounds}"
                self._step(f"round {event.number}{of}")
            case CalibrationStarted():
                self._calibration_rounds = event.rounds
            case CalibrationRoundDone():
                rounds = f"{event.number} of {self._calibration_rounds}"
                self.step(f"measuring noise of the baseline: A/A round {rounds}")

    def _status(self, state: State) -> str:
        ranked = rank_runners(state.trials)
        leads = ranked and ranked[0].score > 0
        left = self._budget_s - state.seconds
        self.expect(None if math.isinf(left) else max(0.0, left), OF_BUDGET)
        return f" · {ranked[0].trial.id} leads, {gain_pct(ranked[0].score):.1f} % saved" if leads else ""

    def _say(self, event: ModelStarted | SearchPlanned | TrialEnded | ConfirmationEnded) -> None:
        """A line that stays."""
        match event:
            case ModelStarted():
                self.expect(None)
                say("note", f"model {event.number} of {event.total}: {event.model}")
            case SearchPlanned():
                self._budget_s, self._trials = event.limits.budget_s, event.trials
                skipped = sum(note.excludes for note in event.insight.notes)
                count = event.insight.space.size
                space = f"{'thousands of' if count is None else count} configs to choose from"
                say("note", f"{space}; {skipped} setting{'' if skipped == 1 else 's'} skipped" if skipped else space)
            case TrialEnded():
                say("note", _describe_trial(event))
            case ConfirmationEnded():
                done = event.confirmation
                words = "confirmed" if done.confirmed else "not confirmed"
                rounds = "" if done.verdict.metric is None else " on fresh rounds"
                say("note", f"{done.trial} {words}{rounds} · {gain_words(done.verdict)}")


def _describe_trial(event: TrialEnded) -> str:
    """`h1 kept · quantize.scheme=int8 · 1.93x faster (1.90 … 1.97) · 15.3 s`."""
    trial, verdict = event.trial, event.verdict
    parts = [f"{trial.id} {name_state(trial.outcome, verdict)}"]
    if trial.outcome != "baseline":
        parts.append(trial.label)
    parts.append(trial.reason if verdict is None else gain_words(verdict))
    return " · ".join(part for part in (*parts, f"{trial.seconds:.1f} s") if part)

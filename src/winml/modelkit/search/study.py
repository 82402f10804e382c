"""The loop: gets the next action, runs it, records the result. It does not know what it optimises."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from winml.modelkit.core.errors import RunFailedError
from winml.modelkit.core.events import OnEvent, ignore
from winml.modelkit.search import strategy
from winml.modelkit.search.events import (
    ConfirmationEnded,
    ConfirmationStarted,
    RoundStarted,
    TrialEnded,
    TrialStarted,
)
from winml.modelkit.search.guards import Guards, SearchTools
from winml.modelkit.search.records import (
    CalibrationRecord,
    ConfirmationRecord,
    PreparationRecord,
    Record,
    RoundsRecord,
    TrialRecord,
    apply,
    replay,
)
from winml.modelkit.search.space import Choice, trial_id
from winml.modelkit.search.strategy import Confirm, Finish, More, SearchPlan, Try
from winml.modelkit.search.trial import Note, Trial


class Study:
    """One search. `append` must have written the record to disk when it returns."""

    def __init__(
        self,
        plan: SearchPlan,
        tools: SearchTools,
        *,
        append: Callable[[Record], None],
        records: Iterable[Record] = (),
        because: Callable[[Choice], tuple[Note, ...]] = lambda choice: (),
        on_event: OnEvent = ignore,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.plan = plan
        self.state = replay(records)
        self._guards = Guards(tools)
        self._append = append
        self._because = because
        self._on_event = on_event
        self._clock = clock
        self._after: Callable[[], None] = lambda: None

    def watch(self, after: Callable[[], None]) -> None:
        """Call `after` now and after every record."""
        self._after = after
        after()

    def note_preparation(self, seconds: float) -> None:
        """Record the time before the first action, unless nothing is left to do."""
        if not isinstance(strategy.decide(self.state, self.plan), Finish):
            self._write(PreparationRecord(seconds=seconds))

    def run(self) -> str:
        """Run until nothing is left to do; returns the reason."""
        while True:
            match strategy.decide(self.state, self.plan):
                case Try() as action:
                    self._try(action)
                case More() as action:
                    self._measure_more(action)
                case Confirm() as action:
                    self._confirm(action)
                case Finish() as action:
                    return action.reason

    def _write(self, record: Record) -> None:
        self._append(record)
        self.state = apply(record, self.state)
        self._after()

    def _try(self, action: Try) -> None:
        started = self._clock()
        name = trial_id(action.choice, len(self.state.trials))
        self._on_event(TrialStarted(name, action.choice, self.state))
        config = self.plan.space.config(action.choice)
        attempt = self._guards.attempt(config, self.state.trials, self.plan.rounds)
        if not self.state.trials and attempt.outcome != "baseline":
            raise RunFailedError(f"the baseline does not work: {attempt.reason}", details={"baseline": attempt.reason})
        if attempt.calibration is not None:
            self._write(CalibrationRecord(values=attempt.calibration))
        trial = Trial(
            id=name,
            choice=action.choice,
            outcome=attempt.outcome,
            reason=attempt.reason,
            option=action.option,
            same_as=attempt.same_as,
            series=attempt.series,
            facts=attempt.facts,
            because=self._because(action.choice),
            seconds=self._clock() - started,
        )
        verdict = None if trial.series is None else self.plan.yardstick_for(self.state).verdict(trial.series)
        self._write(TrialRecord(trial=trial, seconds=trial.seconds))
        self._on_event(TrialEnded(trial, verdict))

    def _measure_more(self, action: More) -> None:
        started = self._clock()
        trial = self.state.trial(action.trial)
        self._on_event(RoundStarted(trial.id, self.state))
        series = self._guards.measure_more(trial)
        self._write(RoundsRecord(trial=trial.id, series=series, seconds=self._clock() - started))

    def _confirm(self, action: Confirm) -> None:
        started = self._clock()
        trial = self.state.trial(action.trial)
        self._on_event(ConfirmationStarted(trial.id, self.state))
        verdict, measured = self._guards.confirm(trial, action.within_s)
        self._write(
            ConfirmationRecord(
                trial=trial.id,
                confirmed=verdict.kept,
                verdict=verdict,
                measured=measured,
                seconds=self._clock() - started,
            )
        )
        self._on_event(ConfirmationEnded(self.state.confirmations[-1]))

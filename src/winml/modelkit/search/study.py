"""The loop: asks what to do, lets it be done, writes down what came of it. It does not know what it optimises."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NotRequired, Protocol, TypedDict

from winml.modelkit.core.errors import DataError, RunFailedError
from winml.modelkit.core.verdict import Verdict
from winml.modelkit.search import strategy
from winml.modelkit.search.space import Choice
from winml.modelkit.search.strategy import Action, Confirm, Confirmation, Finish, More, Plan, State, Try
from winml.modelkit.search.trial import (
    Outcome,
    Series,
    SeriesForm,
    Trial,
    TrialForm,
    series_from_json,
    trial_from_json,
)
from winml.modelkit.store.journal import Forms

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Tried:
    """How far a choice got."""

    outcome: Outcome
    reason: str = ""
    same_as: str | None = None
    series: Series | None = None
    facts: Mapping[str, Any] | None = None
    calibration: Mapping[str, tuple[float, ...]] | None = None
    """A/A rounds, when this was the first time they were needed."""


class Bench(Protocol):
    """What a study needs done; each call may take minutes and survives whatever a config does to its process."""

    def attempt(self, choice: Choice, config: dict[str, Any], trials: tuple[Trial, ...], rounds: int) -> Tried:
        """Build, check and measure a config; `trials` are those before it, the baseline first."""
        ...

    def more(self, trial: Trial) -> Series:
        """One more round of a trial."""
        ...

    def confirm(self, trial: Trial, within_s: float) -> tuple[Verdict, Mapping[str, Any]]:
        """The verdict of fresh rounds against the baseline, taken for so long at most, and what was measured."""
        ...


def _extended(trials: tuple[Trial, ...], name: str, more: Series) -> tuple[Trial, ...]:
    return tuple(
        replace(t, series=more if t.series is None else t.series.joined(more)) if t.id == name else t for t in trials
    )


class _Study(TypedDict):
    winml: str
    identity: dict[str, Any]


class _TrialRecord(TypedDict):
    trial: TrialForm
    seconds: NotRequired[float]


class _RoundsRecord(TypedDict):
    trial: str
    series: SeriesForm
    seconds: NotRequired[float]


class _CalibrationRecord(TypedDict):
    values: dict[str, list[float]]
    seconds: NotRequired[float]


class _ConfirmationRecord(TypedDict):
    trial: str
    confirmed: bool
    verdict: Verdict
    measured: dict[str, Any]
    seconds: NotRequired[float]


class _PreparationRecord(TypedDict):
    seconds: float


class _EvidenceRecord(TypedDict):
    finding: str
    holds: bool
    words: str


FORMS = Forms(
    "kind",
    {
        "study": _Study,
        "trial": _TrialRecord,
        "rounds": _RoundsRecord,
        "calibration": _CalibrationRecord,
        "confirmation": _ConfirmationRecord,
        "evidence": _EvidenceRecord,
        "preparation": _PreparationRecord,
    },
)
"""What the records of a search look like."""


def _check_order(record: Record, known: frozenset[str]) -> None:
    """Raise when a record speaks of a trial that was never made, or is the first and no baseline."""
    kind = record["kind"]
    if kind in ("rounds", "confirmation") and record["trial"] not in known:
        raise DataError(f"the journal speaks of trial `{record['trial']}` before there is one")
    if kind == "trial":
        _check_trial(record["trial"], known)


def _check_trial(trial: Record, known: frozenset[str]) -> None:
    name, outcome = trial["id"], trial["outcome"]
    if name in known:
        raise DataError(f"the journal has trial `{name}` twice")
    if (outcome == "baseline") == bool(known):
        raise DataError("the first trial of a journal is its baseline, and no other")
    if outcome == "measured" and trial["series"] is None:
        raise DataError(f"the journal says that trial `{name}` was measured, but has no rounds of it")
    if trial["same_as"] is not None and trial["same_as"] not in known:
        raise DataError(f"trial `{name}` is the same as `{trial['same_as']}`, which the journal does not have")


def folded(state: State, record: Record) -> State:
    """The state after one more record; records of other kinds change nothing."""
    kind = record["kind"]
    if kind not in FORMS.by_kind:  # of a later version
        return state
    seconds = state.seconds + record.get("seconds", 0.0)
    if kind == "trial":
        return replace(state, trials=(*state.trials, trial_from_json(record["trial"])), seconds=seconds)
    if kind == "rounds":
        trials = _extended(state.trials, record["trial"], series_from_json(record["series"]))
        return replace(state, trials=trials, seconds=seconds)
    if kind == "preparation":
        return replace(state, preparation_s=record["seconds"], seconds=seconds)
    if kind == "calibration":
        values = {clock: tuple(taken) for clock, taken in record["values"].items()}
        return replace(state, calibration=values, seconds=seconds)
    if kind == "confirmation":
        done = Confirmation(record["trial"], record["confirmed"], record["verdict"], record["measured"])
        return replace(state, confirmations=(*state.confirmations, done), seconds=seconds)
    return state


def replayed(records: Iterable[Record]) -> State:
    """The state that a journal tells of."""
    state = State()
    for record in records:
        _check_order(record, frozenset(trial.id for trial in state.trials))
        state = folded(state, record)
    return state


class Study:
    """One search. `append` must have the record on the disk when it returns."""

    def __init__(
        self,
        plan: Plan,
        bench: Bench,
        *,
        append: Callable[[dict[str, Any]], None],
        records: Iterable[Record] = (),
        name: Callable[[Choice, int], str] = lambda choice, number: f"h{number}",
        because: Callable[[Choice], tuple[Mapping[str, Any], ...]] = lambda choice: (),
        on_event: Callable[[dict[str, Any]], None] = lambda event: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.plan = plan
        self.state = replayed(records)
        self._bench = bench
        self._append = append
        self._name = name
        self._because = because
        self._on_event = on_event
        self._clock = clock
        self._after: Callable[[], None] = lambda: None

    def watch(self, after: Callable[[], None]) -> None:
        """Call `after` whenever a record was written."""
        self._after = after
        after()

    def note_preparation(self, seconds: float) -> None:
        """Count the time before the first action; a study with nothing left to do stays as it is."""
        if not isinstance(strategy.decide(self.state, self.plan), Finish):
            self._append(record := {"kind": "preparation", "seconds": seconds})
            self.state = folded(self.state, record)

    def run(self) -> str:
        """Go on until there is nothing left to do; why it ended."""
        while True:
            action = strategy.decide(self.state, self.plan)
            if isinstance(action, Finish):
                return action.reason
            self._do(action)

    def _write(self, record: dict[str, Any], verdict: Verdict | None = None) -> None:
        self._append(record)
        self.state = folded(self.state, record)
        self._after()
        self._on_event({"event": record["kind"], "record": record, "state": self.state, "verdict": verdict})

    def _do(self, action: Action) -> None:
        started = self._clock()
        if isinstance(action, Try):
            self._try(action, started)
        elif isinstance(action, More):
            self._more(action, started)
        elif isinstance(action, Confirm):
            self._confirm(action, started)

    def _try(self, action: Try, started: float) -> None:
        name = self._name(action.choice, len(self.state.trials))
        self._on_event({"event": "trying", "id": name, "choice": action.choice, "state": self.state})
        config = self.plan.space.config(action.choice)
        tried = self._bench.attempt(action.choice, config, self.state.trials, self.plan.rounds)
        if not self.state.trials and tried.outcome != "baseline":
            raise RunFailedError(f"the baseline does not work: {tried.reason}", details={"baseline": tried.reason})
        if tried.calibration is not None:
            values = {clock: list(taken) for clock, taken in tried.calibration.items()}
            self._write({"kind": "calibration", "values": values})
        trial = Trial(
            id=name,
            choice=action.choice,
            outcome=tried.outcome,
            reason=tried.reason,
            option=action.option,
            same_as=tried.same_as,
            series=tried.series,
            facts=tried.facts or {},
            because=self._because(action.choice),
            seconds=self._clock() - started,
        )
        verdict = None if trial.series is None else self.plan.measured_by(self.state).verdict(trial.series)
        self._write({"kind": "trial", "trial": trial.to_json(), "seconds": trial.seconds}, verdict)

    def _more(self, action: More, started: float) -> None:
        trial = self.state.trial(action.trial)
        self._on_event({"event": "racing", "id": trial.id, "state": self.state})
        series = self._measured_more(trial)
        seconds = self._clock() - started
        self._write({"kind": "rounds", "trial": trial.id, "series": series.to_json(), "seconds": seconds})

    def _measured_more(self, trial: Trial) -> Series:
        assert trial.series is not None
        try:
            return self._bench.more(trial)
        except RunFailedError as error:
            # A config that worked and then fails is out of the race, and the search goes on.
            values: dict[str, tuple[float, ...]] = dict.fromkeys(trial.series.values, ())
            return Series(trial.series.metric, values, f"it failed in a later round: {error.message}")

    def _confirm(self, action: Confirm, started: float) -> None:
        trial = self.state.trial(action.trial)
        self._on_event({"event": "confirming", "id": trial.id, "state": self.state})
        verdict, measured = self._bench.confirm(trial, action.within_s)
        self._write(
            {
                "kind": "confirmation",
                "trial": trial.id,
                "confirmed": verdict.kept,
                "verdict": verdict.to_json(),
                "measured": dict(measured),
                "seconds": self._clock() - started,
            }
        )

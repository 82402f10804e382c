"""The next action, as a pure function of the state: a search that was killed resumes where it was.

Few choices are all tried and raced. Of many, every level is tried once in the best context so far, a log-additive model
predicts the others, and the best predictions are tried and raced.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.knob import DEFAULT
from winml.modelkit.core.verdict import Verdict
from winml.modelkit.search import model, race
from winml.modelkit.search.space import Choice, Option, Space
from winml.modelkit.search.trial import FreshRounds, Trial, Yardstick

RACE_ALL = 20
PREDICTED_TRIES = 10
FIELD = 8
"""How many of many trials are raced."""
MIN_WORTH = math.log(1.001)
"""A choice that cannot beat the leader by this is not worth a build."""
SUSPECT_COST = 0.05
"""Penalty in a prediction for a pair of levels that occurred only in failed trials."""
HOPE = 1.0
"""How many standard deviations are added to a prediction: what is unknown may be good."""
LOOKED_AT = 400
"""How many of the best predictions are searched for an untried one."""
CONFIRMED_AT_MOST = 3
NOT_SLOWER = 1.05
"""A choice that took this many times as long as the baseline in its first runs may still be faster."""
NARROWED_AT_MOST = 2
"""Of so many choices that are fast and too inaccurate, narrower variants are tried."""
SETTLED_AT_MOST = 4
"""Up to this many trials that nothing was decided about get their rounds before the search ends."""


@dataclass(frozen=True)
class Confirmation:
    """A trial measured again on fresh rounds."""

    trial: str
    confirmed: bool
    verdict: Verdict
    measured: FreshRounds


@dataclass(frozen=True)
class State:
    """Everything that happened so far."""

    trials: tuple[Trial, ...] = ()
    confirmations: tuple[Confirmation, ...] = ()
    calibration: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    seconds: float = 0.0
    """Time spent, over all runs."""
    preparation_s: float = 0.0
    """Of that, before the first trial of the last run."""

    @property
    def choices(self) -> set[Choice]:
        """Every choice that was tried."""
        return {trial.choice for trial in self.trials}

    def trial(self, name: str) -> Trial:
        return next(trial for trial in self.trials if trial.id == name)


@dataclass(frozen=True)
class SearchLimits:
    """When to stop before everything is tried."""

    budget_s: float = math.inf
    stop_at_pct: float | None = None
    """Stop when the leader certainly saves this much."""
    max_discards: int | None = None
    """Stop after this many trials in a row without a new leader."""


@dataclass(frozen=True)
class SearchPlan:
    """What is searched and how."""

    space: Space
    yardstick: Yardstick
    priority: Callable[[Option], float] = lambda option: 0.0
    """Priority of a level; higher is tried first."""
    is_allowed: Callable[[Choice, State], bool] = lambda choice, state: True
    """Whether a choice may be tried, given the state."""
    limits: SearchLimits = SearchLimits()
    rounds: int = 3
    """Rounds of a first look."""
    predicted_tries: int = PREDICTED_TRIES
    race_all: int = RACE_ALL
    """Up to this many choices besides the baseline are all tried."""
    leave_failing: bool = True
    """Whether to skip a level that failed in two contexts."""

    @cached_property
    def all_raced(self) -> bool:
        return self.space.count(limit=self.race_all + 2) <= self.race_all + 1

    def yardstick_for(self, state: State) -> Yardstick:
        return Yardstick(self.yardstick.protocol, state.calibration)


@dataclass(frozen=True)
class Try:
    """Build, check and measure a choice."""

    choice: Choice
    option: Option | None = None


@dataclass(frozen=True)
class More:
    """Measure a trial for another round."""

    trial: str


@dataclass(frozen=True)
class Confirm:
    """Measure a leader on fresh rounds, for at most `within_s`."""

    trial: str
    within_s: float = math.inf


@dataclass(frozen=True)
class Finish:
    """There is nothing left to do."""

    reason: str


Action = Try | More | Confirm | Finish


def decide(state: State, plan: SearchPlan) -> Action:
    """The next action."""
    if not state.trials:
        return Try(())
    stopped = _reason_to_stop(state, plan)
    if stopped is None:
        if plan.all_raced:
            choice = _next_of_all(state, plan)
        else:
            choice = (
                _next_narrowed(state, plan)
                or _next_screened(state, plan)
                or _next_retried(state, plan)
                or _next_predicted(state, plan)
            )
        action = choice or _next_round(state, plan)
        if action is not None:
            return action
    leader = _to_confirm(state, plan)
    if leader is None:
        undecided = None if is_out_of_budget(state, plan) else _next_undecided(state, plan)
        if undecided is not None:
            return More(undecided.id)
        return Finish(stopped or "everything worth a trial was tried")
    left = plan.limits.budget_s - state.seconds - state.preparation_s
    return Confirm(leader.id, max(left, _trial_s(state)))


def _reason_to_stop(state: State, plan: SearchPlan) -> str | None:
    """Why the search stops trying, None while it continues."""
    limits = plan.limits
    if is_out_of_budget(state, plan):
        return "the budget is used up"
    discards = consecutive_discards(state)
    if limits.max_discards is not None and discards >= limits.max_discards:
        return "the last trial did not lead" if discards == 1 else f"{discards} trials in a row did not lead"
    ranked = race.rank_runners(state.trials)
    if limits.stop_at_pct is not None and ranked:
        verdict = plan.yardstick_for(state).verdict_of(ranked[0].trial)
        if verdict.kept and verdict.interval_pct is not None and verdict.interval_pct[0] >= limits.stop_at_pct:
            return f"{ranked[0].trial.id} certainly saves {limits.stop_at_pct:g} %"
    return None


def reserve_s(state: State) -> float:
    """Time reserved for one more trial, confirming the leader and delivering it."""
    # Delivery starts the same processes and reads the same model as the preparation.
    return 2 * _trial_s(state) + state.preparation_s


def _trial_s(state: State) -> float:
    """The longest of the recent trials; before the first one, the baseline's estimate."""
    baseline = state.trials[0]
    expected = baseline.seconds if baseline.facts.verdict_s is None else baseline.facts.verdict_s
    return max([trial.seconds for trial in state.trials[1:] if trial.outcome == "measured"][-5:], default=expected)


def consecutive_discards(state: State) -> int:
    """How many trials were run since the last new leader; the baseline leads first."""
    best, since = 0.0, 0
    for trial in state.trials[1:]:
        found = race.rank_runners([trial])
        if found and found[0].score > best:
            best, since = found[0].score, 0
        else:
            since += 1
    return since


def _next_of_all(state: State, plan: SearchPlan) -> Try | None:
    """The most promising untried choice; a level that failed in two contexts is skipped."""
    tried, dead = state.choices, _dead(state) if plan.leave_failing else set()
    left = [
        choice
        for choice in plan.space.choices()
        if choice not in tried and not dead.intersection(choice) and plan.is_allowed(choice, state)
    ]
    if not left:
        return None
    return Try(max(left, key=lambda choice: (sum(plan.priority(option) for option in choice), -len(choice))))


def _next_narrowed(state: State, plan: SearchPlan) -> Try | None:
    """A narrower variant of a choice that is fast and too inaccurate: the question is which part of it fails.

    Variants of the fastest such choices come first; of those, the one that was most accurate is narrowed once more
    while no variant is accurate enough.
    """
    for parent in _too_inaccurate(state, plan):
        tried = _try_narrowed(parent.choice, state, plan)
        if tried is not None:
            return tried
        variants = [t for t in state.trials if t.option is not None and _narrows(t, parent, plan)]
        if any(variant.works for variant in variants):
            continue
        failed = [t for t in variants if t.outcome == "inaccurate" and _quality(t) > _quality(parent)]
        if failed:
            closest = max(failed, key=_quality)
            tried = _try_narrowed(closest.choice, state, plan)
            if tried is not None:
                return tried
    return None


def _too_inaccurate(state: State, plan: SearchPlan) -> list[Trial]:
    """Choices that failed on accuracy alone and were not slower in their first runs, the fastest first."""
    base = (state.trials[0].facts.ms or {}).get("wall")

    def ratio(trial: Trial) -> float:
        ms = (trial.facts.ms or {}).get("wall")
        return 1.0 if ms is None or not base else ms / base

    found = [
        trial
        for trial in state.trials
        if trial.outcome == "inaccurate"
        and trial.same_as is None
        and ratio(trial) <= NOT_SLOWER
        and not any(plan.space.knob(knob).narrows for knob, _ in trial.choice)
    ]
    return sorted(found, key=ratio)[:NARROWED_AT_MOST]


def _try_narrowed(choice: Choice, state: State, plan: SearchPlan) -> Try | None:
    """A choice with one more level that narrows it; those that matter most come first."""
    has = {knob for knob, _ in choice}
    options = [o for o in plan.space.options() if plan.space.knob(o[0]).narrows and o[0] not in has]
    return _first_in([choice], sorted(options, key=lambda option: -plan.priority(option)), state, plan)


def _narrows(trial: Trial, parent: Trial, plan: SearchPlan) -> bool:
    """Whether a trial is a choice with one level more, which narrows it."""
    more = set(trial.choice) - set(parent.choice)
    return len(trial.choice) == len(parent.choice) + 1 == len(parent.choice) + len(more) and all(
        plan.space.knob(knob).narrows for knob, _ in more
    )


def _quality(trial: Trial) -> float:
    """How accurate a trial was, more being better; what is unknown is worst."""
    known = trial.facts.accuracy
    if known is None or known.value is None:
        return -math.inf
    return -known.value if known.less_is_better else known.value


def _contexts(state: State) -> list[Choice]:
    """Working choices, best first, including the baseline; among those close to the best, the simplest first."""
    scores = dict(_scores(state))
    close = max(scores.values()) - race.NEGLIGIBLE

    def rank(choice: Choice) -> tuple[bool, float]:
        behind = scores[choice] < close
        return behind, -scores[choice] if behind else len(choice)

    return sorted(scores, key=rank)


def _scores(state: State) -> Iterator[tuple[Choice, float]]:
    """Every working choice with its score; a duplicate has the score of its twin."""
    known = {runner.trial.id: runner.score for runner in race.rank_runners(state.trials)}
    for trial in state.trials:
        if trial.outcome == "baseline":
            known[trial.id] = 0.0
        if trial.outcome == "same" and trial.same_as in known:
            known[trial.id] = known[trial.same_as]
        if trial.id in known:
            yield trial.choice, known[trial.id]


def _next_screened(state: State, plan: SearchPlan) -> Try | None:
    """The first untried level, in the best context in which it has an effect."""
    seen = {option for trial in state.trials for option in trial.choice}
    seen |= {trial.option for trial in state.trials if trial.option is not None}
    options = sorted(plan.space.options(), key=lambda option: -plan.priority(option))
    unseen = (option for option in options if option not in seen)
    return _first_in(_contexts(state), unseen, state, plan)


def _first_in(contexts: Sequence[Choice], options: Iterable[Option], state: State, plan: SearchPlan) -> Try | None:
    """The first level that has an effect in one of the contexts and may be tried there."""
    tried = state.choices
    for option in options:
        for context in contexts:
            choice = plan.space.with_level(context, *option)
            if option in choice and choice not in tried and plan.is_allowed(choice, state):
                return Try(choice, option)
    return None


def _next_retried(state: State, plan: SearchPlan) -> Try | None:
    """A level that failed once and never worked, in the best context of those least like the one it failed in."""
    works = {option for trial in state.trials if trial.works for option in trial.choice}
    for option, trials in _failures(state).items():
        if option in works or len(trials) > 1:
            continue
        failed = set(trials[0].choice)
        contexts = sorted(_contexts(state), key=lambda context: len(failed.intersection(context)))
        again = _first_in(contexts, (option,), state, plan)
        if again is not None:
            return again
    return None


def _failures(state: State) -> dict[Option, list[Trial]]:
    """Failed trials by the level they were tried for."""
    found: dict[Option, list[Trial]] = {}
    for trial in state.trials:
        option = trial.option or (trial.choice[0] if len(trial.choice) == 1 else None)
        if not trial.works and option is not None:
            found.setdefault(option, []).append(trial)
    return found


def _dead(state: State) -> set[Option]:
    """Levels that never worked, and failed in trials whose other levels work and have nothing else in common."""
    works = {option for trial in state.trials if trial.works for option in trial.choice}
    failed = [set(trial.choice) for trial in state.trials if not trial.works]
    dead = set()
    for option in set().union(*failed) - works:
        blamed = [choice for choice in failed if option in choice and works.issuperset(choice - {option})]
        if len(blamed) > 1 and set.intersection(*blamed) == {option}:
            dead.add(option)
    return dead


Pair = frozenset[Option]


def _pairs(choice: Choice) -> set[Pair]:
    return {frozenset(pair) for pair in itertools.combinations(choice, 2)}


def _suspects(state: State) -> tuple[set[Pair], set[Pair]]:
    """Pairs of levels that occurred only in failed trials, and those that alone explain a failure."""
    innocent = {pair for trial in state.trials if trial.works for pair in _pairs(trial.choice)}
    left = [_pairs(trial.choice) - innocent for trial in state.trials if not trial.works]
    return set().union(*left), {pair for pairs in left if len(pairs) == 1 for pair in pairs}


def _next_predicted(state: State, plan: SearchPlan) -> Try | None:
    """The untried choice that the model ranks best, while it is worth a build."""
    asked_for = sum(trial.option is None for trial in state.trials[1:])
    ranked = race.rank_runners(state.trials)
    if asked_for >= plan.predicted_tries or not ranked:
        return None
    best = max(_predictions(state, plan), key=lambda pair: (pair[0], -len(pair[1])), default=None)
    return Try(best[1]) if best is not None and best[0] > ranked[0].score + MIN_WORTH else None


def _predictions(state: State, plan: SearchPlan) -> Iterator[tuple[float, Choice]]:
    """Untried choices that are not known to fail, with their optimistic prediction."""
    expectation = model.SpeedupModel(list(_scores(state)))
    works = {option for trial in state.trials if trial.works for option in trial.choice}
    worth = {option: expectation.predict((option,))[0] for option in works}
    tried, (suspects, guilty) = state.choices, _suspects(state)
    likely = itertools.islice(plan.space.best(lambda *option: worth.get(option, -math.inf)), LOOKED_AT)
    for choice in dict.fromkeys((*likely, *_neighbours(state, plan, works))):
        pairs = _pairs(choice)
        if choice not in tried and works.issuperset(choice) and not guilty & pairs and plan.is_allowed(choice, state):
            mean, deviation = expectation.predict(choice)
            cost = SUSPECT_COST * len(suspects & pairs)
            yield mean + HOPE * deviation - cost, choice


def _neighbours(state: State, plan: SearchPlan, works: set[Option]) -> Iterator[Choice]:
    """Choices one level away from the leaders."""
    for context in _contexts(state)[:FIELD]:
        for knob, _ in context:
            yield plan.space.with_level(context, knob, DEFAULT)
        for option in works:
            yield plan.space.with_level(context, *option)


def _next_round(state: State, plan: SearchPlan) -> More | None:
    field_size = len(state.trials) if len(state.trials) <= RACE_ALL + 1 and plan.all_raced else FIELD
    trial = race.choose_runner(
        state.trials,
        plan.yardstick_for(state),
        field_size=field_size,
        max_rounds=plan.yardstick.protocol.max_rounds,
    )
    return None if trial is None else More(trial.id)


def _to_confirm(state: State, plan: SearchPlan) -> Trial | None:
    """The best trial that may beat the baseline and is not confirmed yet; None after three failed confirmations."""
    answers = {done.trial: done.confirmed for done in state.confirmations}
    refused = sum(not confirmed for confirmed in answers.values())
    yardstick = plan.yardstick_for(state)
    contenders = [
        runner.trial
        for runner in race.put_simplest_first(race.rank_runners(state.trials))
        if runner.score > 0 and yardstick.verdict_of(runner.trial).verdict != "DISCARD"
    ]
    for trial in contenders:
        if answers.get(trial.id) or refused >= CONFIRMED_AT_MOST:
            return None
        if trial.id not in answers:
            return trial
    return None


def _next_undecided(state: State, plan: SearchPlan) -> Trial | None:
    """A trial that neither lost against the champion nor has a verdict, while few are left so."""
    left = find_undecided(state, plan.yardstick_for(state))
    open_ones = [
        t for t in left if t.series is not None and len(t.series.deciding) < plan.yardstick.protocol.max_rounds
    ]
    return open_ones[0] if len(left) <= SETTLED_AT_MOST and open_ones else None


def find_undecided(state: State, yardstick: Yardstick) -> list[Trial]:
    """The trials that might still gain something, and of which nothing says that the champion is better."""
    champion = choose_champion(state)
    confirmed = {done.trial for done in state.confirmations}
    return [
        runner.trial
        for runner in race.rank_runners(state.trials)
        if runner.trial.id not in confirmed
        and yardstick.verdict_of(runner.trial).verdict == "INCONCLUSIVE"
        and (champion.outcome == "baseline" or not race.is_behind(runner.trial, champion, yardstick))
    ]


def choose_champion(state: State) -> Trial:
    """The best trial that was confirmed, or the baseline when none was."""
    confirmed = [done.trial for done in state.confirmations if done.confirmed]
    ranked = race.put_simplest_first(race.rank_runners(state.trials))
    return next((runner.trial for runner in ranked if runner.trial.id in confirmed), state.trials[0])


def is_out_of_budget(state: State, plan: SearchPlan) -> bool:
    """Whether what is left of the budget is reserved."""
    return plan.limits.budget_s - state.seconds < reserve_s(state)


def is_finished(state: State, plan: SearchPlan) -> bool:
    return isinstance(decide(state, plan), Finish)

"""What is known before the first trial: which levels are skipped, which come first, and the source of each decision."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.knowledge.rules import Advice
from winml.modelkit.search.space import Choice, ConfigJSON, Option, Space
from winml.modelkit.search.strategy import State
from winml.modelkit.search.trial import Note, Trial

if TYPE_CHECKING:
    from winml.modelkit.building.optimize.result import Candidate

NOT_FINDINGS = ("graph", "data", "target", "objective")
"""Sources of notes that are no findings."""
COLLAPSE = "accuracy-collapse"

_WEIGHTS = {"start": 100.0, "first": 10.0, "last": -10.0, "finish": -100.0}
"""What advice adds to the priority of its levels; `finish` comes when nothing else is left."""


Concerns = Callable[[Advice, ConfigJSON], bool]
"""Whether advice applies to a config."""


@dataclass(frozen=True)
class Insight:
    """Notes on levels, and advice that depends on what happens."""

    notes: tuple[Note, ...]
    waiting: tuple[Advice, ...]
    """Advice that takes effect once a config it applies to was inaccurate."""
    space: Space
    """Without the skipped levels."""
    concerns: Concerns

    def priority(self, option: Option) -> float:
        return self.space.knob(option[0]).prior + sum(note.weight for note in self.notes if note.option == option)

    def because(self, choice: Choice) -> tuple[Note, ...]:
        """Notes for or against the levels of a choice."""
        return tuple(note for note in self.notes if note.option in choice)

    def is_allowed(self, choice: Choice, state: State) -> bool:
        """Whether no advice forbids a choice, given the trials so far."""
        return self.forbidding_advice(choice, state.trials) is None

    def forbidding_advice(self, choice: Choice, trials: Iterable[Trial]) -> Advice | None:
        """The advice against a choice that took effect after a collapse of accuracy."""
        collapsed = [trial for trial in trials if trial.outcome == "inaccurate"]
        for advice in self.waiting if collapsed else ():
            about = self.concerns(advice, self.space.config(choice))
            if about and any(self.concerns(advice, trial.facts.config) for trial in collapsed):
                return advice
        return None


def needs_notes(space: Space, missing: Mapping[str, str]) -> list[Note]:
    """Levels that need something missing; `missing` maps each need to the reason."""
    return [
        Note(kind="skip", knob=knob.name, level=level.name, source=need, reason=missing[need])
        for knob in space.knobs
        for level in knob.levels
        for need in level.needs
        if need in missing
    ]


def operator_notes(space: Space, ops: Mapping[str, int] | None) -> list[Note]:
    """Levels for operators that the graph does not have; they are blocked when its operators are unknown."""
    found = []
    for knob in space.knobs:
        for level in (level for level in knob.levels if level.ops):
            if ops is None:
                reason = f"it is not known whether the model has {' and '.join(level.ops)}"
                found.append(Note(kind="blocked", knob=knob.name, level=level.name, source="graph", reason=reason))
            elif absent := [op for op in level.ops if not ops.get(op)]:
                reason = f"the model has no {' and no '.join(absent)}"
                found.append(Note(kind="skip", knob=knob.name, level=level.name, source="graph", reason=reason))
    return found


def objective_notes(space: Space, prefixes: tuple[str, ...], reason: str) -> list[Note]:
    """Levels of knobs that cannot change the objective."""
    return [
        Note(kind="skip", knob=knob, level=level, source="objective", reason=reason)
        for knob, level in space.options()
        if knob.startswith(prefixes)
    ]


def pass_effect_notes(
    space: Space, effects: Mapping[str, Candidate], pass_of: Callable[[str], str | None]
) -> list[Note]:
    """Notes on passes from the effect of each alone on the model; a pass that was not run has no note and is tried."""
    found = []
    for knob, level in space.options():
        effect = effects.get(pass_of(knob) or "")
        if effect is None:
            continue
        if effect.status == "no change":
            reason = effect.note or "it changes nothing in this model"
            found.append(Note(kind="skip", knob=knob, level=level, source="graph", reason=reason))
        elif effect.status == "failed":
            reason = f"it fails on this model: {effect.note}"
            found.append(Note(kind="skip", knob=knob, level=level, source="graph", reason=reason))
        else:
            nodes = sum(abs(count) for count in effect.ops_delta.values())
            reason, weight = f"it changes {nodes} nodes", math.log1p(nodes) / 10
            found.append(Note(kind="boost", knob=knob, level=level, source="graph", reason=reason, weight=weight))
    return found


def advice_notes(space: Space, advice: Iterable[Advice], concerns: Concerns) -> list[Note]:
    """Notes from findings, on levels that advice applies to and that the baseline does not have."""
    found = []
    for one in advice:
        if one.after == COLLAPSE or one.place == "measure" or concerns(one, space.base):
            continue
        weight = _WEIGHTS.get(one.place, 0.0)
        for knob, level in space.options():
            choice = space.smallest_choice_with((knob, level))
            others = space.canonical(tuple(o for o in choice if o != (knob, level)))
            if choice and concerns(one, space.config(choice)) and not concerns(one, space.config(others)):
                note = Note(kind=one.kind, knob=knob, level=level, source=one.finding, reason=one.reason, weight=weight)
                found.append(note)
    return found


def describe_contradictions(notes: Iterable[Note]) -> tuple[str, ...]:
    """Settings for which one finding speaks and against which another does: what forbids wins, else they cancel out."""
    by_option: dict[tuple[str, str], dict[str, list[str]]] = {}
    for note in notes:
        if note.source not in NOT_FINDINGS:
            side = "for" if note.kind == "boost" or note.weight > 0 else "against"
            named = by_option.setdefault(note.option, {}).setdefault(side, [])
            named += [] if note.source in named else [note.source]
    return tuple(
        f"findings contradict each other about {knob}={level}: {', '.join(sides['for'])} for it, "
        f"{', '.join(sides['against'])} against it"
        for (knob, level), sides in by_option.items()
        if len(sides) == 2
    )


def make_insight(space: Space, notes: Iterable[Note], advice: Iterable[Advice], concerns: Concerns) -> Insight:
    """Everything known before the search, and the remaining space."""
    kept = tuple(notes)
    out = {note.option for note in kept if note.excludes}
    waiting = tuple(one for one in advice if one.after == COLLAPSE)
    return Insight(kept, waiting, space.without(lambda *option: option in out), concerns)

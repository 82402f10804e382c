"""What is known before anything is tried: which levels are left out, which come first, and who says so."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from winml.modelkit.knowledge.rules import Advice
from winml.modelkit.search.space import Choice, Space
from winml.modelkit.search.strategy import Option, State
from winml.modelkit.search.trial import Trial

Kind = Literal["skip", "blocked", "boost", "order"]
COLLAPSE = "accuracy-collapse"

_WEIGHTS = {"start": 100.0, "first": 10.0, "last": -10.0, "finish": -100.0}
"""What an advice adds to the priority of the levels it is about; `finish` comes when nothing else is left."""


@dataclass(frozen=True)
class Note:
    """Why a level is left out, or tried early or late."""

    kind: Kind
    option: Option
    source: str
    """A finding's id, or where the fact is from: `graph`, `data`, `target`."""
    reason: str
    weight: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "knob": self.option[0],
            "level": self.option[1],
            "source": self.source,
            "reason": self.reason,
        }


Concerns = Callable[[Advice, Mapping[str, Any]], bool]
"""Whether an advice is about a config, given as JSON."""


@dataclass(frozen=True)
class Insight:
    """Notes on levels, and advice that depends on what happens."""

    notes: tuple[Note, ...]
    waiting: tuple[Advice, ...]
    """Advice that counts once a config it is about was not accurate."""
    space: Space
    """Without the levels that are left out."""
    concerns: Concerns

    def priority(self, option: Option) -> float:
        return self.space.knob(option[0]).prior + sum(note.weight for note in self.notes if note.option == option)

    def because(self, choice: Choice) -> tuple[Mapping[str, Any], ...]:
        """What spoke for or against the levels of a choice."""
        return tuple(note.to_json() for note in self.notes if note.option in choice)

    def allowed(self, choice: Choice, state: State) -> bool:
        """Whether nothing that happened forbids a choice."""
        return self.forbidding(choice, state.trials) is None

    def forbidding(self, choice: Choice, trials: Iterable[Trial]) -> Advice | None:
        """The advice against a choice that a collapse of accuracy brought into force."""
        collapsed = [trial for trial in trials if trial.outcome == "inaccurate"]
        for advice in self.waiting if collapsed else ():
            about = self.concerns(advice, self.space.config(choice))
            if about and any(self.concerns(advice, trial.facts["config"]) for trial in collapsed):
                return advice
        return None


def left_out(space: Space, missing: Mapping[str, str]) -> list[Note]:
    """Levels that need what is not at hand; `missing` says why by what is needed."""
    return [
        Note("skip", (knob.name, level.name), need, missing[need])
        for knob in space.knobs
        for level in knob.levels
        for need in level.needs
        if need in missing
    ]


def without_ops(space: Space, ops: Mapping[str, int] | None) -> list[Note]:
    """Levels for operators that the graph does not have; without knowing its operators they are blocked."""
    found = []
    for knob in space.knobs:
        for level in (level for level in knob.levels if level.ops):
            option, absent = (knob.name, level.name), [op for op in level.ops if ops is not None and not ops.get(op)]
            if ops is None:
                words = " and ".join(level.ops)
                found.append(Note("blocked", option, "graph", f"whether the model has {words} is not known"))
            elif absent:
                found.append(Note("skip", option, "graph", f"the model has no {' and no '.join(absent)}"))
    return found


def pointless(space: Space, prefixes: tuple[str, ...], reason: str) -> list[Note]:
    """Levels of knobs that do not change what is searched for."""
    return [Note("skip", option, "objective", reason) for option in space.options() if option[0].startswith(prefixes)]


def unfired(space: Space, changes: Mapping[str, Mapping[str, Any]], pass_of: Callable[[str], str | None]) -> list[Note]:
    """Notes on passes from what each did to the model alone: none for one that was not run, which is then tried."""
    found = []
    for knob, level in space.options():
        known = changes.get(pass_of(knob) or "")
        if known is None:
            continue
        if known["status"] == "no change":
            reason = known["note"] or "it changes nothing in this model"
            found.append(Note("skip", (knob, level), "graph", reason))
        elif known["status"] == "failed":
            found.append(Note("skip", (knob, level), "graph", f"it fails on this model: {known['note']}"))
        else:
            touched = sum(abs(count) for count in known["ops_delta"].values())
            weight = math.log1p(touched) / 10
            found.append(Note("boost", (knob, level), "graph", f"it changes {touched} nodes", weight))
    return found


def advised(space: Space, advice: Iterable[Advice], concerns: Concerns) -> list[Note]:
    """Notes from findings: about levels that an advice means and the baseline is free of."""
    found = []
    for one in advice:
        if one.action.get("after") == COLLAPSE or "measure" in one.action or concerns(one, space.base):
            continue
        word = next(iter(one.action))
        for option in space.options():
            choice = space.alone(option)
            others = space.canonical(tuple(o for o in choice if o != option))
            if choice and concerns(one, space.config(choice)) and not concerns(one, space.config(others)):
                found.append(Note(one.kind, option, one.finding, one.reason, _WEIGHTS.get(word, 0.0)))
    return found


def insight(space: Space, notes: Iterable[Note], advice: Iterable[Advice], concerns: Concerns) -> Insight:
    """Everything known before the search, and the space that is left of it."""
    kept = tuple(notes)
    out = {note.option for note in kept if note.kind in ("skip", "blocked")}
    waiting = tuple(one for one in advice if one.action.get("after") == COLLAPSE)
    return Insight(kept, waiting, space.without(lambda *option: option in out), concerns)

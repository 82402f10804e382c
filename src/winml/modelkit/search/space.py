"""The space of a search: knobs, what their levels write into a config, and files that restrict them."""

from __future__ import annotations

import copy
import heapq
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.knob import DEFAULT, Knob, Level
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.core.values import Unique, read

COUNTED = 2000
"""Choices are counted one by one up to this number."""
HYPOTHESIS = "hypothesis"
"""The knob whose levels are the hypotheses of a preset."""

Option = tuple[str, str]
"""A knob and one of its levels."""
Choice = tuple[Option, ...]
"""Knob and level of everything that is not at its default, in the order of the knobs. Empty is the baseline."""
ConfigJSON = Mapping[str, Any]
"""A build config as JSON: levels write into it by the names of its keys."""


def _parent(config: dict[str, Any], key: str) -> tuple[dict[str, Any], str]:
    *path, last = key.split(".")
    for part in path:
        if config.get(part) is None:
            config[part] = {}
        config = config[part]
    return config, last


def _write(config: dict[str, Any], level: Level) -> None:
    for key, value in copy.deepcopy(dict(level.sets)).items():
        section, name = _parent(config, key)
        there = section.get(name)
        section[name] = {**there, **value} if isinstance(there, dict) and isinstance(value, dict) else value
    for key, values in level.adds.items():
        section, name = _parent(config, key)
        section[name] = list(dict.fromkeys((*(section.get(name) or ()), *values)))


def _acts(knob: Knob, config: Mapping[str, Any]) -> bool:
    """Whether a knob has an effect on a config."""
    for key, values in knob.when.items():
        value: Any = config
        for part in key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if value not in values:
            return False
    return True


def label(choice: Choice) -> str:
    """A choice as text."""
    return ", ".join(f"{knob}={level}" for knob, level in choice) or "baseline"


def trial_id(choice: Choice, number: int) -> str:
    """The id of a trial: hypotheses of a preset keep theirs, everything else is numbered."""
    return choice[0][1] if choice and choice[0][0] == HYPOTHESIS else f"h{number}"


@dataclass(frozen=True)
class Space:
    """Knobs in the order in which they write into the config they start from."""

    knobs: tuple[Knob, ...]
    base: ConfigJSON
    """The config of the baseline."""

    def knob(self, name: str) -> Knob:
        return next(knob for knob in self.knobs if knob.name == name)

    def config(self, choice: Choice) -> ConfigJSON:
        """The config of a choice."""
        return self._compose(choice)[1]

    def canonical(self, choice: Choice) -> Choice:
        """The choice without knobs that have no effect in it."""
        return self._compose(choice)[0]

    def _compose(self, choice: Choice) -> tuple[Choice, ConfigJSON]:
        chosen = dict(choice)
        config = copy.deepcopy(dict(self.base))
        kept: list[Option] = []
        for knob in self.knobs:
            name = chosen.get(knob.name, DEFAULT)
            if name != DEFAULT and _acts(knob, config):
                _write(config, knob.level(name))
                kept.append((knob.name, name))
        return tuple(kept), config

    def with_level(self, choice: Choice, knob: str, level: str) -> Choice:
        """The choice with one knob at another level."""
        return self.canonical((*(pair for pair in choice if pair[0] != knob), (knob, level)))

    def options(self) -> Iterator[Option]:
        """Every level of every knob that is not the default."""
        for knob in self.knobs:
            for level in knob.levels:
                yield knob.name, level.name

    def smallest_choice_with(self, option: Option) -> Choice:
        """The smallest choice in which a level has an effect; empty if there is none."""
        for other in ((), *((o,) for o in self.options() if o[0] != option[0])):
            choice = self.with_level(other, *option)
            if option in choice:
                return choice
        return ()

    @property
    def size(self) -> int | None:
        """How many different choices there are; None when there are thousands."""
        count = self.count(limit=COUNTED)
        return None if count == COUNTED else count

    def count(self, *, limit: int) -> int:
        """How many different choices there are, counted no further than `limit`."""
        if not any(knob.when for knob in self.knobs):
            return min(limit, math.prod(len(knob.names) for knob in self.knobs))
        return sum(1 for _ in itertools.islice(self.choices(), limit))

    def choices(self) -> Iterator[Choice]:
        """Every choice once, the baseline first."""
        yield from self._grow(0, (), dict(self.base))

    def _grow(self, index: int, choice: Choice, config: dict[str, Any]) -> Iterator[Choice]:
        """A choice with every choice of the knobs from `index` on, as far as they have an effect."""
        if index == len(self.knobs):
            yield choice
            return
        knob = self.knobs[index]
        yield from self._grow(index + 1, choice, config)
        if _acts(knob, config):
            for level in knob.levels:
                changed = copy.deepcopy(config)
                _write(changed, level)
                yield from self._grow(index + 1, (*choice, (knob.name, level.name)), changed)

    def without(self, excluded: Callable[[str, str], bool]) -> Space:
        """The space without some levels, and without the knobs that have none left."""
        knobs = (
            replace(knob, levels=tuple(level for level in knob.levels if not excluded(knob.name, level.name)))
            for knob in self.knobs
        )
        return replace(self, knobs=tuple(knob for knob in knobs if knob.levels))

    def best(self, worth: Callable[[str, str], float]) -> Iterator[Choice]:
        """Choices by descending sum of the worth of their levels (0 for a default), each once.

        The space is never enumerated: a heap holds the frontier.
        """
        ranked = [
            sorted(((0.0 if n == DEFAULT else worth(knob.name, n), n) for n in knob.names), key=lambda pair: -pair[0])
            for knob in self.knobs
        ]
        start = (0,) * len(ranked)
        heap = [(-sum(levels[0][0] for levels in ranked), start)]
        pushed, given = {start}, set[Choice]()
        while heap:
            cost, places = heapq.heappop(heap)
            picked = ((k.name, r[p][1]) for k, r, p in zip(self.knobs, ranked, places, strict=True))
            choice = self.canonical(tuple(pair for pair in picked if pair[1] != DEFAULT))
            if choice not in given:
                given.add(choice)
                yield choice
            for index, place in enumerate(places):
                after = (*places[:index], place + 1, *places[index + 1 :])
                if place + 1 < len(ranked[index]) and after not in pushed:
                    pushed.add(after)
                    step = ranked[index][place][0] - ranked[index][place + 1][0]
                    heapq.heappush(heap, (cost + step, after))


@dataclass(frozen=True, kw_only=True)
class SpaceFile:
    """What a search is restricted to (`winml autoconfig --space`)."""

    schema: Literal["winml/space/1"] = "winml/space/1"
    knobs: Mapping[str, Annotated[tuple[str, ...], Unique()]]
    """Levels by knob; a knob that is not listed keeps its default, which is always a choice."""


def restrict(space: Space, value: Any, where: str) -> Space:
    """The space with only the knobs and levels of a space file; the default of a knob is always a choice."""
    known = [knob.name for knob in space.knobs]
    try:
        wanted = read(SpaceFile, value).knobs
        for name, levels in wanted.items():
            if name not in known:
                raise RequestError(f"unknown knob `{name}`", hint=did_you_mean(name, known))
            names = space.knob(name).names
            for level in levels:
                if level not in names:
                    raise RequestError(f"knob `{name}` has no level `{level}`", hint=did_you_mean(level, names))
    except RequestError as error:
        raise RequestError(f"`{where}`: {error.message}", hint=error.hint) from error
    return space.without(lambda knob, level: level not in wanted.get(knob, ()))

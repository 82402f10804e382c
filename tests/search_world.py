"""Worlds to search in: what each config takes is known, and so is what is wrong with some of them."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from winml.modelkit.core.errors import WorkerCrashed, WorkerTimeout
from winml.modelkit.core.knob import Knob, Level
from winml.modelkit.core.verdict import Verdict
from winml.modelkit.measuring.protocols import PROTOCOLS
from winml.modelkit.search.guards import Built, Checked, Guarded, Probed
from winml.modelkit.search.space import Choice, Space
from winml.modelkit.search.strategy import Limits, Plan, champion
from winml.modelkit.search.study import Study
from winml.modelkit.search.trial import Series, Yardstick

BUILD_S, PROBE_S, CHECK_S, ROUND_S, WATCHDOG_S = 5.0, 1.0, 1.0, 1.4, 10.0
MAX_ROUNDS = PROTOCOLS["cpu"].max_rounds
Option = tuple[str, str]


@dataclass
class World:
    """Log speed-ups of levels and pairs of levels, hazards, and how much rounds vary."""

    levels: Mapping[str, int]
    effects: Mapping[Option, float]
    pairs: Mapping[frozenset[Option], float] = field(default_factory=dict)
    slow: frozenset[Option] = frozenset()
    crashes: frozenset[frozenset[Option]] = frozenset()
    hangs: frozenset[frozenset[Option]] = frozenset()
    inaccurate: frozenset[Option] = frozenset()
    no_effect: frozenset[Option] = frozenset()
    """Levels that change nothing in the graph."""
    spread: float = 0.004

    @property
    def space(self) -> Space:
        knobs = [
            Knob(name, tuple(Level(f"l{i}", {name: f"l{i}"}) for i in range(1, count + 1)))
            for name, count in self.levels.items()
        ]
        return Space(tuple(knobs), {})

    def speed(self, choice: Choice) -> float:
        """Log speed-up over the baseline."""
        single = sum(self.effects.get(option, 0.0) for option in choice)
        double = sum(self.pairs.get(frozenset(pair), 0.0) for pair in itertools.combinations(choice, 2))
        return single + double - (math.log(50) if self.slow.intersection(choice) else 0.0)

    def valid(self, choice: Choice) -> bool:
        pairs = {frozenset(pair) for pair in itertools.combinations(choice, 2)}
        return not (self.inaccurate.intersection(choice) or pairs & (self.crashes | self.hangs))

    def best(self) -> float:
        return max(self.speed(choice) for choice in self.space.choices() if self.valid(choice))


def random_world(levels: Mapping[str, int], seed: int, *, spread: float = 0.004, strong: bool = False) -> World:
    """Levels that matter little or much, pairs that matter 0.5 %, one hazard of each kind.

    With `strong`, levels of the first knob change what levels of the second are worth by up to a third.
    """
    rng = random.Random(seed)
    options = [(name, f"l{i}") for name, count in levels.items() for i in range(1, count + 1)]
    effects = {option: rng.choice((0.0, rng.gauss(0, 0.02), rng.gauss(0.05, 0.15))) for option in options}
    first, second = list(levels)[:2]
    for i in range(1, levels[first] + 1):
        effects[first, f"l{i}"] = rng.uniform(-0.2, 0.9)
    pairs = {
        frozenset(pair): rng.gauss(0, 0.005) for pair in itertools.combinations(options, 2) if pair[0][0] != pair[1][0]
    }
    if strong:
        for pair in pairs:
            if {name for name, _ in pair} == {first, second}:
                pairs[pair] = rng.gauss(-0.1, 0.2)
    slow, wrong = rng.sample(options, 2)
    crossing = [pair for pair in pairs if not {slow, wrong} & pair] or list(pairs)
    crash, hang = rng.choice(crossing), rng.choice(crossing)
    return World(
        levels, effects, pairs, frozenset({slow}), frozenset({crash}), frozenset({hang}), frozenset({wrong}),
        spread=spread,
    )  # fmt: skip


class Laboratory:
    """Tools that act on a world and keep a clock of what it would cost."""

    def __init__(self, world: World, seed: int = 0) -> None:
        self.world = world
        self.now = 0.0
        self.builds = 0
        self.rounds = 0
        self.spent: list[tuple[str, float]] = []
        """What hazards cost, by kind."""
        self._rng = random.Random(seed)

    def clock(self) -> float:
        return self.now

    def build(self, config: dict[str, Any]) -> Built:
        self.builds += 1
        self.now += BUILD_S
        choice = tuple((name, config[name]) for name in self.world.levels if name in config)
        acting = tuple(option for option in choice if option not in self.world.no_effect)
        return Built(path=str(choice), identity=repr(acting), facts={"acting": [list(o) for o in acting]})

    def _choice(self, built: Built) -> Choice:
        return tuple((name, level) for name, level in built.facts["acting"])

    def probe(self, built: Built) -> Probed:
        choice = self._choice(built)
        pairs = {frozenset(pair) for pair in itertools.combinations(choice, 2)}
        if pairs & self.world.hangs:
            self._cost("hang", WATCHDOG_S)
            raise WorkerTimeout("it did not answer in time")
        if pairs & self.world.crashes:
            self._cost("crash", PROBE_S)
            raise WorkerCrashed("the process crashed with SIGSEGV")
        slowdown = math.exp(-self.world.speed(choice))
        self._cost("slow" if slowdown > 10 else "probe", PROBE_S + min(WATCHDOG_S, 0.02 * slowdown))
        return Probed(slowdown / 1.2, {"verdict_s": 3 * ROUND_S})

    def _cost(self, kind: str, seconds: float) -> None:
        self.now += seconds
        self.spent.append((kind, seconds))

    def check(self, built: Built) -> Checked:
        self._cost("accuracy", CHECK_S)
        wrong = self.world.inaccurate.intersection(self._choice(built))
        return Checked(not wrong, "accuracy fell to 10 %" if wrong else "")

    def measure(self, built: Built, *, rounds: int, first: int) -> Series:
        self.rounds += rounds
        self.now += ROUND_S * rounds
        truth = self.world.speed(self._choice(built))
        values = tuple(truth + self._rng.gauss(0, self.world.spread) for _ in range(rounds))
        return Series("cpu", {"cpu": values, "wall": values})

    def calibrate(self, built: Built) -> Mapping[str, tuple[float, ...]]:
        self.now += ROUND_S * MAX_ROUNDS
        values = tuple(self._rng.gauss(0, self.world.spread) for _ in range(MAX_ROUNDS))
        return {"cpu": values, "wall": values}

    def confirm(self, built: Built, within_s: float) -> tuple[Verdict, Mapping[str, Any]]:
        return Yardstick(PROTOCOLS["cpu"]).verdict(self.measure(built, rounds=8, first=0)), {}


def search(
    world: World, *, seed: int = 0, limits: Limits | None = None, records: list[dict[str, Any]] | None = None
) -> tuple[Study, Laboratory]:
    """A finished search of a world; `records` is extended like a journal."""
    laboratory = Laboratory(world, seed)
    kept = [] if records is None else records
    plan = Plan(world.space, Yardstick(PROTOCOLS["cpu"]), limits=limits or Limits())
    study = Study(plan, Guarded(laboratory), append=kept.append, records=list(kept), clock=laboratory.clock)
    study.run()
    return study, laboratory


def chosen(study: Study) -> Choice:
    return champion(study.state).choice

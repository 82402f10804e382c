"""Worlds to search in: what each config takes is known, and so is what is wrong with some of them."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from winml.modelkit.core.errors import WorkerCrashed, WorkerTimeout
from winml.modelkit.core.knob import Knob, Level
from winml.modelkit.core.target import Target
from winml.modelkit.core.verdict import Verdict
from winml.modelkit.measuring.protocols import PROTOCOLS
from winml.modelkit.search.guards import Built, GateAnswer, ProbeAnswer
from winml.modelkit.search.records import GateLimits, Record
from winml.modelkit.search.result import Champion, GateResult, NoEnvironment, SearchResult, SearchTime, TrialResult
from winml.modelkit.search.space import Choice, ConfigJSON, Option, Space
from winml.modelkit.search.strategy import SearchLimits, SearchPlan, choose_champion
from winml.modelkit.search.study import Study
from winml.modelkit.search.trial import (
    Accuracy,
    Facts,
    FreshRounds,
    Series,
    Trial,
    TrialArtifact,
    TrialOutcome,
    Yardstick,
)

BUILD_S, PROBE_S, CHECK_S, ROUND_S, WATCHDOG_S = 5.0, 1.0, 1.0, 1.4, 10.0
MAX_ROUNDS = PROTOCOLS["cpu"].max_rounds
ARTIFACT = TrialArtifact(digest="sha256:0", fingerprint=None, bytes=1)


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
    narrows: frozenset[str] = frozenset()
    """Knobs that take back some of what the first one changed, and act within it alone."""
    mends: Mapping[Option, tuple[frozenset[Option], ...]] = field(default_factory=dict)
    """For an inaccurate level, the sets of others with any of which it is accurate."""

    @property
    def space(self) -> Space:
        first = next(iter(self.levels))
        within = {first: tuple(f"l{i}" for i in range(1, self.levels[first] + 1))}
        knobs = [
            Knob(
                name,
                tuple(Level(f"l{i}", {name: f"l{i}"}) for i in range(1, count + 1)),
                when=within if name in self.narrows else {},
                narrows=name in self.narrows,
            )
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
        return self.errs(choice) == 0 and not pairs & (self.crashes | self.hangs)

    def errs(self, choice: Choice) -> int:
        """How far a choice is from accurate: by how many levels it would have to be mended."""
        given = set(choice)
        return sum(
            min((len(mend - given) for mend in self.mends.get(option, ())), default=9)
            for option in self.inaccurate.intersection(choice)
        )

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
        self._acting: dict[str, Choice] = {}
        """What has an effect, by the identity of a build."""

    def clock(self) -> float:
        return self.now

    def build(self, config: ConfigJSON) -> Built:
        self.builds += 1
        self.now += BUILD_S
        choice = tuple((name, config[name]) for name in self.world.levels if name in config)
        acting = tuple(option for option in choice if option not in self.world.no_effect)
        self._acting[repr(acting)] = acting
        return Built(path=str(choice), identity=repr(acting), target="cpu", artifact=ARTIFACT)

    def _choice(self, built: Built) -> Choice:
        return self._acting[built.identity]

    def probe(self, built: Built) -> ProbeAnswer:
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
        return ProbeAnswer(slowdown=slowdown / 1.2, verdict_s=3 * ROUND_S, ms={"wall": 10 * slowdown})

    def _cost(self, kind: str, seconds: float) -> None:
        self.now += seconds
        self.spent.append((kind, seconds))

    def check(self, built: Built) -> GateAnswer:
        self._cost("accuracy", CHECK_S)
        wrong = self.world.errs(self._choice(built))
        known = Accuracy(
            kind="agreement", metric="cosine", value=1 - wrong / 10, interval=None, drop=None, drop_interval=None,
            agreement=1 - wrong / 10, samples=64,
        )  # fmt: skip
        return GateAnswer(not wrong, "accuracy fell to 10 %" if wrong else "", known)

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

    def confirm(self, built: Built, within_s: float) -> tuple[Verdict, FreshRounds]:
        return Yardstick(PROTOCOLS["cpu"]).verdict(self.measure(built, rounds=8, first=0)), FreshRounds()


def search(
    world: World, *, seed: int = 0, limits: SearchLimits | None = None, records: list[Record] | None = None
) -> tuple[Study, Laboratory]:
    """A finished search of a world; `records` is extended like a journal."""
    laboratory = Laboratory(world, seed)
    kept: list[Record] = [] if records is None else records
    plan = SearchPlan(world.space, Yardstick(PROTOCOLS["cpu"]), limits=limits or SearchLimits())
    study = Study(plan, laboratory, append=kept.append, records=list(kept), clock=laboratory.clock)
    study.run()
    return study, laboratory


def chosen(study: Study) -> Choice:
    return choose_champion(study.state).choice


def make_trial(
    name: str,
    choice: Choice,
    outcome: TrialOutcome,
    reason: str = "",
    *,
    series: Series | None = None,
    config: ConfigJSON | None = None,
    identity: str | None = None,
    seconds: float = 1.0,
) -> Trial:
    """A trial of which only some things matter."""
    return Trial(
        id=name,
        choice=choice,
        outcome=outcome,
        reason=reason,
        option=None,
        same_as=None,
        series=series,
        facts=Facts(config=config or {}, identity=identity),
        because=(),
        seconds=seconds,
    )


def make_result(*, folder: str, champion_folder: str, next_: str) -> SearchResult:
    """The result of a search in which the baseline was best."""
    trial = TrialResult(
        id="h0",
        label="baseline",
        choice={},
        target="cpu",
        changes={},
        outcome="baseline",
        step=None,
        reason="",
        same_as=None,
        verdict=None,
        confirmation=None,
        times=None,
        rounds=0,
        accuracy=None,
        placement=None,
        artifact=ARTIFACT,
        probe_ms=None,
        because=(),
        reused_from=None,
        seconds=1.0,
    )
    champion = Champion(
        trial=trial,
        status="BASELINE_IS_BEST",
        gain_pct=0.0,
        gain_interval_pct=None,
        speedup=1.0,
        speedup_interval=None,
        factor=1.0,
        folder=champion_folder,
        digest=ARTIFACT.digest,
    )
    limits = GateLimits(
        kind="agreement",
        data=None,
        task="outputs",
        min_metric=None,
        max_drop=None,
        min_agreement=0.99,
        judge="interval",
        digest=None,
    )
    return SearchResult(
        model="elsewhere",
        model_digest="sha256:1",
        targets=(Target("cpu", "cpu"),),
        objective="latency",
        gate=GateResult(limits=limits, words="outputs must agree"),
        folder=folder,
        finished=True,
        ended="everything worth a trial was tried",
        seconds=3.0,
        time=SearchTime(budget_s=None, preparation_s=1.0, delivery_s=None),
        choices=1,
        trials=(trial,),
        champion=champion,
        pareto=("h0",),
        insight=(),
        environment=NoEnvironment(),
        drafts=(),
        notes=(),
        next=next_,
    )

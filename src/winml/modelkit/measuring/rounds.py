"""Measures two arms against each other, round by round in fresh processes, until there is a verdict."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.environment import Environment
from winml.modelkit.core.errors import RunFailedError
from winml.modelkit.core.measurement import Arm, CompareProtocol, Measurement, Mode, PairProtocol, Round
from winml.modelkit.core.verdict import Clock, Verdict
from winml.modelkit.ep import catalog
from winml.modelkit.graph.input_settings import InputSettings
from winml.modelkit.measuring.calibration import ClockValues
from winml.modelkit.measuring.events import RoundsStarted
from winml.modelkit.measuring.judge import Gate, gate, judge, round_values
from winml.modelkit.measuring.reports import BlockReport, Conditions, Probe, RoundReport, Samples
from winml.modelkit.session.arm import ArmArguments, arm_arguments

T = TypeVar("T")
SPINNING = "session.intra_op.allow_spinning"
PRELOAD = ("winml.modelkit.measuring.arms",)
_BLOCK_S = 0.03
QUIET_PRESSURE_PCT = 10.0


class Process(Protocol):
    """The part of a worker that comparing needs."""

    @property
    def pid(self) -> int: ...
    def ask(
        self, form: type[T], op: str, args: object, *, timeout_s: float | None = None, what: str | None = None
    ) -> T: ...
    def close(self) -> None: ...


Start = Callable[[str | None], Process]
"""Starts a worker with the interpreter of an environment, or with ours."""


@dataclass(frozen=True)
class ArmSpec:
    """An arm with what is needed to run it here."""

    arm: Arm
    label: str
    python: str | None
    distribution: str
    inputs: InputSettings

    def arguments(self) -> ArmArguments:
        return arm_arguments(self.arm, self.distribution, self.inputs)


def _threads(spec: ArmSpec) -> tuple[str | None, ...]:
    """Everything that says how many threads an arm uses: of the runtime, and of an EP with threads of its own."""
    section, info = spec.arm.session, catalog.BY_NAME[spec.arm.target.ep]
    own = section.ep_options.get(info.threads_option) if info.threads_option else None
    threads = None if section.threads is None else str(section.threads)
    return own or threads, section.config_entries.get(SPINNING)


def _is_memory(spec: ArmSpec) -> bool:
    return spec.arm.generation is not None and spec.arm.generation.metric == "memory"


def choose_mode(base: ArmSpec, candidate: ArmSpec) -> Mode:
    """How two arms can be measured against each other without disturbing one another."""
    if _is_memory(base):
        return "turns"  # each in a process of its own, whose peak is that of this arm
    if _threads(base) != _threads(candidate):
        return "turns"
    return "together" if base.python == candidate.python else "token"


def choose_metric(base: ArmSpec, candidate: ArmSpec, mode: Mode, probes: Sequence[Probe]) -> Clock:
    """CPU time where both arms are on the CPU EP with equal threads; it hardly feels the load of the machine.

    The CPU clock of Windows advances in steps of 15.6 ms: where a probe saw it stand still the wall clock decides.
    """
    if _is_memory(base):
        return "memory"
    both_cpu = base.arm.target.ep == candidate.arm.target.ep == "cpu"
    stands_still = any(min(probe.cpu_ns) <= 0 for probe in probes)
    return "cpu" if both_cpu and mode != "turns" and not stands_still else "wall"


def without_spinning(spec: ArmSpec) -> ArmSpec:
    """The arm with idle threads asleep: of two spinning sessions alive together one can take half as long again."""
    section = spec.arm.session
    entries = {**section.config_entries, SPINNING: "0"}
    return replace(spec, arm=replace(spec.arm, session=replace(section, config_entries=entries)))


@dataclass(frozen=True)
class ComparePlan:
    """Everything about a comparison but its arms."""

    mode: Mode
    metric: Clock
    protocol: CompareProtocol
    raise_priority: bool
    round_timeout_s: float
    run_s: float
    """About how long a run of the base takes."""
    max_seconds: float
    seed: int = 0
    tests: int = 1
    fail_if_slower_pct: float | None = None

    def describe(self) -> PairProtocol:
        """What a measurement says of it."""
        return PairProtocol(protocol=self.protocol, mode=self.mode, metric=self.metric, seed=self.seed)


@dataclass
class RoundProgress:
    """What was measured so far; kept also when the comparison fails or is interrupted."""

    rounds: list[Round] = field(default_factory=list)
    conditions: list[Conditions] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.rounds) // 2


def _limits(plan: ComparePlan) -> dict[str, Any]:
    p = plan.protocol
    return {
        "warmup": p.warmup,
        "min_pairs": p.min_pairs,
        "min_round_s": p.min_round_s,
        "long_round_s": p.long_round_s,
        "few_pairs": p.few_pairs,
        "raise_priority": plan.raise_priority,
    }


def _what(specs: Sequence[ArmSpec], number: int) -> str:
    return f"round {number + 1} of `{specs[0].label}` and `{specs[1].label}`"


@contextlib.contextmanager
def _open(start: Start, python: str | None) -> Iterator[Process]:
    process = start(python)
    try:
        yield process
    finally:
        process.close()


def _round(arm: int, number: int, process: Process, order: int, samples: Samples, conditions: Conditions) -> Round:
    return Round(
        arm=arm,
        round=number,
        process=process.pid,
        order=order,
        wall_ns=samples.wall_ns,
        cpu_ns=samples.cpu_ns,
        load_before=conditions.load_before,
        load_after=conditions.load_after,
        peak_bytes=samples.peak_bytes if isinstance(samples, BlockReport) else None,
    )


def _together(specs: Sequence[ArmSpec], plan: ComparePlan, number: int, start: Start) -> tuple[list[Round], Conditions]:
    args = {"arms": [s.arguments() for s in specs], "seed": plan.seed * 1000 + number, **_limits(plan)}
    what = _what(specs, number)
    with _open(start, specs[0].python) as process:
        got = process.ask(RoundReport, "bench.together", args, timeout_s=plan.round_timeout_s, what=what)
        made = [_round(i, number, process, got.order.index(i), got.arms[i], got.conditions) for i in (0, 1)]
    return made, got.conditions


def _order(plan: ComparePlan, number: int) -> tuple[int, int]:
    import random

    return (0, 1) if random.Random(plan.seed * 1000 + number).random() < 0.5 else (1, 0)  # noqa: S311


def _keep(process: Process, spec: ArmSpec, plan: ComparePlan, what: str) -> Conditions:
    args = {
        "name": "arm",
        "arm": spec.arguments(),
        "warmup": plan.protocol.warmup,
        "raise_priority": plan.raise_priority,
    }
    return process.ask(Conditions, "bench.keep", args, timeout_s=plan.round_timeout_s, what=what)


def _token(specs: Sequence[ArmSpec], plan: ComparePlan, number: int, start: Start) -> tuple[list[Round], Conditions]:
    """Two processes with both arms open; short blocks of runs in ABBA order."""
    p, what = plan.protocol, _what(specs, number)
    order = _order(plan, number)
    runs = max(1, round(_BLOCK_S / max(plan.run_s, 1e-6)))
    blocks: dict[int, list[BlockReport]] = {0: [], 1: []}
    with contextlib.ExitStack() as stack:
        workers = {i: stack.enter_context(_open(start, specs[i].python)) for i in order}
        kept = {i: _keep(workers[i], specs[i], plan, what) for i in order}
        started = time.monotonic()
        while True:
            for i in (*order, *reversed(order)):
                args = {"name": "arm", "runs": runs, "seconds": 0.0}
                last = workers[i].ask(BlockReport, "bench.block", args, timeout_s=plan.round_timeout_s)
                blocks[i].append(last)
            pairs, elapsed = sum(len(b.wall_ns) for b in blocks[0]), time.monotonic() - started
            if pairs >= p.min_pairs and elapsed >= 2 * p.min_round_s:
                break
            if pairs >= p.few_pairs and elapsed >= 2 * p.long_round_s:
                break
        ended = {i: _at_end(kept[i], last) for i in (0, 1)}
        made = [_round(i, number, workers[i], order.index(i), _join_blocks(blocks[i]), ended[i]) for i in (0, 1)]
    return made, ended[0]


def _join_blocks(blocks: Sequence[BlockReport]) -> Samples:
    return Samples(
        wall_ns=tuple(ns for b in blocks for ns in b.wall_ns), cpu_ns=tuple(ns for b in blocks for ns in b.cpu_ns)
    )


def _at_end(conditions: Conditions, block: BlockReport) -> Conditions:
    """The conditions with what the machine did by the end of a block."""
    return replace(conditions, load_after=block.load_after, pressure_pct=block.pressure_pct)


def _turns(specs: Sequence[ArmSpec], plan: ComparePlan, number: int, start: Start) -> tuple[list[Round], Conditions]:
    """One arm after the other, each alone on the machine."""
    order, what = _order(plan, number), _what(specs, number)
    made: dict[int, Round] = {}
    for i in order:
        with _open(start, specs[i].python) as process:
            kept = _keep(process, specs[i], plan, what)
            wanted = {"name": "arm", "runs": plan.protocol.few_pairs, "seconds": plan.protocol.min_round_s}
            got = process.ask(BlockReport, "bench.block", wanted, timeout_s=plan.round_timeout_s, what=what)
            conditions = _at_end(kept, got)
            made[i] = _round(i, number, process, order.index(i), got, conditions)
    return [made[0], made[1]], conditions


_MODES = {"together": _together, "token": _token, "turns": _turns}


def measure_round(specs: Sequence[ArmSpec], plan: ComparePlan, start: Start, progress: RoundProgress) -> None:
    """Add one round of both arms to `progress`."""
    if progress.count and plan.protocol.cool_down_s:
        time.sleep(plan.protocol.cool_down_s)
    made, conditions = _MODES[plan.mode](specs, plan, progress.count, start)
    progress.rounds += made
    progress.conditions.append(conditions)


def measurement(
    specs: Sequence[ArmSpec], plan: ComparePlan, progress: RoundProgress, environment: Environment
) -> Measurement:
    """What was measured, as one value."""
    return Measurement(
        arms=tuple(s.arm for s in specs),
        rounds=tuple(progress.rounds),
        protocol=plan.describe(),
        environment=environment,
    )


@dataclass(frozen=True)
class Compared:
    """A verdict with the measurement it was made from."""

    verdict: Verdict
    measurement: Measurement
    conditions: tuple[Conditions, ...]
    gate: Gate | None = None
    disturbed: bool = False


def other_values(taken: Measurement, metric: Clock) -> list[float]:
    """The round values on the clock that does not decide; memory has no other."""
    return [] if metric == "memory" else values_of(taken, "wall" if metric == "cpu" else "cpu")


def pair_values(rounds: Sequence[Round], clock: Clock, *, paired: bool) -> list[float]:
    """Round values of arm 1 against arm 0; none when the clock stood still for some runs."""
    try:
        return round_values(rounds, 1, clock, paired=paired)
    except ValueError:
        return []  # a clock too coarse for this model says nothing


def values_of(taken: Measurement, clock: Clock) -> list[float]:
    """The same of a measurement of two arms."""
    turns = isinstance(taken.protocol, PairProtocol) and taken.protocol.mode == "turns"
    return pair_values(taken.rounds, clock, paired=not turns)


def disturbance(plan: ComparePlan, last: Conditions) -> str | None:
    """Why a round decides nothing: arms that take turns are only comparable at raised priority or in quiet."""
    if plan.mode != "turns" or plan.metric == "memory":
        return None
    pressure = last.pressure_pct
    if last.priority is not None or (pressure is not None and pressure <= QUIET_PRESSURE_PCT):
        return None
    return (
        "arms that differ in threads or spinning take turns, which needs raised priority or a quiet machine: "
        f"programs wait for a CPU {'an unknown share' if pressure is None else f'{pressure:.0f} %'} of the time"
    )


def _judge_disturbance(plan: ComparePlan, progress: RoundProgress) -> Verdict | None:
    reason = disturbance(plan, progress.conditions[-1])
    if reason is None:
        return None
    return Verdict("INCONCLUSIVE", reason, rounds=progress.count, metric=plan.metric)


def expect_rounds(plan: ComparePlan, calibration: ClockValues) -> RoundsStarted:
    """What is known of a comparison's rounds before the first."""
    protocol = plan.protocol
    least = protocol.first_look if calibration.on(plan.metric) else protocol.first_look_alone
    return RoundsStarted(least, protocol.max_rounds, plan.max_seconds)


def compare_arms(
    specs: Sequence[ArmSpec],
    plan: ComparePlan,
    *,
    calibration: ClockValues,
    environment: Environment,
    start: Start,
    progress: RoundProgress,
    on_round: Callable[[RoundProgress], None],
) -> Compared:
    """Measure until there is a verdict, the rounds are used up, or the time is."""
    started = time.monotonic()
    lent = calibration.on(plan.metric)
    verdict: Verdict | None = None
    while True:
        try:
            measure_round(specs, plan, start, progress)
        except RunFailedError as error:
            taken = measurement(specs, plan, progress, environment)
            failed = Verdict("FAILED", error.message, rounds=progress.count, seconds=time.monotonic() - started)
            return Compared(failed, taken, tuple(progress.conditions))
        on_round(progress)
        taken = measurement(specs, plan, progress, environment)
        elapsed = time.monotonic() - started
        last = progress.count >= plan.protocol.max_rounds or elapsed >= plan.max_seconds
        disturbed = _judge_disturbance(plan, progress)
        # A verdict stands once it is made: more rounds may follow for the gate, more looks at it may not.
        verdict = disturbed or verdict or _judge(taken, plan, lent, last=last)
        answer = "unknown" if disturbed and plan.fail_if_slower_pct is not None else _gate(taken, plan, lent, last=last)
        if verdict is not None and (plan.fail_if_slower_pct is None or answer is not None):
            done = replace(verdict, seconds=elapsed)
            return Compared(done, taken, tuple(progress.conditions), answer, disturbed is not None)


def _judge(taken: Measurement, plan: ComparePlan, lent: Sequence[float], *, last: bool) -> Verdict | None:
    return judge(
        values_of(taken, plan.metric),
        calibration=lent,
        other=other_values(taken, plan.metric),
        protocol=plan.protocol,
        metric=plan.metric,
        tests=plan.tests,
        last=last,
    )


def _gate(taken: Measurement, plan: ComparePlan, lent: Sequence[float], *, last: bool) -> Gate | None:
    if plan.fail_if_slower_pct is None:
        return None
    values = values_of(taken, plan.metric)
    return gate(values, calibration=lent, protocol=plan.protocol, limit_pct=plan.fail_if_slower_pct, last=last)


def measure(
    specs: Sequence[ArmSpec],
    plan: ComparePlan,
    *,
    rounds: int,
    start: Start,
    environment: Environment,
    on_round: Callable[[RoundProgress], None] = lambda _: None,
) -> Measurement:
    """A fixed number of rounds of two arms, not judged: for A/A rounds, and for callers that judge later."""
    progress = RoundProgress()
    while progress.count < rounds:
        measure_round(specs, plan, start, progress)
        on_round(progress)
    return measurement(specs, plan, progress, environment)


def calibration_values(taken: Measurement) -> ClockValues:
    """Round values of A/A rounds on both clocks."""
    return ClockValues(cpu=tuple(values_of(taken, "cpu")), wall=tuple(values_of(taken, "wall")))


def probe_arm(process: Process, spec: ArmSpec, save: Path, *, timeout_s: float) -> Probe:
    """A few runs of an arm at ordinary priority, its outputs saved."""
    args = {"arm": spec.arguments(), "runs": 3, "save": str(save)}
    what = f"running `{spec.label}` on {spec.arm.target}"
    return process.ask(Probe, "bench.probe", args, timeout_s=timeout_s, what=what)


SLOWER_LIMIT = 3.0


def far_slower(base: Probe, candidate: Probe, metric: Clock) -> float | None:
    """How many times slower the candidate's best probe run is than the base's worst, when that is beyond doubt."""
    if metric == "memory":
        return None
    worst = max(base.on(metric))
    factor = min(candidate.on(metric)) / worst if worst > 0 else 0.0
    return factor if factor > SLOWER_LIMIT else None

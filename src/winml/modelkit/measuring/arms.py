"""Worker operations of comparisons: arms opened in this process, run in pairs or in blocks."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from winml.modelkit.core.errors import DataError, UnavailableError
from winml.modelkit.core.measurement import GenerationArm
from winml.modelkit.core.values import read
from winml.modelkit.ep.discovery import distribution_version
from winml.modelkit.graph.inputs import InputSpec, elements_of
from winml.modelkit.measuring.reports import BlockReport, Conditions, Distances, Port, Probe, RoundReport, Samples
from winml.modelkit.session import environment
from winml.modelkit.session.arm import ArmArguments
from winml.modelkit.session.distance import distance_of
from winml.modelkit.session.opening import open_arm
from winml.modelkit.session.placement import add_placements
from winml.modelkit.worker import priority
from winml.modelkit.worker.memory import memory_of


class Runs(Protocol):
    """An arm that is open."""

    def prepare(self) -> None:
        """What a run needs before its clock starts."""
        ...

    def run(self) -> None: ...

    def close(self) -> None: ...


_KEPT: dict[str, Runs] = {}
"""Arms that stay open between requests."""


class _SessionRuns:
    """Runs of a model on the same inputs."""

    def __init__(self, arm: ArmArguments) -> None:
        self.arm = open_arm(arm)
        self.run = self.arm.session.bind_run(self.arm.arrays)[0]

    def prepare(self) -> None:
        pass

    def close(self) -> None:
        self.arm.session.close()


class _TextRuns:
    """Runs of what generates text: a prompt with its first token, or one token after it at positions that go on."""

    def __init__(self, arm: ArmArguments, asked: GenerationArm) -> None:
        # Only decoders need these.
        from winml.modelkit.session.generation.measure import draw_prompt
        from winml.modelkit.session.generation.opening import open_folder

        self.generator: Any = open_folder(
            asked.folder,
            target=arm.target,
            section=arm.session,
            runtime=asked.runtime,
            distribution=arm.distribution,
            strict_ep=arm.strict_ep,
        )
        length, seed = asked.prompt_tokens, arm.inputs.seed
        self.prompt: Any = draw_prompt(self.generator, batch=asked.batch, length=length, seed=seed)
        self.asked, self._left = asked, 0
        runs = {"first-token": self._run_prompt, "tokens-per-second": self._run_step, "memory": self._run_text}
        self.run = runs[asked.metric]

    def prepare(self) -> None:
        if self.asked.metric == "tokens-per-second" and self._left == 0:
            self.generator.start(self.prompt, new_tokens=self.asked.new_tokens)
            self.generator.next()
            self._left = self.asked.new_tokens - 1

    def _run_prompt(self) -> None:
        self.generator.start(self.prompt, new_tokens=self.asked.new_tokens)
        self.generator.next()

    def _run_text(self) -> None:
        self._run_prompt()
        for _ in range(self.asked.new_tokens - 1):
            self.generator.next()

    def _run_step(self) -> None:
        self.generator.next()
        self._left -= 1

    def close(self) -> None:
        self.generator.close()


def _open(arm: ArmArguments) -> Runs:
    return _SessionRuns(arm) if arm.generation is None else _TextRuns(arm, arm.generation)


def _warm_up(arm: Runs) -> None:
    arm.prepare()
    arm.run()


def _time_run(arm: Runs, wall_ns: list[int], cpu_ns: list[int]) -> None:
    arm.prepare()
    run = arm.run
    cpu = time.process_time_ns()
    wall = time.perf_counter_ns()
    run()
    wall_ns.append(time.perf_counter_ns() - wall)
    cpu_ns.append(time.process_time_ns() - cpu)


def _conditions(raised: str | None, load_before: float | None) -> Conditions:
    return Conditions(
        load_before=load_before,
        load_after=environment.load(),
        pressure_pct=environment.pressure(),
        priority=raised,
    )


def together(args: dict[str, Any], context: object) -> RoundReport:
    """One round with both arms alive: runs in ABBA order, which of them is created and run first by the seed."""
    raised = priority.raise_priority(priority.MEASURED) if args["raise_priority"] else None
    order = [0, 1]
    random.Random(args["seed"]).shuffle(order)  # noqa: S311 - an order, not a secret
    load_before = environment.load()
    opened = {index: _open(read(ArmArguments, args["arms"][index])) for index in order}
    first, second = order
    for _ in range(args["warmup"]):
        _warm_up(opened[first])
        _warm_up(opened[second])
    wall: dict[int, list[int]] = {0: [], 1: []}
    cpu: dict[int, list[int]] = {0: [], 1: []}
    started = time.perf_counter()
    while not _enough(len(wall[0]), time.perf_counter() - started, args):
        for index in (first, second, second, first):
            _time_run(opened[index], wall[index], cpu[index])
    for arm in opened.values():
        arm.close()
    samples = [Samples(wall_ns=tuple(wall[i]), cpu_ns=tuple(cpu[i])) for i in (0, 1)]
    return RoundReport(
        order=(first, second), arms=(samples[0], samples[1]), conditions=_conditions(raised, load_before)
    )


def _enough(pairs: int, elapsed_s: float, args: dict[str, Any]) -> bool:
    if pairs >= args["min_pairs"] and elapsed_s >= args["min_round_s"]:
        return True
    return bool(pairs >= args["few_pairs"] and elapsed_s >= args["long_round_s"])


def keep(args: dict[str, Any], context: object) -> Conditions:
    """Open an arm under a name, warm it up and leave it open."""
    raised = priority.raise_priority(priority.MEASURED) if args["raise_priority"] else None
    load_before = environment.load()
    arm = _open(read(ArmArguments, args["arm"]))
    for _ in range(args["warmup"]):
        _warm_up(arm)
    _KEPT[args["name"]] = arm
    return _conditions(raised, load_before)


def block(args: dict[str, Any], context: object) -> BlockReport:
    """Run an open arm a number of times, or for a while."""
    arm = _KEPT[args["name"]]
    wall_ns: list[int] = []
    cpu_ns: list[int] = []
    started = time.perf_counter()
    while len(wall_ns) < args["runs"] or time.perf_counter() - started < args["seconds"]:
        _time_run(arm, wall_ns, cpu_ns)
    return BlockReport(
        wall_ns=tuple(wall_ns),
        cpu_ns=tuple(cpu_ns),
        load_after=environment.load(),
        pressure_pct=environment.pressure(),
        peak_bytes=_peak_bytes(arm),
    )


def _peak_bytes(arm: Runs) -> tuple[int, ...] | None:
    """The peak of this process, which has run this arm alone."""
    if not isinstance(arm, _TextRuns) or arm.asked.metric != "memory":
        return None
    found = memory_of()
    if found is None:
        raise UnavailableError("this system does not say how much memory a process has", hint="install psutil")
    return (found["peak_bytes"],)


def probe(args: dict[str, Any], context: object) -> Probe:
    """Run an arm a few times at ordinary priority and save its outputs: does it work at all, and about how fast?"""
    asked = read(ArmArguments, args["arm"])
    arm = _open(asked)
    try:
        if isinstance(arm, _TextRuns):
            return _probe_text(arm, asked, args["runs"])
        assert isinstance(arm, _SessionRuns)
        session, arrays = arm.arm.session, arm.arm.arrays
        outputs = session.run_arrays(arrays)
        timed = _time_runs(arm, args["runs"])
        _save(Path(args["save"]), list(outputs.values()))
        return Probe(
            wall_ns=timed.wall_ns,
            cpu_ns=timed.cpu_ns,
            placement=session.placement,
            inputs=_ports(session.inputs),
            outputs=_ports(session.outputs),
            shapes=tuple((str(a.dtype), *a.shape) for value in arrays.values() for a in elements_of(value)),
            environment=environment.environment(session.target.ep, distribution_version(session.package)),
        )
    finally:
        arm.close()


def _time_runs(arm: Runs, count: int) -> Samples:
    """Times of some runs after one that warms up."""
    _warm_up(arm)
    wall_ns: list[int] = []
    cpu_ns: list[int] = []
    for _ in range(count):
        _time_run(arm, wall_ns, cpu_ns)
    return Samples(wall_ns=tuple(wall_ns), cpu_ns=tuple(cpu_ns))


def _probe_text(arm: _TextRuns, asked: ArmArguments, runs: int) -> Probe:
    """The same of what generates text; it says what it generated instead of saving outputs."""
    # Only decoders need these.
    from winml.modelkit.session.generation.genai_loop import GenaiGenerator

    generator, count = arm.generator, arm.asked.new_tokens
    timed = _time_runs(arm, runs)
    generator.start(arm.prompt, new_tokens=count)
    tokens = np.stack([generator.next() for _ in range(count)], axis=1)
    sessions = [] if isinstance(generator, GenaiGenerator) else list(generator.sessions.values())
    version = distribution_version(sessions[0].package) if sessions else None
    given = arm.prompt.values() if isinstance(arm.prompt, dict) else [arm.prompt]
    return Probe(
        wall_ns=timed.wall_ns,
        cpu_ns=timed.cpu_ns,
        placement=add_placements([session.placement for session in sessions]),
        inputs=(),
        outputs=(),
        shapes=tuple((str(array.dtype), *array.shape) for array in given),
        environment=environment.environment(asked.ep, version),
        tokens=tuple(int(token) for token in tokens.flat),
    )


def _save(path: Path, outputs: list[Any]) -> None:
    """Outputs by position; strings have no distance and are skipped."""
    named: dict[str, Any] = {f"o{i}": v for i, v in enumerate(outputs) if v.dtype.kind not in "OUS"}
    np.savez(path, **named)


def _ports(specs: Sequence[InputSpec]) -> tuple[Port, ...]:
    return tuple(Port(name=s.name, type=s.type, rank=len(s.shape)) for s in specs)


def distance(args: dict[str, Any], context: object) -> Distances:
    """How far the saved outputs of two arms are apart, output by output."""
    with np.load(Path(args["base"])) as base, np.load(Path(args["candidate"])) as candidate:
        if sorted(base.files) != sorted(candidate.files):
            raise DataError("the two models have different outputs")
        return Distances(outputs=tuple(distance_of(base[name], candidate[name]) for name in sorted(base.files)))

"""Worker operations of comparisons: arms opened in this process, run in pairs or in blocks."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from winml.modelkit.core.errors import DataError
from winml.modelkit.core.values import read
from winml.modelkit.ep.discovery import distribution_version
from winml.modelkit.graph.inputs import InputSpec, elements_of
from winml.modelkit.measuring.reports import BlockReport, Conditions, Distances, Port, Probe, RoundReport, Samples
from winml.modelkit.session import environment
from winml.modelkit.session.arm import ArmArguments
from winml.modelkit.session.distance import distance_of
from winml.modelkit.session.opening import OpenArm, open_arm
from winml.modelkit.worker import priority

Run = Callable[[], None]
_KEPT: dict[str, tuple[OpenArm, Run]] = {}
"""Arms that stay open between requests."""


def _time_run(run: Run, wall_ns: list[int], cpu_ns: list[int]) -> None:
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
    opened = {index: open_arm(read(ArmArguments, args["arms"][index])) for index in order}
    runs = {index: arm.session.bind_run(arm.arrays)[0] for index, arm in opened.items()}
    first, second = order
    for _ in range(args["warmup"]):
        runs[first]()
        runs[second]()
    wall: dict[int, list[int]] = {0: [], 1: []}
    cpu: dict[int, list[int]] = {0: [], 1: []}
    started = time.perf_counter()
    while not _enough(len(wall[0]), time.perf_counter() - started, args):
        for index in (first, second, second, first):
            _time_run(runs[index], wall[index], cpu[index])
    for arm in opened.values():
        arm.session.close()
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
    arm = open_arm(read(ArmArguments, args["arm"]))
    run, _ = arm.session.bind_run(arm.arrays)
    for _ in range(args["warmup"]):
        run()
    _KEPT[args["name"]] = (arm, run)
    return _conditions(raised, load_before)


def block(args: dict[str, Any], context: object) -> BlockReport:
    """Run an open arm a number of times, or for a while."""
    _, run = _KEPT[args["name"]]
    wall_ns: list[int] = []
    cpu_ns: list[int] = []
    started = time.perf_counter()
    while len(wall_ns) < args["runs"] or time.perf_counter() - started < args["seconds"]:
        _time_run(run, wall_ns, cpu_ns)
    return BlockReport(
        wall_ns=tuple(wall_ns),
        cpu_ns=tuple(cpu_ns),
        load_after=environment.load(),
        pressure_pct=environment.pressure(),
    )


def probe(args: dict[str, Any], context: object) -> Probe:
    """Run an arm a few times at ordinary priority and save its outputs: does it work at all, and about how fast?"""
    arm = open_arm(read(ArmArguments, args["arm"]))
    with arm.session as session:
        outputs = session.run_arrays(arm.arrays)
        run, _ = session.bind_run(arm.arrays)
        run()
        wall_ns: list[int] = []
        cpu_ns: list[int] = []
        for _ in range(args["runs"]):
            _time_run(run, wall_ns, cpu_ns)
        _save(Path(args["save"]), list(outputs.values()))
        return Probe(
            wall_ns=tuple(wall_ns),
            cpu_ns=tuple(cpu_ns),
            placement=session.placement,
            inputs=_ports(session.inputs),
            outputs=_ports(session.outputs),
            shapes=tuple((str(a.dtype), *a.shape) for value in arm.arrays.values() for a in elements_of(value)),
            environment=environment.environment(session.target.ep, distribution_version(session.package)),
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

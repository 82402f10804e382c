"""Worker operation: open a session, run it in a timed loop, return every sample."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol, cast

from winml.modelkit.ep.discovery import distribution_version
from winml.modelkit.graph.inputs import Arrays
from winml.modelkit.session import environment
from winml.modelkit.session.opening import open_arm
from winml.modelkit.worker.memory import memory_of

_EVENT_EVERY_NS = 250_000_000


class Flag(Protocol):
    def is_set(self) -> bool: ...


class Context(Protocol):
    """What a worker gives its operations."""

    stop: Flag

    def event(self, name: str, **values: Any) -> None: ...


def timed_loop(
    run: Callable[[], None],
    *,
    iterations: int,
    duration_s: float | None,
    stop: Flag,
    progress: Callable[[int], None],
) -> tuple[list[int], list[int]]:
    """Wall and CPU nanoseconds of each run: `iterations` of them, or as many as start within `duration_s`."""
    wall_clock, cpu_clock = time.perf_counter_ns, time.process_time_ns
    wall_ns: list[int] = []
    cpu_ns: list[int] = []
    start = wall_clock()
    deadline = None if duration_s is None else start + int(duration_s * 1e9)
    next_event = start + _EVENT_EVERY_NS
    while deadline is not None or len(wall_ns) < iterations:
        cpu_before = cpu_clock()
        before = wall_clock()
        run()
        after = wall_clock()
        cpu_ns.append(cpu_clock() - cpu_before)
        wall_ns.append(after - before)
        if after >= next_event:
            progress(len(wall_ns))
            next_event = wall_clock() + _EVENT_EVERY_NS
        if (deadline is not None and after >= deadline) or stop.is_set():
            break
    return wall_ns, cpu_ns


def _input_facts(arrays: Arrays, asked: dict[str, Any]) -> dict[str, Any]:
    shapes = {name: {"dtype": str(a.dtype), "shape": list(a.shape)} for name, a in arrays.items()}
    source = "npz" if asked.get("npz") else "synthetic"
    return {"source": source, "seed": None if source == "npz" else asked.get("seed", 0), "tensors": shapes}


def _rss() -> int | None:
    memory = memory_of()
    return None if memory is None else memory["rss_bytes"]


def _warm_up(run: Callable[[], None], count: int, stop: Flag) -> int | None:
    """Nanoseconds of the first run; None without one."""
    first_ns = None
    for i in range(count):
        before = time.perf_counter_ns()
        run()
        first_ns = time.perf_counter_ns() - before if i == 0 else first_ns
        if stop.is_set():
            break
    return first_ns


def measure(args: dict[str, Any], context: object) -> dict[str, Any]:
    """Samples, placement, environment and memory of one session in this process."""
    ctx = cast("Context", context)
    rss = {"before_open": _rss()}
    arm = open_arm(args)
    with arm.session as session:
        rss["after_open"] = _rss()
        ctx.event("opened", placement=session.placement.to_json())
        run, bound = session.bound_run(arm.arrays)
        load_before = environment.load()
        first_ns = _warm_up(run, args["warmup"], ctx.stop)
        ctx.event("warm")
        wall_ns, cpu_ns = timed_loop(
            run,
            iterations=args["iterations"],
            duration_s=args["duration_s"],
            stop=ctx.stop,
            progress=lambda done: ctx.event("progress", done=done),
        )
        rss["after_runs"] = _rss()
        peak = memory_of()
        return {
            "wall_ns": wall_ns,
            "cpu_ns": cpu_ns,
            "stopped": ctx.stop.is_set(),
            "open_ns": arm.open_ns,
            "first_run_ns": first_ns,
            "load_before": load_before,
            "load_after": environment.load(),
            "placement": session.placement.to_json(),
            "provider_options": session.provider_options,
            "added_options": session.added_options,
            "fixed_dims": session.section.fixed_dims,
            "io_binding": bound,
            "inputs": _input_facts(arm.arrays, args["inputs"]),
            "memory": None if peak is None else {**rss, "peak": peak["peak_bytes"]},
            "environment": environment.environment(session.target.ep, distribution_version(session.package)),
        }

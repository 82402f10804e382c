"""Worker operation: open a session, run it in a perf() block, return every sample and the trace."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol, cast

from winml.modelkit.core.values import read
from winml.modelkit.ep.discovery import distribution_version
from winml.modelkit.graph.input_settings import InputSettings
from winml.modelkit.graph.inputs import Arrays, elements_of, symbol_sizes
from winml.modelkit.graph.sizes import Size
from winml.modelkit.session import environment
from winml.modelkit.session.arm import MeasureArguments, Tracing
from winml.modelkit.session.monitor.ep_monitor import EPMonitor
from winml.modelkit.session.opening import prepare_arm
from winml.modelkit.session.report import (
    InputFacts,
    Memory,
    Opened,
    ReadingTrace,
    RunsDone,
    SessionReport,
    TensorShape,
    Warm,
)
from winml.modelkit.session.saturation import weights_at_risk
from winml.modelkit.session.session import WinMLSession
from winml.modelkit.worker.memory import memory_of

_EVENT_EVERY_NS = 250_000_000


class Flag(Protocol):
    def is_set(self) -> bool: ...


class Context(Protocol):
    """What a worker gives its operations."""

    stop: Flag

    def tell(self, event: object) -> None: ...


def repeat(
    run: Callable[[], None],
    *,
    iterations: int,
    duration_s: float | None,
    stop: Flag,
    progress: Callable[[int], None],
) -> None:
    """Run `iterations` times, or as often as runs start within `duration_s`; at least once."""
    clock = time.perf_counter_ns
    start, done = clock(), 0
    deadline = None if duration_s is None else start + int(duration_s * 1e9)
    next_event = start + _EVENT_EVERY_NS
    while deadline is not None or done < iterations:
        run()
        done, now = done + 1, clock()
        if now >= next_event:
            progress(done)
            next_event = clock() + _EVENT_EVERY_NS
        if (deadline is not None and now >= deadline) or stop.is_set():
            break


def _input_facts(session: WinMLSession, arrays: Arrays, asked: InputSettings) -> InputFacts:
    tensors = {
        f"{name}[{place}]" if isinstance(value, list) else name: TensorShape(dtype=str(a.dtype), shape=a.shape)
        for name, value in arrays.items()
        for place, a in enumerate(elements_of(value))
    }
    if asked.npz is None:
        return InputFacts(source="synthetic", seed=asked.seed, tensors=tensors, sizes=asked.sizes or {})
    opened = {**session.section.fixed_dims, **symbol_sizes(session.inputs, arrays)}
    sizes = {name: Size(size, "data", "input data") for name, size in opened.items()}
    return InputFacts(source="npz", seed=None, tensors=tensors, sizes=sizes)


def _rss() -> int | None:
    memory = memory_of()
    return None if memory is None else memory["rss_bytes"]


def _warm_up(run: Callable[[], None], count: int, stop: Flag) -> None:
    for _ in range(count):
        run()
        if stop.is_set():
            break


def _monitor(ep: str, tracing: Tracing | None) -> EPMonitor | None:
    """The monitor of the target's EP where a trace was requested."""
    if tracing is None:
        return None
    from winml.modelkit.session.monitor.all_monitors import monitor_for

    return monitor_for(ep, tracing.level, tracing.output_dir)


def measure(args: dict[str, Any], context: object) -> SessionReport:
    """Samples, placement, environment, memory and trace of one session in this process."""
    ctx = cast("Context", context)
    asked = read(MeasureArguments, args)
    monitor = _monitor(asked.arm.ep, asked.tracing)
    before_open = _rss()
    closed = prepare_arm(asked.arm)
    with closed.session as session:
        with session.perf(warmup=asked.warmup, monitor=monitor) as perf:
            arm = closed.open()
            after_open = _rss()
            ctx.tell(Opened(placement=session.placement))
            run, bound = session.bind_run(arm.arrays)
            load_before = environment.load()
            _warm_up(run, asked.warmup, ctx.stop)
            ctx.tell(Warm())
            if not ctx.stop.is_set():
                repeat(
                    run,
                    iterations=asked.iterations,
                    duration_s=asked.duration_s,
                    stop=ctx.stop,
                    progress=lambda done: ctx.tell(RunsDone(done=done)),
                )
            after_runs = _rss()
            load_after = environment.load()
            if monitor is not None:
                ctx.tell(ReadingTrace())
        stats, resident = perf.stats, memory_of()
        memory = None
        if resident is not None:
            peak = resident["peak_bytes"]
            memory = Memory(before_open=before_open, after_open=after_open, after_runs=after_runs, peak=peak)
        return SessionReport(
            wall_ns=stats.wall_ns,
            cpu_ns=stats.cpu_ns,
            stopped=ctx.stop.is_set(),
            open_ns=arm.open_ns,
            first_run_ns=next(iter(stats.warmup_ns), None),
            load_before=load_before,
            load_after=load_after,
            weights_at_risk=weights_at_risk(session.path, session.target),
            placement=session.placement,
            provider_options=session.provider_options,
            added_options=session.added_options,
            fixed_dims=session.section.fixed_dims,
            io_binding=bound,
            inputs=_input_facts(session, arm.arrays, asked.arm.inputs),
            memory=memory,
            environment=environment.environment(session.target.ep, distribution_version(session.package)),
            op_trace=None if monitor is None else perf.monitor.final_result,
        )

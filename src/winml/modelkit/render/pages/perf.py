"""The report of `winml perf`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from winml.modelkit.core.measurement import NS_PER_MS
from winml.modelkit.core.statistics import median
from winml.modelkit.render.figures.distribution import latency_figure
from winml.modelkit.render.figures.distribution import sentence as latency_sentence
from winml.modelkit.render.figures.dots import DotRow, dot_figure, drawn_every
from winml.modelkit.render.pages.common import environment_facts, model_name, notices, placement_figure
from winml.modelkit.render.pages.op_trace import op_trace_blocks
from winml.modelkit.render.pages.page import Block, Facts, Figure, Group, Page, slug, table
from winml.modelkit.render.pages.trace_diff import trace_diff_blocks
from winml.modelkit.render.units import counted, ms, size

if TYPE_CHECKING:
    from winml.modelkit.measuring.perf import PerfResult
    from winml.modelkit.measuring.perf_parts import PerfParts


def perf_page(result: PerfResult) -> Page:
    """How long a model takes, how sure that is and where its nodes ran."""
    return Page(
        "perf",
        f"{model_name(result.model)} on {result.target}",
        _answer(result),
        (*notices(result.warnings), *perf_blocks(result), environment_facts(result.environment)),
        "simulated" if result.target.simulated else None,
    )


def parts_page(result: PerfParts) -> Page:
    """The parts of a composite model."""
    rows = [DotRow(one.part, f"{one.part}: p50 {ms(one.result.latency_ms.p50)}", one.result.latency_ms.p50,
                   ms(one.result.latency_ms.p50), interval(one.result)) for one in result.parts]  # fmt: skip
    slowest = max(result.parts, key=lambda one: one.result.latency_ms.p50)
    sentence = f"{slowest.part} takes longest: {ms(slowest.result.latency_ms.p50)} per run."
    first = Figure("parts", "Parts", sentence, lambda width: dot_figure(rows, "ms per run", sentence, width))
    groups = [Group(one.part, (*notices(one.result.warnings), *_named(one.part, perf_blocks(one.result))))
              for one in result.parts]  # fmt: skip
    said = f"{counted(len(result.parts), 'part')}; {sentence}"
    title = f"{model_name(result.model)} on {result.target}"
    return Page("perf", title, said, (*notices(result.warnings), first, *groups), None)


def _named(part: str, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Blocks whose pictures have names of their own."""
    return tuple(replace(b, name=f"{slug(part)}-{b.name}") if isinstance(b, Figure) else b for b in blocks)


def interval(result: PerfResult) -> tuple[float, float] | None:
    """The interval of the median, where there is one."""
    known = result.latency_ms.interval
    return None if known is None else (known.low, known.high)


def _answer(result: PerfResult) -> str:
    latency, known = result.latency_ms, result.latency_ms.interval
    spread = f"no interval: {latency.interval_reason}"
    if known is not None:
        spread = f"{100 * known.level:.0f} % interval {ms(known.low)} to {ms(known.high)}"
    runs = sum(s.iterations for s in result.sessions)
    word = "A run takes" if not result.target.simulated else "A run of the simulator takes"
    return f"{word} {ms(latency.p50)} ({spread}; {counted(runs, 'run')} in {counted(len(result.sessions), 'session')})."


def perf_blocks(result: PerfResult) -> tuple[Block, ...]:
    """Pictures and facts of one measurement."""
    trace, diff = result.op_trace, result.trace_diff
    return (
        *distribution_figure(result),
        *_sessions(result),
        *placement_figure(result.placement),
        *(op_trace_blocks(trace) if trace is not None and trace.operators else ()),
        *(() if diff is None else trace_diff_blocks(diff)),
        _facts(result),
    )


def samples_ms(result: PerfResult) -> list[float]:
    """Every timed run, in order."""
    return [ns / NS_PER_MS for one in result.measurement.rounds for ns in one.wall_ns]


def distribution_figure(result: PerfResult) -> tuple[Block, ...]:
    """How the runs are distributed; nothing without samples."""
    samples, known = samples_ms(result), result.latency_ms
    marks = {"p50": known.p50, "p90": known.p90, "p99": known.p99}
    if not samples:
        return ()
    values = table(
        "Latency",
        ("", "ms"),
        [(name, f"{value:.4g}") for name, value in
         (("min", known.min), *marks.items(), ("max", known.max), ("mean", known.mean))],
        numeric=(1,),
    )  # fmt: skip
    sentence = latency_sentence(samples, marks)
    return (
        Figure("latency", "How long runs took", sentence, lambda width: latency_figure(samples, marks, width), values),
    )


def _sessions(result: PerfResult) -> tuple[Block, ...]:
    rounds = [one for one in result.measurement.rounds if one.wall_ns]
    if len(rounds) < 2:
        return ()
    rows = []
    for number, one in enumerate(rounds, 1):
        times = tuple(ns / NS_PER_MS for ns in one.wall_ns)
        middle = median(times)
        load = "" if one.load_before is None else f", load {one.load_before:.1f} before"
        said = f"session {number}: median {middle:.4g} ms of {len(times)} runs{load}"
        rows.append(DotRow(f"session {number}", said, middle, ms(middle), None, times))
    low, high = min(row.value for row in rows), max(row.value for row in rows)
    sentence = (
        f"Medians of {len(rows)} sessions in fresh processes lie between {ms(low)} and {ms(high)}: "
        f"the slowest took {high / low:.2f} times as long as the fastest."
    )
    every = drawn_every(rows)
    if every > 1:
        sentence += f" One of {every} runs is drawn."
    return (Figure("sessions", "Sessions", sentence, lambda width: dot_figure(rows, "ms per run", sentence, width)),)


def _facts(result: PerfResult) -> Facts:
    tensors = ", ".join(f"{name} {t.dtype}{list(t.shape)}" for name, t in result.inputs.tensors.items())
    opened = [s.open_ms for s in result.sessions]
    pairs = [
        ("model", result.model),
        ("target", f"{result.target}{' (simulated)' if result.target.simulated else ''}"),
        ("inputs", f"{tensors} ({result.inputs.source})"),
        ("opening the session", f"{ms(min(opened))} to {ms(max(opened))}" if opened else "unknown"),
        ("CPU time per run", ms(result.cpu_ms.p50) if result.cpu_ms.p50 else "below the clock resolution"),
        ("runs per second", f"{result.throughput.runs_per_s:.1f}"),
    ]
    if result.built_for is not None:
        pairs.append(("built for", result.built_for))
    memory = result.memory
    if memory is not None:
        known = {"before open": memory.before_open, "after open": memory.after_open, "peak": memory.peak}
        pairs.append(("memory", ", ".join(f"{k} {size(v)}" for k, v in known.items() if v is not None) or "unknown"))
    if result.utilization is not None:
        for name, usage in result.utilization.sources.items():
            pairs.append((name.replace("_", " "), f"{usage.mean:.1f} ({usage.min:.1f} to {usage.max:.1f})"))
    return Facts("Run", tuple(pairs))


def perf_pair(results: Sequence[PerfResult], labels: Sequence[str]) -> tuple[str, tuple[Block, ...]]:
    """What two measurements say of each other: not a verdict, because they were not taken together."""
    rows = []
    for label, result in zip(labels, results, strict=True):
        known = result.latency_ms
        said = f"{label}: p50 {known.p50:.4g} ms, p90 {known.p90:.4g} ms, p99 {known.p99:.4g} ms"
        rows.append(DotRow(label, said, known.p50, ms(known.p50), interval(result), tuple(samples_ms(result))))
    first, second = (result.latency_ms.p50 for result in results)
    ratio = second / first
    answer = (
        f"The median of {labels[1]} is {ratio:.2f} times that of {labels[0]}. They were measured one after the other, "
        "which decides nothing: `winml compare` does."
    )
    figure = Figure("both", "Both runs", answer, lambda width: dot_figure(rows, "ms per run", answer, width))
    return answer, (figure,)

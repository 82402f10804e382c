"""The text of `winml perf`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from winml.modelkit.core.measurement import NS_PER_MS
from winml.modelkit.render.marks import histogram
from winml.modelkit.render.op_trace import op_trace_text
from winml.modelkit.render.table import table
from winml.modelkit.render.trace import diff_text
from winml.modelkit.render.units import ms, size

if TYPE_CHECKING:
    from winml.modelkit.measuring.perf import PerfResult
    from winml.modelkit.measuring.perf_parts import PerfParts


def _headline(result: PerfResult) -> str:
    runtime = result.environment.runtime
    counts = {s.iterations for s in result.sessions}
    per_session = f"{counts.pop()}" if len(counts) == 1 else f"{min(counts)} to {max(counts)}"
    sessions = len(result.sessions)
    simulated = " (simulated)" if result.target.simulated else ""
    return (
        f"{Path(result.model).name} on {result.target}{simulated} ({runtime.name} {runtime.version}) · "
        f"{sessions} session{'s' if sessions > 1 else ''} x {per_session} iterations"
    )


def _latency(result: PerfResult) -> list[str]:
    latency = result.latency_ms
    interval = latency.interval
    spread = (
        f"({ms(interval.low)} … {ms(interval.high)}, {100 * interval.level:.0f} %)"
        if interval
        else f"(no interval: {latency.interval_reason})"
    )
    cpu_time = ms(result.cpu_ms.p50)
    if result.cpu_ms.per != "run":
        mean = f"{cpu_time} (mean; the clock is too coarse for one run)"
        cpu_time = mean if result.cpu_ms.p50 else "below the clock resolution"
    word = "simulator time" if result.target.simulated else "p50"
    lines = [
        f"  {word}  {ms(latency.p50)}  {spread}",
        f"  p90  {ms(latency.p90)}     p99  {ms(latency.p99)}     max  {ms(latency.max)}",
        f"  CPU time per run  {cpu_time}     runs per second  {result.throughput.runs_per_s:.1f}",
    ]
    samples = [ns / NS_PER_MS for one in result.measurement.rounds for ns in one.wall_ns]
    shape = histogram([value for value in samples if value <= latency.p99])
    if shape:
        lines.append(f"  distribution  {ms(min(samples))} {shape} {ms(latency.p99)} (p99)")
    opened = [s.open_ms for s in result.sessions]
    return [*lines, f"  opening the session  {ms(min(opened))} … {ms(max(opened))}"]


def _placement(result: PerfResult) -> str:
    placement = result.placement
    parts = []
    for ep, nodes in placement.nodes.items():
        partitions = placement.partitions.get(ep)
        tail = f" in {partitions} partition{'s' if partitions > 1 else ''}" if partitions else ""
        parts.append(f"{nodes} on {ep.removesuffix('ExecutionProvider')}{tail}")
    return "  nodes  " + (", ".join(parts) or "none")


def _inputs(result: PerfResult) -> str:
    tensors = ", ".join(f"{name} {t.dtype}{list(t.shape)}" for name, t in result.inputs.tensors.items())
    source = result.inputs.source
    seed = f", seed {result.inputs.seed}" if source == "synthetic" else ""
    line = f"  inputs  {tensors} ({source}{seed})"
    sizes = [f"{name}={size.size} ({size.reason})" for name, size in result.inputs.sizes.items()]
    return f"{line}\n  sizes  {', '.join(sizes)}" if sizes else line


def _memory(result: PerfResult) -> list[str]:
    memory = result.memory
    if memory is None:
        return []
    figures = {
        "before open": memory.before_open,
        "after open": memory.after_open,
        "after runs": memory.after_runs,
        "peak": memory.peak,
    }
    known = [f"{name} {size(value)}" for name, value in figures.items() if value is not None]
    return ["  memory  " + ", ".join(known)]


_SOURCES = {
    "cpu_pct": ("CPU", "{:.0f} %"),
    "process_cpu_pct": ("process", "{:.0f} %"),
    "memory_pct": ("memory", "{:.0f} %"),
    "load": ("load", "{:.1f}"),
    "frequency_mhz": ("clock", "{:.0f} MHz"),
    "gpu_pct": ("GPU", "{:.0f} %"),
    "npu_pct": ("NPU", "{:.0f} %"),
}


def utilization_words(latest: Mapping[str, float]) -> str:
    """A summary of sampled values: `CPU 92 %, load 1.2`."""
    return ", ".join(f"{w} {f.format(latest[name])}" for name, (w, f) in _SOURCES.items() if name in latest)


def parts_text(result: PerfParts) -> str:
    """The parts of a composite model, one row each."""
    simulated = " (simulated)" if result.target.simulated else ""
    word = "simulator time" if result.target.simulated else "p50"
    rows = [("part", word, "p90", "runs", "inputs")]
    for one in result.parts:
        latency, runs = one.result.latency_ms, sum(s.iterations for s in one.result.sessions)
        sizes = ", ".join(f"{name}={size.size}" for name, size in one.result.inputs.sizes.items())
        rows.append((one.part, ms(latency.p50), ms(latency.p90), str(runs), sizes or "sizes are fixed"))
    return f"{Path(result.model).name} on {result.target}{simulated}\n{table(rows, indent='  ', head=True, drop=(3,))}"


def perf_text(result: PerfResult, *, top_k: int = 5) -> str:
    """The result without its warnings."""
    lines = [_headline(result), *_latency(result), _placement(result), _inputs(result), *_memory(result)]
    if result.utilization is not None:
        means = utilization_words({name: usage.mean for name, usage in result.utilization.sources.items()})
        lines.append(f"  during the runs  {means or 'nothing was sampled'} ({result.utilization.samples} samples)")
    if result.op_trace is not None and result.op_trace.operators:
        lines.append(op_trace_text(result.op_trace, top_k))
    if result.trace_diff is not None:
        lines.append(diff_text(result.trace_diff, top_k))
    return "\n".join(lines)

"""`winml perf`: how long a model takes on a target, with the evidence."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from winml.modelkit.building.model_argument import model_argument
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.environment import Environment
from winml.modelkit.core.errors import Interrupted, RequestError
from winml.modelkit.core.events import OnEvent, TargetChosen
from winml.modelkit.core.generation import GENAI_CONFIG
from winml.modelkit.core.latency import CPUTime, Latency
from winml.modelkit.core.measurement import Arm, Measurement
from winml.modelkit.core.op_trace import OpTraceResult, TracingLevel
from winml.modelkit.core.placement import Placement
from winml.modelkit.core.result import CommandResult
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import key
from winml.modelkit.data import sizes
from winml.modelkit.ep import options
from winml.modelkit.ep import probing as targets
from winml.modelkit.ep.probing import Chosen
from winml.modelkit.ep.trust import NOTHING, Trust
from winml.modelkit.graph.input_settings import InputSettings
from winml.modelkit.measuring import summary, trust
from winml.modelkit.measuring.processes import Processes
from winml.modelkit.measuring.sessions import AskedProtocol, PerfProtocol, PerfRun, measure_sessions
from winml.modelkit.measuring.summary import SessionSummary, Throughput
from winml.modelkit.measuring.trace import no_trace, read_trace, trace_notices
from winml.modelkit.measuring.trace_diff import TraceDiff, diff
from winml.modelkit.session.arm import Tracing
from winml.modelkit.session.notes import dims_notes, fallback_notes, saturation_notes, simulator_notes
from winml.modelkit.session.report import InputFacts, Memory, Utilization
from winml.modelkit.store import atomic
from winml.modelkit.worker.scratch import ScratchFolder

if TYPE_CHECKING:
    from winml.modelkit.measuring.watch import Watch

SIMULATED = "times are those of a simulator, not of a device; placement and outputs are real"
DEFAULT_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class GenerationSettings:
    """What is generated with a decoder folder; None leaves the choice to us."""

    prompt_tokens: tuple[int, ...] | None = None
    new_tokens: int | None = None
    runtime: str | None = None


@dataclass(frozen=True)
class PerfRequest:
    """Everything the user decided."""

    model: str
    target: str | None = None
    ep: str | None = None
    device: str | None = None
    protocol: AskedProtocol = field(default_factory=AskedProtocol)
    threads: int | None = None
    ep_options: dict[str, str] = field(default_factory=dict)
    inputs: InputSettings = InputSettings()
    strict_ep: bool = False
    memory: bool = False
    op_tracing: TracingLevel | None = None
    keep_trace: Path | None = None
    """Folder for what the EP wrote while it was traced; it is deleted without one."""
    baseline: Path | None = None
    """An earlier trace to compare the new one with."""
    monitor: bool = False
    """Sample the machine beside the timed loops."""
    trust: Trust = NOTHING
    generation: GenerationSettings = GenerationSettings()

    def check(self) -> None:
        """Reject options that contradict each other."""
        if self.generation != GenerationSettings():
            raise RequestError(
                f"`{self.model}` is no folder that generates text: it has no {GENAI_CONFIG}",
                hint="`--prompt-tokens`, `--new-tokens` and `--runtime` are for such folders; `winml build -m MODEL -o "
                "DIR` makes one of a decoder",
            )
        if self.op_tracing is None and self.baseline is not None:
            raise RequestError("`--baseline` compares traces", hint="add `--op-tracing basic`")
        if self.op_tracing is not None and self.protocol.sessions not in (None, 1):
            raise RequestError(
                f"a trace is taken in one session, but {self.protocol.sessions} were requested",
                hint="drop `--sessions`",
            )


@dataclass(frozen=True, kw_only=True, repr=False)
class PerfResult(CommandResult):
    """How long a model takes on a target."""

    schema: Literal["winml/perf/1"] = "winml/perf/1"
    ok: Literal[True] = True
    model: str
    target: Target = key(inline=True)
    built_for: str | None
    """What the build folder that was measured is for; null for a model that is no build."""
    latency_ms: Latency
    cpu_ms: CPUTime
    throughput: Throughput
    sessions: tuple[SessionSummary, ...]
    placement: Placement
    inputs: InputFacts
    io_binding: bool
    provider_options: Mapping[str, str]
    fixed_dims: Mapping[str, int]
    memory: Memory | None
    environment: Environment
    measurement: Measurement
    utilization: Utilization | None
    op_trace: OpTraceResult | None
    trace_diff: TraceDiff | None
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class PerfStarted(TargetChosen):
    """A model is measured on its target."""

    protocol: PerfProtocol


def perf(request: PerfRequest, on_event: OnEvent, processes: Processes | None = None) -> PerfResult:
    """Measure a model; what was measured before a failure is the result of the error."""
    request.check()
    if request.op_tracing is not None:
        request = replace(request, protocol=replace(request.protocol, sessions=1))
    baseline = None if request.baseline is None else read_trace(request.baseline)
    with contextlib.ExitStack() as stack:
        processes = stack.enter_context(processes or Processes())
        folder = stack.enter_context(ScratchFolder("winml-trace-"))
        chosen, run, utilization = _measure(request, processes, folder, on_event)
        traced = _Traced(_keep_trace(run, folder, request.keep_trace), baseline)
    if run.stopped:
        measured = _result(request, chosen, run, traced, utilization) if run.reports else None
        raise Interrupted("interrupted; what was measured is in the result", result=measured)
    result = _result(request, chosen, run, traced, utilization)
    if traced.trace is not None and not traced.trace.usable:
        raise no_trace(traced.trace, result)
    return result


def _measure(
    request: PerfRequest, processes: Processes, folder: Path, on_event: OnEvent
) -> tuple[Chosen, PerfRun, Utilization | None]:
    """The target, what was measured there, and what the machine did meanwhile."""
    model = model_argument(request.model, on_event, trust=request.trust.with_typed(request.ep_options))
    chosen = targets.choose(model.target, request.target, request.ep, request.device)
    resolved = chosen.resolved
    inputs = sizes.complete(model.path, request.inputs)
    path = sizes.openable(model.path, resolved.target, folder)
    protocol = request.protocol.on(resolved.target)
    processes.use(resolved.installed.python)
    threads = request.threads if request.threads is not None else model.section.threads
    given = options.with_threads(resolved.target, {**model.section.ep_options, **request.ep_options}, threads)
    section = replace(model.section, threads=threads, ep_options=options.check_options(resolved.target, given))
    on_event(PerfStarted(resolved.target, protocol))
    with watching(on_event, wanted=request.monitor) as watch:
        run = measure_sessions(
            Arm(artifact=str(path), target=resolved.target, session=section, build=model.build),
            protocol,
            inputs=inputs,
            strict_ep=request.strict_ep,
            distribution=resolved.installed.package.distribution,
            tracing=Tracing(level=request.op_tracing, output_dir=str(folder)) if request.op_tracing else None,
            start=processes.start,
            on_event=on_event if watch is None else watch.on_event,
        )
    return chosen, run, None if watch is None else watch.summary()


@contextlib.contextmanager
def watching(on_event: OnEvent, *, wanted: bool) -> Iterator[Watch | None]:
    """Samples of the machine beside the timed loops, where they are wanted."""
    if not wanted:
        yield None
        return
    from winml.modelkit.measuring.watch import Watch

    watch = Watch(on_event)
    try:
        yield watch
    finally:
        watch.end()


@dataclass(frozen=True)
class _Traced:
    """The trace of a run, and what it is compared with."""

    trace: OpTraceResult | None
    baseline: OpTraceResult | None

    @cached_property
    def difference(self) -> TraceDiff | None:
        if self.trace is None or self.baseline is None or not self.trace.usable:
            return None
        return diff(self.baseline, self.trace)


def _keep_trace(run: PerfRun, folder: Path, keep: Path | None) -> OpTraceResult | None:
    """The trace the worker made, with its files where the user wants them, or without them."""
    trace = run.reports[0].op_trace if run.reports else None
    if trace is None:
        return None
    if keep is None:
        return replace(trace, artifacts={})
    try:
        shutil.copytree(folder, keep, dirs_exist_ok=True)
    except OSError as error:
        raise atomic.write_error(error, keep) from error
    moved = {
        name: str(keep / Path(path).relative_to(folder))
        for name, path in trace.artifacts.items()
        if Path(path).is_relative_to(folder)
    }
    return replace(trace, artifacts={**trace.artifacts, **moved})


def _batch(run: PerfRun, request: PerfRequest) -> int | None:
    if request.inputs.batch_size is not None:
        return request.inputs.batch_size
    leading = {t.shape[0] if t.shape else None for t in run.reports[0].inputs.tensors.values()}
    return leading.pop() if len(leading) == 1 else None


def _placement_warnings(target: Target, run: PerfRun) -> list[str]:
    placements = [r.placement for r in run.reports]
    found = fallback_notes(target, placements[0])
    if any(p != placements[0] for p in placements):
        found.append("placement differed between sessions")
    return found


def _option_warnings(run: PerfRun) -> list[str]:
    """Options of the user that the trace overrides."""
    asked, used = run.arm.session.ep_options, run.reports[0].provider_options
    return [f"the trace overrides provider option `{k}={v}`" for k, v in asked.items() if used.get(k, v) != v]


def _missing_sources(target: Target, utilization: Utilization | None) -> list[str]:
    """Sources of `--monitor` that are not available; of accelerators only the one that is measured."""
    if utilization is None:
        return []
    others = {f"{device}_pct" for device in ("gpu", "npu") if device != target.device}
    return [f"{name} is not sampled: {why}" for name, why in utilization.missing.items() if name not in others]


def _result(
    request: PerfRequest, chosen: Chosen, run: PerfRun, traced: _Traced, utilization: Utilization | None
) -> PerfResult:
    first, target, measurement = run.reports[0], chosen.resolved.target, run.measurement
    # A simulator's times are not comparable anyway, so no other warning about them is needed.
    doubts = [SIMULATED, *simulator_notes(first.added_options)] if target.simulated else trust.warnings(measurement)
    warnings = (
        *chosen.notes,
        *_placement_warnings(target, run),
        *saturation_notes(first.weights_at_risk),
        *dims_notes(target, first.fixed_dims),
        *doubts,
        *_option_warnings(run),
        *_missing_sources(target, utilization),
        *trace_notices(traced.trace),
        *(traced.difference.notes if traced.difference else ()),
    )
    return PerfResult(
        model=request.model,
        target=target,
        built_for=chosen.built_for,
        latency_ms=summary.latency(measurement.rounds),
        cpu_ms=summary.cpu_time(measurement.rounds),
        throughput=summary.throughput(measurement.rounds, _batch(run, request)),
        sessions=tuple(map(summary.summarize_session, run.pids, run.reports)),
        placement=first.placement,
        inputs=first.inputs,
        io_binding=first.io_binding,
        provider_options=first.provider_options,
        fixed_dims=first.fixed_dims,
        memory=first.memory if request.memory else None,
        environment=measurement.environment,
        measurement=measurement,
        utilization=utilization,
        op_trace=traced.trace,
        trace_diff=traced.difference,
        warnings=warnings,
    )

"""`winml perf` of a decoder folder: how long until the first token, how many follow in a second, in how much memory.

Every session is a fresh process. A session continues texts with prompts of each length; the tokens of a prompt are
drawn at random, and every text goes on to its last token, whatever the tokens are.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from winml.modelkit.building.model_argument import ModelArgument, model_argument, parts_argument
from winml.modelkit.core import model_ref
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.environment import Environment
from winml.modelkit.core.errors import Interrupted, ModelkitError, RequestError
from winml.modelkit.core.events import OnEvent
from winml.modelkit.core.latency import Latency, Spread
from winml.modelkit.core.measurement import NS_PER_MS, SessionSection, SessionsProtocol
from winml.modelkit.core.op_trace import OpTraceResult
from winml.modelkit.core.placement import Placement
from winml.modelkit.core.plain_text import shell_word
from winml.modelkit.core.result import CommandResult
from winml.modelkit.core.statistics import median
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import key
from winml.modelkit.ep import options
from winml.modelkit.ep import probing as targets
from winml.modelkit.ep.probing import Chosen
from winml.modelkit.measuring.perf import SIMULATED, PerfRequest, PerfStarted, watching
from winml.modelkit.measuring.processes import Processes
from winml.modelkit.measuring.sessions import CoolingDown, PerfProtocol, Process, SessionStarted, ask_session
from winml.modelkit.measuring.summary import latency_of, spread_of
from winml.modelkit.measuring.text_folder import PARTS_REASON, TextFolder, read_text_folder
from winml.modelkit.measuring.trace import no_trace, trace_notices
from winml.modelkit.measuring.trust import load_warnings, session_warnings
from winml.modelkit.session.arm import Tracing
from winml.modelkit.session.generation.report import (
    DecoderArguments,
    GenerationArguments,
    GenerationReport,
    Phase,
    PromptTimes,
)
from winml.modelkit.session.generation.runtimes import ChosenRuntime, Runtime, choose_runtime
from winml.modelkit.session.notes import fallback_notes
from winml.modelkit.session.report import Memory, Utilization
from winml.modelkit.store import atomic
from winml.modelkit.worker.scratch import ScratchFolder

OPERATION = "generation.measure"
PROMPT_TOKENS = (32, 256)
NEW_TOKENS = 64
SIMULATED_PROMPT_TOKENS, SIMULATED_NEW_TOKENS = (32,), 8
"""On a simulator, whose steps take seconds and whose times mean nothing."""
MANY, FEW = (3, 1, 3), (1, 0, 1)
"""Timed texts of every length, texts before them and sessions: on a device, and on a simulator."""
LEAST_STEPS = 8
"""Steps that a text must have for its last quarter to be compared with its first."""
_NO_GROWTH = "the process did not grow in every session"


@dataclass(frozen=True, kw_only=True)
class UsedRuntime:
    """The program that ran the steps."""

    name: Runtime
    version: str
    reason: str
    """Why it was this one."""


@dataclass(frozen=True, kw_only=True)
class PromptPerf:
    """Texts with prompts of one length."""

    prompt_tokens: int
    first_token_ms: Latency
    """From the start of the prompt until its first token is known."""
    step_ms: Latency | None
    """A token after the first, at any position; null where a text has one token."""
    tokens_per_s: Spread | None
    """Tokens after the first of all sequences, by the time they took."""
    last_to_first_quarter: Spread | None
    """Time of the last quarter of the steps of a text against the first: above 1 where a longer past is slower."""


@dataclass(frozen=True, kw_only=True)
class GenerationMemory:
    """Resident bytes of the process, one value per session."""

    peak_bytes: Spread
    """The most there were: Python, the runtime, the model and its cache."""
    model_bytes: Spread
    """What the process grew by from before the model was opened until after its texts."""


@dataclass(frozen=True, kw_only=True)
class GenerationSession:
    """One process with its raw samples."""

    process: int
    open_ms: float
    prompts: tuple[PromptTimes, ...]
    memory: Memory | None
    load_before: float | None
    load_after: float | None


@dataclass(frozen=True, kw_only=True, repr=False)
class GenerationPerf(CommandResult):
    """How fast a decoder generates text on a target."""

    schema: Literal["winml/perf-generation/1"] = "winml/perf-generation/1"
    ok: Literal[True] = True
    model: str
    target: Target = key(inline=True)
    built_for: str | None
    """What the build folder that was measured is for; null for a folder that is no build."""
    runtime: UsedRuntime
    context_length: int | None
    """Of an encoder with a decoder the tokens that it says; null where neither its graphs nor its config tell."""
    batch: int
    new_tokens: int
    prompts: tuple[PromptPerf, ...]
    open_ms: Spread
    memory: GenerationMemory | None
    protocol: SessionsProtocol
    """`iterations` are texts of every length."""
    session: SessionSection
    sessions: tuple[GenerationSession, ...]
    placement: Placement | None
    environment: Environment
    utilization: Utilization | None
    op_traces: Mapping[Phase, OpTraceResult] | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PartialGeneration:
    """What was measured before a failure."""

    sessions: tuple[GenerationSession, ...]

    @property
    def has_samples(self) -> bool:
        return bool(self.sessions)


@dataclass(frozen=True)
class _Plan:
    """Everything that is decided before the first process runs."""

    subject: TextFolder
    chosen: Chosen
    runtime: ChosenRuntime
    protocol: PerfProtocol
    arguments: GenerationArguments
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Run:
    """What each process reported."""

    pids: tuple[int, ...] = ()
    reports: tuple[GenerationReport, ...] = ()
    stopped: bool = False

    @property
    def sessions(self) -> tuple[GenerationSession, ...]:
        return tuple(
            GenerationSession(
                process=pid,
                open_ms=report.open_ns / NS_PER_MS,
                prompts=report.prompts,
                memory=report.memory,
                load_before=report.load_before,
                load_after=report.load_after,
            )
            for pid, report in zip(self.pids, self.reports, strict=True)
        )


def perf_generation(request: PerfRequest, on_event: OnEvent, processes: Processes | None = None) -> GenerationPerf:
    """Measure a decoder folder; what was measured before a failure is the result of the error."""
    _refuse_other_options(request)
    with contextlib.ExitStack() as stack:
        processes = stack.enter_context(processes or Processes())
        scratch = stack.enter_context(ScratchFolder("winml-trace-"))
        plan = _plan(request, scratch)
        processes.use(plan.chosen.resolved.installed.python)
        texts = replace(plan.protocol, iterations=plan.protocol.iterations * len(plan.arguments.prompt_tokens))
        on_event(PerfStarted(plan.chosen.resolved.target, texts))
        with watching(on_event, wanted=request.monitor) as watch:
            run = _run_sessions(plan, processes, on_event if watch is None else watch.on_event)
        utilization = None if watch is None else watch.summary()
        traces = _keep_traces(run, scratch, request.keep_trace)
    result = _result(request, plan, run, traces, utilization) if run.reports else None
    if run.stopped or result is None:
        raise Interrupted("interrupted; what was measured is in the result", result=result)
    for phase, trace in (traces or {}).items():
        if not trace.usable:
            error = no_trace(trace, None)
            raise type(error)(f"{phase}: {error.message}", hint=error.hint, details=error.details, result=result)
    return result


def _refuse_other_options(request: PerfRequest) -> None:
    """Options that say nothing about a text."""
    inputs = request.inputs
    given = {
        "--input-data": inputs.npz is not None,
        "--dim` and `--shape": bool(inputs.dims),
        "--int-range": bool(inputs.int_ranges),
        "--duration": request.protocol.duration_s is not None,
        "--baseline": request.baseline is not None,
    }
    for option, is_given in given.items():
        if is_given:
            raise RequestError(
                f"`{option}` says nothing about a folder that generates text",
                hint="its length is set with `--prompt-tokens`, `--new-tokens` and `--iterations`; one graph of it is "
                "measured by naming its .onnx file",
            )
    if request.op_tracing is not None and request.generation.runtime == "genai":
        raise RequestError(
            "operators are traced in winml's own loop, not in onnxruntime-genai", hint="drop `--runtime genai`"
        )


def _plan(request: PerfRequest, scratch: Path) -> _Plan:
    subject = read_text_folder(Path(request.model).absolute())
    model = _find_build(request, subject)
    section, built_for = (SessionSection(), None) if model is None else (model.section, model.target)
    chosen = targets.choose(built_for, request.target, request.ep, request.device)
    target, installed = chosen.resolved.target, chosen.resolved.installed
    threads = request.threads if request.threads is not None else section.threads
    given = options.with_threads(target, {**section.ep_options, **request.ep_options}, threads)
    section = replace(section, threads=threads, ep_options=options.check_options(target, given))
    runtime = _choose_runtime(request, subject, target, section)
    lengths, new_tokens, notes = _fit_texts(request, subject, target)
    protocol = _protocol(request, target)
    if request.op_tracing is not None and subject.kind == "pair":
        raise RequestError(
            "a trace of an encoder with a decoder needs a single part",
            hint=f"name one: `winml perf -m {shell_word(str(Path(request.model) / 'decode'))}`",
        )
    tracing = None
    if request.op_tracing is not None:
        tracing = Tracing(level=request.op_tracing, output_dir=str(scratch))
    decoder = DecoderArguments(
        folder=str(subject.folder),
        ep=target.ep,
        device=target.device,
        simulated=target.simulated,
        session=section,
        runtime=runtime.name,
        distribution=installed.package.distribution,
        strict_ep=request.strict_ep,
        batch=request.inputs.batch_size or 1,
        seed=request.inputs.seed,
    )
    arguments = GenerationArguments(
        decoder=decoder,
        prompt_tokens=lengths,
        new_tokens=new_tokens,
        warmup=protocol.warmup,
        texts=protocol.iterations,
        tracing=tracing,
    )
    if subject.described is not None and subject.described.ignored:
        notes += (f"settings of genai_config.json that are not used: {', '.join(subject.described.ignored)}",)
    return _Plan(subject, chosen, runtime, protocol, arguments, notes)


def _find_build(request: PerfRequest, subject: TextFolder) -> ModelArgument | None:
    """The session and the target of a build; None for a folder that is none."""
    trust = request.trust.with_typed(request.ep_options)
    if subject.kind != "folder":
        return parts_argument(subject.folder, trust=trust)
    return model_argument(request.model, trust=trust) if model_ref.parse(request.model).kind == "build" else None


def _choose_runtime(
    request: PerfRequest, subject: TextFolder, target: Target, section: SessionSection
) -> ChosenRuntime:
    asked = request.generation.runtime
    if subject.kind != "folder":
        if asked == "genai":
            raise RequestError("parts are run by winml alone, not by onnxruntime-genai", hint="drop `--runtime genai`")
        return ChosenRuntime("onnxruntime", PARTS_REASON)
    found = choose_runtime(target, asked, folder=subject.described, saved=section.runtime, section=section)
    if request.op_tracing is not None and found.name == "genai":
        return ChosenRuntime("onnxruntime", "operators are traced in winml's own loop")
    return found


def _fit_texts(
    request: PerfRequest, subject: TextFolder, target: Target
) -> tuple[tuple[int, ...], int, tuple[str, ...]]:
    """Lengths of prompts, tokens after each, and what is to be said of them."""
    asked, notes = request.generation, tuple[str, ...]()
    prompts, new_tokens = asked.prompt_tokens, asked.new_tokens
    usual: tuple[tuple[int, ...], int] = (PROMPT_TOKENS, NEW_TOKENS)
    if target.simulated:
        usual = (SIMULATED_PROMPT_TOKENS, SIMULATED_NEW_TOKENS)
        if prompts is None or new_tokens is None:
            notes += ("few tokens, because the device is simulated: `--prompt-tokens` and `--new-tokens` ask for more",)
    if subject.kind != "pair":
        assert subject.context_length is not None
        lengths, count, more = fit_lengths(prompts, new_tokens, subject.context_length, usual=usual)
        return lengths, count, (*notes, *more)
    if subject.source_vectors is not None and prompts is not None:
        raise RequestError("`--prompt-tokens` says nothing about an encoder that reads no text", hint="drop the option")
    lengths, count, more = _fit_pair(prompts, new_tokens, subject, usual=usual)
    return lengths, count, (*notes, *more)


def _fit_pair(
    prompts: Sequence[int] | None,
    new_tokens: int | None,
    subject: TextFolder,
    *,
    usual: tuple[tuple[int, ...], int],
) -> tuple[tuple[int, ...], int, tuple[str, ...]]:
    """The same for an encoder with a decoder, whose lengths do not depend on each other."""
    notes = list[str]()
    most = subject.context_length
    count = new_tokens or (usual[1] if most is None else min(usual[1], most))
    if most is not None and count > most:
        raise RequestError(f"{count} new tokens do not fit the decoder's {most}", hint="ask for fewer `--new-tokens`")
    if count < usual[1] and new_tokens is None:
        notes.append(f"{count} tokens are generated instead of {usual[1]}: the decoder takes no more")
    if subject.source_vectors is not None:
        notes.append(
            f"the prompt is one input of the encoder, of which the decoder reads {subject.source_vectors} vectors"
        )
        return (subject.source_vectors,), count, tuple(notes)
    longest = subject.source_length
    if prompts is not None:
        if longest is not None and max(prompts) > longest:
            raise RequestError(
                f"a prompt of {max(prompts)} tokens does not fit the encoder's {longest}",
                hint="give a shorter `--prompt-tokens`",
            )
        return tuple(sorted(set(prompts))), count, tuple(notes)
    if longest is not None and max(usual[0]) > longest:
        notes.append(f"the longest prompt is {longest} tokens instead of {max(usual[0])}: the encoder takes no more")
    return (
        tuple(sorted({length if longest is None else min(length, longest) for length in usual[0]})),
        count,
        tuple(notes),
    )


def fit_lengths(
    prompt_tokens: Sequence[int] | None,
    new_tokens: int | None,
    context_length: int,
    *,
    usual: tuple[tuple[int, ...], int] = (PROMPT_TOKENS, NEW_TOKENS),
) -> tuple[tuple[int, ...], int, tuple[str, ...]]:
    """Lengths of prompts, tokens after each, and what was shortened to fit the context; what was asked for is not."""
    notes = []
    usual_prompts, usual_tokens = usual
    wanted = usual_tokens if new_tokens is None else new_tokens
    if new_tokens is None and wanted > context_length // 2:
        wanted = max(1, context_length // 2)
        notes.append(f"{wanted} tokens are generated instead of {usual_tokens}: the context is {context_length}")
    room = context_length - wanted
    longest = max(prompt_tokens or (1,))
    if longest > room:
        raise RequestError(
            f"a prompt of {longest} tokens with {wanted} more does not fit the model's context of {context_length}",
            hint="give a shorter `--prompt-tokens` or fewer `--new-tokens`",
        )
    if prompt_tokens is not None:
        return tuple(sorted(set(prompt_tokens))), wanted, tuple(notes)
    lengths = tuple(sorted({min(length, room) for length in usual_prompts}))
    if max(usual_prompts) > room:
        notes.append(
            f"the longest prompt is {room} tokens instead of {max(usual_prompts)}: the context is {context_length}"
        )
    return lengths, wanted, tuple(notes)


def _protocol(request: PerfRequest, target: Target) -> PerfProtocol:
    asked = request.protocol
    texts, warmup, sessions = FEW if target.simulated else MANY
    if request.op_tracing is not None:
        sessions = 1
    return PerfProtocol(
        iterations=texts if asked.iterations is None else asked.iterations,
        warmup=warmup if asked.warmup is None else asked.warmup,
        sessions=sessions if asked.sessions is None else asked.sessions,
        cool_down_s=asked.cool_down_s,
        timeout_s=asked.timeout_s,
    )


def _run_sessions(plan: _Plan, processes: Processes, on_event: OnEvent) -> _Run:
    """One fresh process after another."""
    run = _Run()
    what = f"generating with `{plan.subject.folder.name}` on {plan.arguments.decoder.target}"
    for number in range(plan.protocol.sessions):
        process: Process | None = None
        try:
            if number and plan.protocol.cool_down_s:
                on_event(CoolingDown(number))
                time.sleep(plan.protocol.cool_down_s)
            process = processes.start()
            on_event(SessionStarted(number, process.pid))
            report = ask_session(
                process,
                GenerationReport,
                OPERATION,
                plan.arguments,
                what=what,
                timeout_s=plan.protocol.timeout_s,
                on_event=on_event,
            )
        except ModelkitError as error:
            error.result = PartialGeneration(sessions=run.sessions)
            raise
        except KeyboardInterrupt:
            if not run.reports:
                raise
            return replace(run, stopped=True)
        finally:
            if process is not None:
                process.close()
        if len(report.prompts) == len(plan.arguments.prompt_tokens):
            run = replace(run, pids=(*run.pids, process.pid), reports=(*run.reports, report))
        if report.stopped:
            return replace(run, stopped=True)
    return run


def _keep_traces(run: _Run, scratch: Path, keep: Path | None) -> dict[Phase, OpTraceResult] | None:
    """The traces the worker made, with their files where the user wants them, or without them."""
    traces = run.reports[0].op_traces if run.reports else None
    if traces is None:
        return None
    if keep is None:
        return {phase: replace(trace, artifacts={}) for phase, trace in traces.items()}
    try:
        shutil.copytree(scratch, keep, dirs_exist_ok=True)
    except OSError as error:
        raise atomic.write_error(error, keep) from error
    moved = {}
    for phase, trace in traces.items():
        inside = {name: Path(path) for name, path in trace.artifacts.items() if Path(path).is_relative_to(scratch)}
        files = {name: str(keep / path.relative_to(scratch)) for name, path in inside.items()}
        moved[phase] = replace(trace, artifacts={**trace.artifacts, **files})
    return moved


def _result(
    request: PerfRequest,
    plan: _Plan,
    run: _Run,
    traces: dict[Phase, OpTraceResult] | None,
    utilization: Utilization | None,
) -> GenerationPerf:
    first, target, batch = run.reports[0], plan.chosen.resolved.target, plan.arguments.decoder.batch
    prompts = tuple(
        _summarize([report.prompts[index] for report in run.reports], batch) for index in range(len(first.prompts))
    )
    last = [[ns for text in report.prompts[-1].texts for ns in text.step_ns] for report in run.reports]
    doubts = [SIMULATED] if target.simulated else load_warnings(first.environment, first.load_before)
    if not target.simulated and all(last):
        doubts += session_warnings([median(steps) for steps in last])
    warnings = (
        *plan.chosen.notes,
        *plan.notes,
        *first.notes,
        *(() if first.placement is None else fallback_notes(target, first.placement)),
        *doubts,
        *(f"{phase}: {notice}" for phase, trace in (traces or {}).items() for notice in trace_notices(trace)),
    )
    return GenerationPerf(
        model=request.model,
        target=target,
        built_for=plan.chosen.built_for,
        runtime=UsedRuntime(name=plan.runtime.name, version=first.runtime, reason=plan.runtime.reason),
        context_length=plan.subject.context_length,
        batch=batch,
        new_tokens=plan.arguments.new_tokens,
        prompts=prompts,
        open_ms=spread_of([report.open_ns / NS_PER_MS for report in run.reports]),
        memory=_memory([report.memory for report in run.reports]),
        protocol=plan.protocol.describe(),
        session=plan.arguments.decoder.session,
        sessions=run.sessions,
        placement=first.placement,
        environment=first.environment,
        utilization=utilization,
        op_traces=traces,
        warnings=warnings,
    )


def _summarize(sessions: Sequence[PromptTimes], batch: int) -> PromptPerf:
    """Texts of one length, from the times of every session."""
    steps = [[ns for text in one.texts for ns in text.step_ns] for one in sessions]
    known = all(steps)
    long = all(len(text.step_ns) >= LEAST_STEPS for one in sessions for text in one.texts)
    return PromptPerf(
        prompt_tokens=sessions[0].prompt_tokens,
        first_token_ms=latency_of([[text.first_token_ns for text in one.texts] for one in sessions]),
        step_ms=latency_of(steps) if known else None,
        tokens_per_s=spread_of([batch * len(taken) / (sum(taken) / 1e9) for taken in steps]) if known else None,
        last_to_first_quarter=spread_of([_slowdown(one) for one in sessions]) if long else None,
    )


def _slowdown(times: PromptTimes) -> float:
    """The median step of the last quarter of the texts against that of the first."""
    quarter = len(times.texts[0].step_ns) // 4
    last = median([ns for text in times.texts for ns in text.step_ns[-quarter:]])
    return last / median([ns for text in times.texts for ns in text.step_ns[:quarter]])


def _memory(sessions: Sequence[Memory | None]) -> GenerationMemory | None:
    known = [one for one in sessions if one is not None]
    peaks = [float(one.peak) for one in known if one.peak is not None]
    grown = [
        float(one.after_runs - one.before_open)
        for one in known
        if one.after_runs is not None and one.before_open is not None
    ]
    if not peaks or not grown:
        return None
    return GenerationMemory(peak_bytes=spread_of(peaks), model_bytes=spread_of(grown, _NO_GROWTH))

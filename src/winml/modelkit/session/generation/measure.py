"""Worker operation: open a decoder, continue texts of given lengths and return the time of every token."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, cast

import numpy as np

from winml.modelkit.core.errors import ModelFileError
from winml.modelkit.core.generation import GENAI_CONFIG, DecoderFolder
from winml.modelkit.core.op_trace import OpTraceResult
from winml.modelkit.core.values import read
from winml.modelkit.ep.discovery import distribution_version
from winml.modelkit.session import environment
from winml.modelkit.session.arm import Tracing
from winml.modelkit.session.generation import genai_loop
from winml.modelkit.session.generation.generator import Ids
from winml.modelkit.session.generation.opening import AnyGenerator, open_folder
from winml.modelkit.session.generation.ort_loop import OrtGenerator
from winml.modelkit.session.generation.parts_loop import PairGenerator, PartsGenerator
from winml.modelkit.session.generation.report import (
    DecoderArguments,
    GenerationArguments,
    GenerationReport,
    Phase,
    PromptTimes,
    TextTimes,
)
from winml.modelkit.session.measure import Context
from winml.modelkit.session.monitor.all_monitors import monitor_for
from winml.modelkit.session.placement import add_placements
from winml.modelkit.session.report import Memory, ReadingTrace, RunsDone, Warm
from winml.modelkit.worker.memory import memory_of

TRACED_RUNS = 3
"""Runs of a phase that a trace holds, after one that warms up."""


def open_decoder(decoder: DecoderArguments) -> AnyGenerator:
    """The decoder, opened by the program that was chosen for it."""
    return open_folder(
        decoder.folder,
        target=decoder.target,
        section=decoder.session,
        runtime=decoder.runtime,
        distribution=decoder.distribution,
        strict_ep=decoder.strict_ep,
    )


def make_prompt(folder: DecoderFolder, *, batch: int, length: int, seed: int) -> Ids:
    """Tokens drawn at random: how long a run takes does not depend on what they say."""
    if folder.vocabulary is None:
        raise ModelFileError(
            f"`{folder.folder / GENAI_CONFIG}` has no `vocab_size`, so no prompt can be made",
            hint="add it to the file, or build the model again",
        )
    return np.random.default_rng(seed).integers(0, folder.vocabulary, (batch, length), np.int64)


def draw_prompt(generator: AnyGenerator, *, batch: int, length: int, seed: int) -> Any:
    """What a text is started with; for an encoder of images or sound its length follows from the graph."""
    if isinstance(generator, PairGenerator):
        return generator.draw_inputs(batch=batch, length=length, seed=seed)
    if isinstance(generator, PartsGenerator):
        return np.random.default_rng(seed).integers(0, generator.require_vocabulary(), (batch, length), np.int64)
    return make_prompt(generator.description, batch=batch, length=length, seed=seed)


def time_text(generator: Any, prompt: Any, new_tokens: int) -> TextTimes:
    """Continue a prompt, whatever the tokens are, and time each."""
    clock = time.perf_counter_ns
    before = clock()
    generator.start(prompt, new_tokens=new_tokens)
    generator.next()
    first = clock()
    ends = []
    for _ in range(new_tokens - 1):
        generator.next()
        ends.append(clock())
    steps = tuple(end - begin for begin, end in zip([first, *ends], ends, strict=False))
    return TextTimes(first_token_ns=first - before, step_ns=steps)


def measure(args: dict[str, Any], context: object) -> GenerationReport:
    """Times of all texts, memory, placement and traces of one session in this process."""
    ctx = cast("Context", context)
    asked = read(GenerationArguments, args)
    if asked.decoder.runtime == "genai":
        genai_loop.load_library()  # the memory of the program is not that of the model
    before_open = memory_of()
    opened_at = time.perf_counter_ns()
    with open_decoder(asked.decoder) as generator:
        open_ns = time.perf_counter_ns() - opened_at
        after_open, load_before = memory_of(), environment.load()
        prompts = _time_prompts(generator, asked, ctx)
        after_runs, load_after = memory_of(), environment.load()
        sessions = {} if isinstance(generator, genai_loop.GenaiGenerator) else generator.sessions
        first = next(iter(sessions.values()), None)
        traces = None
        if asked.tracing is not None and isinstance(generator, OrtGenerator | PartsGenerator):
            ctx.tell(ReadingTrace())
            traces = _trace_phases(generator, asked, asked.tracing)
        return GenerationReport(
            prompts=prompts,
            stopped=ctx.stop.is_set(),
            runtime=generator.runtime,
            open_ns=open_ns,
            load_before=load_before,
            load_after=load_after,
            memory=_memory(before_open, after_open, after_runs),
            placement=None if first is None else add_placements([one.placement for one in sessions.values()]),
            provider_options={} if first is None else first.provider_options,
            environment=environment.environment(
                asked.decoder.ep, None if first is None else distribution_version(first.package)
            ),
            op_traces=traces,
            notes=generator.notes,
        )


def _time_prompts(generator: AnyGenerator, asked: GenerationArguments, ctx: Context) -> tuple[PromptTimes, ...]:
    """Texts of every length; what was timed whole before a stop."""
    done = 0
    found = []
    for length in asked.prompt_tokens:
        prompt = draw_prompt(generator, batch=asked.decoder.batch, length=length, seed=asked.decoder.seed)
        times: dict[bool, list[TextTimes]] = {False: [], True: []}
        for number in range(asked.warmup + asked.texts):
            if ctx.stop.is_set():
                break
            if done == 0 and number == asked.warmup:
                ctx.tell(Warm())
            timed = number >= asked.warmup
            times[timed].append(time_text(generator, prompt, asked.new_tokens))
            done += timed
            ctx.tell(RunsDone(done=done))
        if times[True]:
            found.append(PromptTimes(prompt_tokens=length, warmup=tuple(times[False]), texts=tuple(times[True])))
    return tuple(found)


def _memory(*taken: dict[str, int] | None) -> Memory | None:
    before_open, after_open, after_runs = (None if one is None else one["rss_bytes"] for one in taken)
    peak = None if taken[-1] is None else taken[-1]["peak_bytes"]
    if peak is None:
        return None
    return Memory(before_open=before_open, after_open=after_open, after_runs=after_runs, peak=peak)


def _trace_phases(
    generator: OrtGenerator | PartsGenerator, asked: GenerationArguments, tracing: Tracing
) -> dict[Phase, OpTraceResult]:
    """The prompt and the step, each traced in a session of its own: the same graph does different work in them."""
    length = asked.prompt_tokens[-1]
    parts = isinstance(generator, PartsGenerator)
    if isinstance(generator, PartsGenerator):  # a piece of a prompt is one run
        length = min(length, generator.piece_length or length)
    prompt = draw_prompt(generator, batch=asked.decoder.batch, length=length, seed=asked.decoder.seed)
    phases: tuple[Phase, ...] = ("prompt", "step")
    found: dict[Phase, OpTraceResult] = {}
    for phase in phases:
        monitor = monitor_for(asked.decoder.ep, tracing.level, str(Path(tracing.output_dir) / phase))
        # A step follows a prompt, which is a run as well where one graph does both; both phases warm up once.
        session = generator.sessions[{"prompt": "prefill", "step": "decode"}[phase] if parts else "model"]
        with session.perf(warmup=1 if phase == "prompt" or parts else 2, monitor=monitor) as perf:
            texts, steps = (TRACED_RUNS + 1, 0) if phase == "prompt" else (1, TRACED_RUNS + 1)
            for _ in range(texts):
                generator.start(prompt, new_tokens=steps + 1)
            for _ in range(steps + 1 if steps else 0):
                generator.next()
        trace = perf.monitor.final_result
        if trace is not None:
            found[phase] = trace
    return found

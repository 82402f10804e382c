"""Functions that measure models: perf, compare, evaluate, debug, trace_diff."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from winml.modelkit.api.arguments import (
    at_least,
    check_output,
    more_than_zero,
    needs,
    one_of,
    options_of,
    path_of,
    sizes_of,
    trust_of,
    words_of,
)
from winml.modelkit.api.call import calling
from winml.modelkit.api.progress import CompareProgress, DebugProgress, EvaluateProgress, PerfProgress
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.events import OnEvent

if TYPE_CHECKING:
    from winml.modelkit.accuracy.result import DebugResult
    from winml.modelkit.api.arguments import Arrays, DataLike, Dims, EPOptions, ModelLike, PathLike, Shapes, Words
    from winml.modelkit.core.op_trace import OpTraceResult
    from winml.modelkit.evaluation.result import EvalResult
    from winml.modelkit.measuring.compare_result import CompareResult
    from winml.modelkit.measuring.generation import GenerationPerf
    from winml.modelkit.measuring.perf import PerfResult
    from winml.modelkit.measuring.trace import TraceDiffResult


def perf(
    model: ModelLike,
    *,
    target: str | None = None,
    iterations: int | None = None,
    duration: float | None = None,
    warmup: int | None = None,
    sessions: int | None = None,
    cool_down: float = 0.0,
    inputs: PathLike | Arrays | None = None,
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    batch_size: int | None = None,
    int_ranges: Mapping[str, tuple[int, int]] | None = None,
    seed: int = 0,
    threads: int | None = None,
    ep_options: EPOptions | None = None,
    trust_options: Words = (),
    strict_ep: bool = False,
    memory: bool = False,
    monitor: bool = False,
    op_tracing: Literal["basic", "detail"] | None = None,
    baseline: PathLike | None = None,
    timeout: float | None = None,
    on_event: OnEvent | None = None,
    progress: bool | None = None,
) -> PerfResult:
    """Measure the latency of a model on a target in fresh processes, with its interval and where its nodes ran.

    `strict_ep` raises `CheckFailed` when a node runs on the CPU instead of the target. `perf_generation` measures a
    folder that generates text.
    """
    at_least(1, iterations=iterations, sessions=sessions, threads=threads)
    at_least(0, warmup=warmup, cool_down=cool_down)
    more_than_zero(duration=duration, timeout=timeout)
    one_of(("basic", "detail"), op_tracing=op_tracing)
    from winml.modelkit.measuring.processes import Processes

    # The first process starts before the modules are imported that measure with it.
    with calling(on_event, progress, PerfProgress) as call, Processes() as processes:
        from winml.modelkit.core.build_folder import PARTS
        from winml.modelkit.core.generation import is_decoder_folder
        from winml.modelkit.measuring.perf import DEFAULT_TIMEOUT_S, PerfRequest
        from winml.modelkit.measuring.perf import perf as run
        from winml.modelkit.measuring.sessions import AskedProtocol

        source = call.model(model)
        if is_decoder_folder(Path(source)):
            raise RequestError(
                f"`{source}` generates text", hint="`wk.perf_generation` measures its first token and tokens per second"
            )
        if (Path(source) / PARTS).is_file():
            raise RequestError(
                f"`{source}` holds the parts of a composite model",
                hint="measure them one by one, each by its folder; the command `winml perf` measures all of them, and "
                "`wk.perf_generation` the texts of parts that generate",
            )
        few = None if op_tracing is None else 1
        request = PerfRequest(
            model=source,
            target=target,
            protocol=AskedProtocol(
                iterations=few if iterations is None else iterations,
                warmup=warmup,
                sessions=few if sessions is None else sessions,
                cool_down_s=cool_down,
                duration_s=duration,
                timeout_s=timeout or DEFAULT_TIMEOUT_S + 2 * (duration or 0.0),
            ),
            threads=threads,
            ep_options=options_of(ep_options),
            trust=trust_of(trust_options),
            inputs=call.inputs(
                inputs, dims=dims, shapes=shapes, batch_size=batch_size, int_ranges=int_ranges, seed=seed
            ),
            strict_ep=strict_ep,
            memory=memory,
            op_tracing=op_tracing,
            baseline=None if baseline is None else Path(baseline),
            monitor=monitor,
        )
        return run(request, call.on_event, processes)


def perf_generation(
    model: PathLike,
    *,
    target: str | None = None,
    prompt_tokens: int | Sequence[int] | None = None,
    new_tokens: int | None = None,
    runtime: Literal["genai", "onnxruntime"] | None = None,
    batch_size: int | None = None,
    iterations: int | None = None,
    warmup: int | None = None,
    sessions: int | None = None,
    cool_down: float = 0.0,
    seed: int = 0,
    threads: int | None = None,
    ep_options: EPOptions | None = None,
    trust_options: Words = (),
    monitor: bool = False,
    op_tracing: Literal["basic", "detail"] | None = None,
    timeout: float | None = None,
    on_event: OnEvent | None = None,
    progress: bool | None = None,
) -> GenerationPerf:
    """Measure a folder that generates text in fresh processes: first token, tokens per second, and memory.

    The first token comes after prompts of `prompt_tokens`, tokens per second are those of `new_tokens` after each.
    """
    at_least(1, iterations=iterations, sessions=sessions, threads=threads, new_tokens=new_tokens)
    lengths = (prompt_tokens,) if isinstance(prompt_tokens, int) else prompt_tokens
    at_least(1, prompt_tokens=None if lengths is None else min(lengths, default=0))
    one_of(("genai", "onnxruntime"), runtime=runtime)
    at_least(0, warmup=warmup, cool_down=cool_down)
    more_than_zero(timeout=timeout)
    one_of(("basic", "detail"), op_tracing=op_tracing)
    with calling(on_event, progress, PerfProgress) as call:
        from winml.modelkit.measuring.generation import perf_generation as run
        from winml.modelkit.measuring.perf import DEFAULT_TIMEOUT_S, GenerationSettings, PerfRequest
        from winml.modelkit.measuring.processes import Processes
        from winml.modelkit.measuring.sessions import AskedProtocol
        from winml.modelkit.measuring.text_folder import read_text_folder

        source = path_of(model, "model")
        read_text_folder(Path(source))  # an error of its own for any other folder
        request = PerfRequest(
            model=source,
            target=target,
            protocol=AskedProtocol(
                iterations=iterations,
                warmup=warmup,
                sessions=sessions,
                cool_down_s=cool_down,
                timeout_s=timeout or DEFAULT_TIMEOUT_S,
            ),
            threads=threads,
            ep_options=options_of(ep_options),
            trust=trust_of(trust_options),
            inputs=call.inputs(None, dims=None, shapes=None, batch_size=batch_size, int_ranges=None, seed=seed),
            op_tracing=op_tracing,
            monitor=monitor,
            generation=GenerationSettings(None if lengths is None else tuple(lengths), new_tokens, runtime),
        )
        with Processes() as processes:
            return run(request, call.on_event, processes)


def compare(
    base: ModelLike,
    *candidates: ModelLike,
    target: Words | None = None,
    fail_if_slower: float | None = None,
    allow_different: bool = False,
    min_agreement: float = 0.95,
    by_position: bool = False,
    force: bool = False,
    as_built: bool = False,
    max_seconds: float = 60.0,
    inputs: PathLike | Arrays | None = None,
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    batch_size: int | None = None,
    int_ranges: Mapping[str, tuple[int, int]] | None = None,
    seed: int = 0,
    threads: int | None = None,
    ep_options: EPOptions | None = None,
    trust_options: Words = (),
    calibrate: bool = True,
    rebuild: bool = False,
    confirm: bool = True,
    raise_priority: bool = True,
    metric: Literal["first-token", "tokens-per-second", "memory"] | None = None,
    prompt_tokens: int | None = None,
    new_tokens: int | None = None,
    runtime: Words | None = None,
    timeout: float = 120.0,
    on_event: OnEvent | None = None,
    progress: bool | None = None,
) -> CompareResult:
    """Test whether each candidate is faster than the base and by how much, at a known error rate.

    Both are measured interleaved until the answer is clear, or for `max_seconds`. One model can be compared over
    several targets, and builds for different targets each on its own (`as_built`). `metric` chooses what decides
    between folders that generate text, and one of them can be compared over several `runtime`s. `fail_if_slower` raises
    `CheckFailed` for a candidate that is slower by more percent.
    """
    at_least(1, threads=threads, max_seconds=max_seconds, timeout=timeout)
    at_least(0, fail_if_slower=fail_if_slower)
    at_least(-1, min_agreement=min_agreement)
    at_least(1, prompt_tokens=prompt_tokens, new_tokens=new_tokens)
    one_of(("first-token", "tokens-per-second", "memory"), metric=metric)
    runtimes = words_of(runtime)
    for word in runtimes:
        one_of(("genai", "onnxruntime"), runtime=word)
    targets = words_of(target) or (None,)
    if len(set(targets)) != len(targets):
        raise RequestError("`target` has a target twice")
    with calling(on_event, progress, CompareProgress) as call:
        from winml.modelkit.measuring.compare import compare as run
        from winml.modelkit.measuring.compare_arms import CompareGeneration, CompareRequest

        request = CompareRequest(
            models=tuple(call.model(model) for model in (base, *candidates)),
            targets=targets,
            as_built=as_built,
            threads=threads,
            ep_options=options_of(ep_options),
            trust=trust_of(trust_options),
            inputs=call.inputs(
                inputs, dims=dims, shapes=shapes, batch_size=batch_size, int_ranges=int_ranges, seed=seed
            ),
            force=force,
            allow_different=allow_different,
            min_cosine=min_agreement,
            by_position=by_position,
            calibrate=calibrate,
            recalibrate=rebuild,
            raise_priority=raise_priority,
            confirm=confirm,
            max_seconds=max_seconds,
            timeout_s=timeout,
            seed=seed,
            fail_if_slower_pct=fail_if_slower,
            generation=CompareGeneration(metric, prompt_tokens, new_tokens, runtimes or (None,)),
        )
        return run(request, call.on_event)


def evaluate(
    model: ModelLike,
    *,
    data: DataLike | None = None,
    task: str | None = None,
    target: str | None = None,
    reference: ModelLike | None = None,
    reference_target: str | None = None,
    samples: int | None = None,
    columns: Mapping[str, str] | None = None,
    processor: PathLike | None = None,
    length: int | None = None,
    seed: int = 0,
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    output_name: str | None = None,
    task_options: Mapping[str, str | float] | None = None,
    state: Mapping[str, str] | None = None,
    runtime: Literal["genai", "onnxruntime"] | None = None,
    new_tokens: int | None = None,
    metric: str | Callable[..., Any] | None = None,
    min_metric: float | None = None,
    max_metric: float | None = None,
    max_drop: float | None = None,
    min_agreement: float | None = None,
    judge: Literal["interval", "value"] = "interval",
    threads: int | None = None,
    ep_options: EPOptions | None = None,
    trust_options: Words = (),
    strict_ep: bool = False,
    save_outputs: PathLike | None = None,
    timeout: float | None = None,
    on_event: OnEvent | None = None,
    progress: bool | None = None,
) -> EvalResult:
    """Measure the accuracy of a model on the target itself, alone or against a reference.

    `metric` is the name of one of the task's, a function `score(outputs, sample)` of your own, or `FILE.py:NAME`.
    `min_metric`, `max_metric`, `max_drop` and `min_agreement` raise `CheckFailed` when they are not met. Folders that
    generate text take `runtime` and `new_tokens`.
    """
    at_least(1, threads=threads, new_tokens=new_tokens)
    at_least(0, max_drop=max_drop)
    more_than_zero(timeout=timeout)
    one_of(("interval", "value"), judge=judge)
    one_of(("genai", "onnxruntime"), runtime=runtime)
    needs(data, "data", samples=samples, columns=columns, processor=processor, length=length)
    with calling(on_event, progress, EvaluateProgress) as call:
        from winml.modelkit.evaluation.custom_metric import load_metric, make_metric, names_file
        from winml.modelkit.evaluation.evaluate import EvalRequest
        from winml.modelkit.evaluation.evaluate import evaluate as run
        from winml.modelkit.evaluation.result import Judging

        named = metric if isinstance(metric, str) and not names_file(metric) else None
        custom = None
        if metric is not None and named is None:
            custom = load_metric(metric) if isinstance(metric, str) else make_metric(metric)
        request = EvalRequest(
            model=call.model(model),
            data=call.data(data, samples=samples, columns=columns, processor=processor, length=length, seed=seed),
            task=task,
            target=target,
            reference=None if reference is None else call.model(reference),
            reference_target=reference_target,
            judging=Judging(named, min_metric, max_drop, judge, min_agreement, max_metric),
            custom=custom,
            task_options={name: str(value) for name, value in (task_options or {}).items()},
            state=dict(state or {}),
            runtime=runtime,
            new_tokens=new_tokens,
            output=output_name,
            threads=threads,
            ep_options=options_of(ep_options),
            trust=trust_of(trust_options),
            strict_ep=strict_ep,
            dims=sizes_of(dims, shapes),
            save_outputs=check_output(save_outputs),
            timeout_s=timeout,
        )
        return run(request, call.on_event)


def debug(
    model: ModelLike,
    *,
    reference: ModelLike,
    data: DataLike,
    target: str | None = None,
    samples: int = 4,
    columns: Mapping[str, str] | None = None,
    processor: PathLike | None = None,
    length: int | None = None,
    seed: int = 0,
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    ep_options: EPOptions | None = None,
    trust_options: Words = (),
    timeout: float | None = None,
    on_event: OnEvent | None = None,
    progress: bool | None = None,
) -> DebugResult:
    """Find the layers that lose the accuracy of a quantized model, on the target itself.

    `reference` is the model before it was quantized. Layers are ranked by what the noise of each alone does to the
    outputs of the reference.
    """
    at_least(1, samples=samples)
    more_than_zero(timeout=timeout)
    with calling(on_event, progress, DebugProgress) as call:
        from winml.modelkit.accuracy.debug import DebugRequest
        from winml.modelkit.accuracy.debug import debug as run

        found = call.data(data, samples=samples, columns=columns, processor=processor, length=length, seed=seed)
        if found is None:
            raise RequestError("there is no data to run", hint="give it with `data=`")
        request = DebugRequest(
            model=call.model(model),
            reference=call.model(reference),
            data=found,
            target=target,
            samples=samples,
            dims=sizes_of(dims, shapes),
            ep_options=options_of(ep_options),
            trust=trust_of(trust_options),
            timeout_s=timeout,
        )
        return run(request, call.on_event)


def trace_diff(
    before: PathLike | OpTraceResult | PerfResult, after: PathLike | OpTraceResult | PerfResult
) -> TraceDiffResult:
    """Which operators changed between two traces: files, or results of `perf` with `op_tracing`."""
    with calling():
        from winml.modelkit.measuring.trace import TraceDiffResult
        from winml.modelkit.measuring.trace_diff import diff

        sides = [_read_side(given, name) for name, given in (("before", before), ("after", after))]
        (named_before, traced_before), (named_after, traced_after) = sides
        return TraceDiffResult(before=named_before, after=named_after, diff=diff(traced_before, traced_after))


def _read_side(given: PathLike | OpTraceResult | PerfResult, name: str) -> tuple[str, OpTraceResult]:
    """One side of a comparison of traces, and what it is called."""
    from winml.modelkit.core.op_trace import OpTraceResult
    from winml.modelkit.measuring.perf import PerfResult
    from winml.modelkit.measuring.trace import read_trace

    if isinstance(given, OpTraceResult):
        return name, given
    if isinstance(given, PerfResult):
        if given.op_trace is None:
            raise RequestError(f"`{name}` has no trace", hint='measure it with `op_tracing="basic"`')
        return os.fspath(given.model), given.op_trace
    path = path_of(given, name)
    return path, read_trace(Path(path))

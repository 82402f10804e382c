"""`winml perf`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.help import Command
from winml.modelkit.cli.options import (
    HELP,
    ep_options_option,
    examples,
    input_options,
    json_option,
    model_options,
    output_options,
    resolve_model,
    target_options,
    threads_option,
    timeout_option,
    trust_of,
    trust_option,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from winml.modelkit.core.op_trace import OpTraceResult
    from winml.modelkit.measuring.generation import GenerationPerf
    from winml.modelkit.measuring.perf import PerfResult
    from winml.modelkit.measuring.perf_parts import PerfParts
    from winml.modelkit.measuring.processes import Processes

_AT_LEAST_1 = click.IntRange(min=1)
_SECONDS = click.FloatRange(min=0, min_open=True)


@click.command(
    "perf",
    help="Measure the latency of a model on a target in fresh processes, with its confidence interval and where its "
    "nodes ran. Of a folder that generates text: time to the first token, tokens per second and memory.",
    epilog=examples(
        "winml perf --sample",
        "winml perf -m model.onnx --target qnn/npu --ep-options soc_model=60",
        "winml perf -m bert.onnx --dim batch=1 --dim sequence=128 --int-range input_ids=0:30521",
        "winml perf -m model.onnx --input-data inputs.npz --sessions 5 --json -o perf.json",
        "winml perf -m model.onnx --device npu --op-tracing basic -o perf.json --trace-format perfetto",
        "winml perf -m model.onnx --op-tracing basic --iterations 20 --baseline perf_op_trace.json",
        "winml perf -m llama-int4 --prompt-tokens 32,256 --new-tokens 64 -o perf.json",
    ),
    cls=Command,
    context_settings=HELP,
)
@model_options
@target_options
@click.option(
    "--iterations",
    type=_AT_LEAST_1,
    metavar="N",
    help="Timed runs per session (default 100; 3 on a simulator); timed texts of each length where text is generated "
    "(default 3).",
)
@click.option("--duration", type=_SECONDS, metavar="S", help="Timed seconds per session, instead of a count.")
@click.option(
    "--warmup",
    type=click.IntRange(min=0),
    metavar="N",
    help="Untimed runs first (default 10; 1 on a simulator), or untimed texts of each length (default 1).",
)
@click.option(
    "--sessions", type=_AT_LEAST_1, metavar="N", help="Fresh processes to measure in (default 3; 1 on a simulator)."
)
@click.option("--cool-down", type=click.FloatRange(min=0), default=0.0, metavar="S", help="Seconds between sessions.")
@input_options
@threads_option
@ep_options_option
@trust_option
@click.option("--strict-ep", is_flag=True, help="Fail (exit 5) when a node runs on the CPU instead of the target.")
@click.option("--memory", is_flag=True, help="Report the memory of the measuring process.")
@click.option("--monitor", is_flag=True, help="Sample CPU, memory, load, clock, GPU and NPU during the timed runs.")
@click.option(
    "--prompt-tokens",
    metavar="N,...",
    help="How many tokens prompts have, each length timed apart; for a folder that generates text. Tokens are drawn at "
    "random (default 32,256, shortened to the context).",
)
@click.option(
    "--new-tokens",
    type=_AT_LEAST_1,
    metavar="N",
    help="Tokens to generate after each prompt, whether or not an end token comes (default 64, or half of a shorter "
    "context).",
)
@click.option(
    "--runtime",
    type=click.Choice(["genai", "onnxruntime"], case_sensitive=False),
    help="Program that generates: onnxruntime-genai, or winml's own loop over onnxruntime (default: what the build "
    "names, else genai where it is installed and has the EP, else onnxruntime).",
)
@timeout_option("Time limit per session in seconds (default 600).")
@click.option(
    "--op-tracing",
    type=click.Choice(["basic", "detail"], case_sensitive=False),
    help="Measure every operator, in one session; 1 timed run unless --iterations is given. Where text is generated, "
    "the prompt and a step apart, by winml's loop.",
)
@click.option("--top-k", type=_AT_LEAST_1, default=5, show_default=True, metavar="N", help="Operators to show.")
@click.option(
    "--trace-format",
    type=click.Choice(["json", "perfetto"], case_sensitive=False),
    default="json",
    show_default=True,
    help="perfetto: also write the trace for Perfetto and chrome://tracing.",
)
@click.option("--baseline", metavar="FILE", help="An earlier *_op_trace.json to compare the trace with.")
@output_options
@json_option
@click.pass_obj
def command(
    started: Processes | None,
    /,
    model: str | None,
    sample: bool,
    output: str | None,
    overwrite: bool,
    as_json: bool,
    **given: Any,
) -> None:
    from winml.modelkit.measuring.processes import Processes

    with started or Processes() as processes:
        _perf(processes, model, sample, output, overwrite=overwrite, as_json=as_json, **given)


def _perf(
    processes: Processes,
    model: str | None,
    sample: bool,
    output: str | None,
    *,
    overwrite: bool,
    as_json: bool,
    **given: Any,
) -> None:
    from winml.modelkit.cli.perf_progress import PerfProgress
    from winml.modelkit.cli.results import ResultFile
    from winml.modelkit.cli.trace_files import TraceFiles
    from winml.modelkit.measuring.generation import GenerationPerf
    from winml.modelkit.measuring.perf import PerfResult
    from winml.modelkit.measuring.perf_parts import PerfParts, perf_model
    from winml.modelkit.measuring.text_folder import generates_text
    from winml.modelkit.render.generation import generation_text
    from winml.modelkit.render.perf import parts_text, perf_text

    if given["iterations"] is not None and given["duration"] is not None:
        raise click.UsageError("`--iterations` cannot be combined with `--duration`")
    _trace_defaults(given)
    named = resolve_model(model, sample)
    result_file = ResultFile(output, overwrite=overwrite, as_json=as_json)
    trace_files = TraceFiles(
        output,
        wanted=given["op_tracing"] is not None,
        perfetto=given["trace_format"].lower() == "perfetto",
        overwrite=overwrite,
        phases=("prompt", "step") if generates_text(Path(named)) else (),
    )
    request = _request(named, given, trace_files.folder)

    def show(result: object) -> None:
        if isinstance(result, PerfParts):
            console.show(parts_text, result)
        elif isinstance(result, GenerationPerf):
            console.show(generation_text, result, top_k=given["top_k"])
        elif isinstance(result, PerfResult):
            console.show(perf_text, result, top_k=given["top_k"])

    with result_file.keeping("perf", show), PerfProgress() as progress:
        result = perf_model(request, progress.on_event, processes)
    result_file.write(result)
    trace_path = trace_files.write(_traces_of(result))
    if as_json:
        console.data_json(result)
    else:
        show(result)
    for warning in result.warnings:
        console.say("warning", warning)
    if as_json:
        return
    result_file.say_wrote()
    trace_files.say_wrote()
    console.say("next", _next(result, "--sample" if sample else None, trace_path, given))
    result_file.say_report()


def _traces_of(result: PerfResult | PerfParts | GenerationPerf) -> Mapping[str, OpTraceResult | None]:
    """Traces by phase; a model that is run as a whole has one without a name."""
    from winml.modelkit.measuring.generation import GenerationPerf
    from winml.modelkit.measuring.perf import PerfResult

    if isinstance(result, GenerationPerf):
        return {str(phase): trace for phase, trace in (result.op_traces or {}).items()}
    return {"": result.op_trace} if isinstance(result, PerfResult) else {}


def _next(
    result: PerfResult | PerfParts | GenerationPerf, named: str | None, trace_path: str | None, given: Mapping[str, Any]
) -> str:
    from winml.modelkit.cli.next_command import after_generation, after_perf, model_option
    from winml.modelkit.core.build_folder import kind_of_parts
    from winml.modelkit.measuring.generation import GenerationPerf
    from winml.modelkit.measuring.perf_parts import PerfParts

    model = named or model_option(result.model, sample=False)
    if isinstance(result, GenerationPerf):
        return after_generation(result, model, trace_path)
    if isinstance(result, PerfParts):
        if kind_of_parts([one.part for one in result.parts]) is not None:
            return f"winml perf {model} --target {result.target} --new-tokens 64"
        part = model_option(str(Path(result.model) / result.parts[-1].part), sample=False)
        return after_perf(result.parts[-1].result, part, trace_path, given)
    return after_perf(result, model, trace_path, given)


def _trace_defaults(given: dict[str, Any]) -> None:
    """One session and one timed run are enough for a trace, unless the user asked for more."""
    if given["op_tracing"] is None:
        return
    given["op_tracing"] = given["op_tracing"].lower()
    for name in ("iterations", "sessions"):
        if given[name] is None:
            given[name] = 1


def _request(model: str, given: dict[str, Any], keep_trace: Path | None) -> Any:
    from winml.modelkit.cli.option_values import input_settings, lengths_of
    from winml.modelkit.ep.options import parse_pairs
    from winml.modelkit.measuring.perf import DEFAULT_TIMEOUT_S, GenerationSettings, PerfRequest
    from winml.modelkit.measuring.sessions import AskedProtocol

    duration = given["duration"]
    timeout = given["timeout"] or DEFAULT_TIMEOUT_S + 2 * (duration or 0.0)
    return PerfRequest(
        model=model,
        target=given["target"],
        ep=given["ep"],
        device=given["device"],
        protocol=AskedProtocol(
            iterations=given["iterations"],
            warmup=given["warmup"],
            sessions=given["sessions"],
            cool_down_s=given["cool_down"],
            duration_s=duration,
            timeout_s=timeout,
        ),
        threads=given["threads"],
        ep_options=parse_pairs(given["ep_options"]),
        trust=trust_of(given),
        inputs=input_settings(given),
        strict_ep=given["strict_ep"],
        memory=given["memory"],
        op_tracing=given["op_tracing"],
        keep_trace=keep_trace,
        baseline=None if given["baseline"] is None else Path(given["baseline"]),
        monitor=given["monitor"],
        generation=GenerationSettings(
            prompt_tokens=None if given["prompt_tokens"] is None else lengths_of(given["prompt_tokens"]),
            new_tokens=given["new_tokens"],
            runtime=None if given["runtime"] is None else given["runtime"].lower(),
        ),
    )

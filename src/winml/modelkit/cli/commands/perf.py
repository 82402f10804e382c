"""`winml perf`."""

from __future__ import annotations

from typing import Any

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.options import (
    HELP,
    chosen_model,
    examples,
    input_options,
    json_option,
    model_options,
    output_options,
    target_options,
)

_AT_LEAST_1 = click.IntRange(min=1)
_SECONDS = click.FloatRange(min=0, min_open=True)


@click.command(
    "perf",
    help="Measure how long a model takes on a target, in fresh processes, with the spread of the number and where "
    "its nodes ran.",
    epilog=examples(
        "winml perf --sample",
        "winml perf -m model.onnx --target qnn/npu --ep-options soc_model=60",
        "winml perf -m bert.onnx --dim batch=1 --dim sequence=128 --int-range input_ids=0:30521",
        "winml perf -m model.onnx --input-data inputs.npz --sessions 5 --json -o perf.json",
    ),
    context_settings=HELP,
)
@model_options
@target_options
@click.option("--iterations", type=_AT_LEAST_1, default=100, show_default=True, help="Timed runs per session.")
@click.option("--duration", type=_SECONDS, metavar="S", help="Timed seconds per session, instead of a count.")
@click.option("--warmup", type=click.IntRange(min=0), default=10, show_default=True, help="Untimed runs first.")
@click.option("--sessions", type=_AT_LEAST_1, default=3, show_default=True, help="Fresh processes to measure in.")
@click.option("--cool-down", type=click.FloatRange(min=0), default=0.0, metavar="S", help="Seconds between sessions.")
@input_options
@click.option("--threads", type=_AT_LEAST_1, help="Threads inside an operator (default: the runtime's choice).")
@click.option("--ep-options", multiple=True, metavar="K=V", help="Option of the execution provider; checked.")
@click.option("--strict-ep", is_flag=True, help="Fail (exit 5) when a node runs on the CPU instead of the target.")
@click.option("--memory", is_flag=True, help="Report the memory of the measuring process.")
@click.option("--timeout", type=_SECONDS, metavar="S", help="Seconds a session may take (default 600).")
@output_options
@json_option
def command(model: str | None, sample: bool, output: str | None, overwrite: bool, as_json: bool, **given: Any) -> None:
    from winml.modelkit.app.perf import perf
    from winml.modelkit.cli.progress import PerfProgress
    from winml.modelkit.cli.results import ResultFile
    from winml.modelkit.render.perf import perf_text

    request = _request(chosen_model(model, sample), given)
    result_file = ResultFile(output, overwrite=overwrite)
    with result_file.keeping("perf"), PerfProgress(request.protocol) as progress:
        result = perf(request, progress.on_event)
    if as_json:
        console.data_json(result)
    else:
        console.data(perf_text(result))
    result_file.write(result)
    for warning in result["warnings"]:
        console.say("warning", warning)
    if not as_json:
        console.say("next", f"winml inspect {'--sample' if sample else f'-m {console.quoted(request.model)}'}")


def _request(model: str, given: dict[str, Any]) -> Any:
    from winml.modelkit.app.perf import DEFAULT_TIMEOUT_S, PerfRequest
    from winml.modelkit.bench.sessions import PerfProtocol
    from winml.modelkit.cli.words import input_request
    from winml.modelkit.ep.options import parse_pairs

    duration = given["duration"]
    timeout = given["timeout"] or DEFAULT_TIMEOUT_S + 2 * (duration or 0.0)
    return PerfRequest(
        model=model,
        target=given["target"],
        ep=given["ep"],
        device=given["device"],
        protocol=PerfProtocol(
            iterations=given["iterations"],
            warmup=given["warmup"],
            sessions=given["sessions"],
            cool_down_s=given["cool_down"],
            duration_s=duration,
            timeout_s=timeout,
        ),
        threads=given["threads"],
        ep_options=parse_pairs(given["ep_options"]),
        inputs=input_request(given),
        strict_ep=given["strict_ep"],
        memory=given["memory"],
    )

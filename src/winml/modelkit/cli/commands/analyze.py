"""`winml analyze`."""

from __future__ import annotations

from typing import Any

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.help import Command
from winml.modelkit.cli.options import (
    HELP,
    ep_options_option,
    examples,
    json_option,
    model_options,
    output_options,
    resolve_model,
    size_options,
    targets_of,
    targets_options,
    timeout_option,
    trust_of,
    trust_option,
)
from winml.modelkit.core.errors import ModelkitError


@click.command(
    "analyze",
    help="Show which nodes a target supports and why not the others, known hazards, and what the optimizer could fuse. "
    "Targets on this machine are queried; for others, the recorded tables are used.",
    epilog=examples(
        "winml analyze -m model.onnx --target qnn/npu",
        "winml analyze -m model.onnx --target qnn/npu --target cpu",
        "winml analyze -m model.onnx --all --no-fusions",
        "winml analyze -m bert.onnx --target qnn/npu --dim batch=1 --dim sequence=128 --json -o analysis.json",
    ),
    cls=Command,
    context_settings=HELP,
)
@model_options
@targets_options("Target to analyze for; may be repeated.")
@click.option("--all", "all_targets", is_flag=True, help="Analyze every execution provider on each of its devices.")
@size_options
@ep_options_option
@trust_option
@click.option("--no-fusions", is_flag=True, help="Do not try the optimizer's passes.")
@timeout_option("Time limit per step in seconds (default: by model size).")
@output_options
@json_option
def command(model: str | None, sample: bool, output: str | None, overwrite: bool, as_json: bool, **given: Any) -> None:
    from winml.modelkit.building.analysis.command import analyze, check
    from winml.modelkit.cli.next_command import SIZES, after_analyze, model_option, repeat_options
    from winml.modelkit.cli.results import ResultFile
    from winml.modelkit.cli.stage_progress import AnalyzeProgress
    from winml.modelkit.render.analyze import analyze_text

    result_file = ResultFile(output, overwrite=overwrite, as_json=as_json)
    with AnalyzeProgress() as progress:
        result = analyze(_request(resolve_model(model, sample), given), progress.on_event)
    failure = None
    try:
        check(result)
    except ModelkitError as error:
        failure = error
    result_file.write(result if failure is None else console.error_json("analyze", failure))
    if not as_json:
        console.show(analyze_text, result)
    result_file.say_wrote()
    if not as_json:
        named = model_option(result.model, sample=sample) + repeat_options(given, SIZES)
        console.say("next", after_analyze(result, named))
        result_file.say_report()
    if failure is not None:
        raise failure
    if as_json:
        console.data_json(result)


def _request(model: str, given: dict[str, Any]) -> Any:
    from winml.modelkit.building.analysis.command import AnalyzeRequest
    from winml.modelkit.cli.option_values import sizes
    from winml.modelkit.ep.options import parse_pairs

    return AnalyzeRequest(
        model=model,
        targets=targets_of(given),
        ep=given["ep"],
        device=given["device"],
        all_targets=given["all_targets"],
        dims=sizes(given),
        ep_options=parse_pairs(given["ep_options"]),
        trust=trust_of(given),
        fusions=not given["no_fusions"],
        timeout_s=given["timeout"],
    )

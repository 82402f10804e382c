"""`winml build`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.build_options import NAMES, build_options, config_request, export_options
from winml.modelkit.cli.help import Command
from winml.modelkit.cli.options import (
    HELP,
    at_revision,
    examples,
    json_option,
    model_options,
    output_option,
    rebuild_option,
    resolve_model,
    timeout_option,
    trust_of,
)

if TYPE_CHECKING:
    from winml.modelkit.building.build import BuildRequest


@click.command(
    "build",
    help="Export, optimize, quantize and compile a model for a target. Finished stages come from the cache, files are "
    "linked. A composite Hugging Face model gives one build folder per part.",
    epilog=examples(
        "winml build --sample --target cpu -p int8 -o digits",
        "winml build -m model.onnx --target qnn/npu --calibration samples.npz -o model_npu",
        "winml build -m ORG/NAME --target qnn/npu --no-quant -o model_npu",
        "winml build -m ./t5 --target cpu -p int4,encoder=fp16 -o t5_int4",
        "winml build -c config.json --use-cache --json",
    ),
    cls=Command,
    context_settings=HELP,
)
@model_options
@click.option(
    "-c", "--config", "config_file", metavar="FILE", help="Config file, instead of the options that make one."
)
@build_options
@export_options
@output_option("DIR", "The build folder.")
@click.option("--use-cache", is_flag=True, help="Keep the build folder in the cache, instead of -o.")
@click.option("--overwrite", is_flag=True, help="Replace another build in the folder.")
@rebuild_option("Run every stage again and ignore the cache.")
@click.option("--no-analyze", is_flag=True, help="Do not query the target for operator support.")
@click.option("--no-prove", is_flag=True, help="Do not run the artifact on its target; it is then not proven.")
@click.option(
    "--prove-timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=300.0,
    show_default=True,
    metavar="S",
    help="Time limit for running the artifact on its target in seconds; beyond it the artifact is not proven.",
)
@click.option(
    "--fallback-precision",
    is_flag=True,
    help="Fall back to the next precision when the target refuses the artifact or its outputs differ.",
)
@click.option("--explain-cache", is_flag=True, help="Show for every stage why it ran or not.")
@timeout_option("Time limit per stage in seconds.")
@json_option
@click.pass_context
def command(
    context: click.Context, /, model: str | None, sample: bool, as_json: bool, explain_cache: bool, **given: Any
) -> None:
    from winml.modelkit.building.build_parts import build_model
    from winml.modelkit.building.result import BuildResult
    from winml.modelkit.cli.next_command import after_build, short_path
    from winml.modelkit.cli.stage_progress import StageProgress
    from winml.modelkit.ep.options import parse_pairs
    from winml.modelkit.ep.trust import option_to_repeat
    from winml.modelkit.render.build import build_text, parts_text

    request = _request(context, model, sample, given)
    with StageProgress() as progress:
        result = build_model(request, progress.on_event)
    if as_json:
        console.data_json(result)
    elif isinstance(result, BuildResult):
        console.show(build_text, result, explain=explain_cache)
    else:
        console.show(parts_text, result, explain=explain_cache)
    for note in result.notes:
        console.say("note", note)
    for warning in result.warnings:
        console.say("warning", warning)
    if not as_json:
        console.say("wrote", request.output or result.folder)
        again = option_to_repeat(parse_pairs(given["ep_options"]), request.trust)
        console.say("next", after_build(result if isinstance(result, BuildResult) else result.parts[0].result, again))
        if isinstance(result, BuildResult):
            console.say_report(short_path(request.output or result.folder))


def _request(context: click.Context, model: str | None, sample: bool, given: dict[str, Any]) -> BuildRequest:
    from winml.modelkit.building.build import BuildRequest

    if (given["output"] is None) == (not given["use_cache"]):
        raise click.UsageError("name the build folder with `-o DIR`, or keep it in the cache with `--use-cache`")
    if given["config_file"] is None:
        config = config_request(resolve_model(model, sample), sample=sample, given=given)
    else:
        config = given["config_file"]
        _refuse_options_beside_a_config(context, sample)
    return BuildRequest(
        config=config,
        model=None if model is None else at_revision(model),
        output=given["output"],
        overwrite=given["overwrite"],
        rebuild=given["rebuild"],
        analyze=not given["no_analyze"],
        timeout_s=given["timeout"],
        prove=not given["no_prove"],
        prove_timeout_s=given["prove_timeout"],
        fallback_precision=given["fallback_precision"],
        trust_remote_code=given["trust_remote_code"],
        trust=trust_of(given),
    )


def _refuse_options_beside_a_config(context: click.Context, sample: bool) -> None:
    """A config is complete, so an option besides it would contradict it or have no effect."""
    for parameter in context.command.params:
        name = parameter.name or ""
        asked = context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT
        if asked and (name in NAMES or (name == "sample" and sample)):
            raise click.UsageError(f"`{parameter.opts[-1]}` cannot be combined with `--config`")

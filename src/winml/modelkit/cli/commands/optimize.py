"""`winml optimize`."""

from __future__ import annotations

from typing import Any

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.help import Command
from winml.modelkit.cli.options import (
    HELP,
    examples,
    json_option,
    model_options,
    output_option,
    resolve_model,
    seed_option,
    size_options,
    target_options,
    timeout_option,
    verify_option,
)


@click.command(
    "optimize",
    help="Run graph passes on a model and compare its outputs before and after. Levels are ONNX Runtime's: none, basic "
    "(ONNX operators only, suitable for quantizing afterwards), extended, all.",
    epilog=examples(
        "winml optimize --list",
        "winml optimize --sample -o optimized.onnx",
        "winml optimize -m model.onnx -o optimized.onnx --target qnn/npu",
        "winml optimize -m model.onnx -o fused.onnx --level none --enable conv_bn_fusion --enable gelu-fusion",
        "winml optimize -m model.onnx -o newer.onnx --opset 21 --dim batch=1",
    ),
    cls=Command,
    context_settings=HELP,
)
@model_options
@output_option("FILE", "The optimized model.")
@click.option("--overwrite", is_flag=True, help="Replace an existing output file.")
@click.option("--rebuild", is_flag=True, help="Optimize again and ignore the cache.")
@target_options
@click.option("--level", metavar="LEVEL", help="Optimization level: none, basic (default), extended, all.")
@click.option("--enable", multiple=True, metavar="PASS", help="Add a pass; may be repeated.")
@click.option("--disable", multiple=True, metavar="PASS", help="Skip a pass; may be repeated.")
@click.option("--opset", type=int, metavar="N", help="Convert to this opset first.")
@size_options
@click.option("--allow-unsupported", is_flag=True, help="Allow operators that the target does not support.")
@verify_option("Do not compare outputs.")
@seed_option("Seed of the compared inputs.")
@timeout_option("Time limit in seconds (default 1800).")
@click.option("--list", "show_list", is_flag=True, help="Show every pass and what it does.")
@json_option
def command(model: str | None, sample: bool, show_list: bool, as_json: bool, **given: Any) -> None:
    if show_list:
        _list(given, as_json=as_json)
        return
    from winml.modelkit.building.optimize.command import optimize
    from winml.modelkit.cli.stage_progress import StageProgress
    from winml.modelkit.render.optimize import optimize_text

    request = _request(resolve_model(model, sample), given)
    with StageProgress() as progress:
        result = optimize(request, progress.on_event)
    console.show_result(optimize_text, result, as_json=as_json)
    for warning in result.report.warnings:
        console.say("warning", warning)
    if not as_json:
        console.say("wrote", request.output)
        output = console.quote(request.output)
        after = f"perf -m {output}" if sample else f"compare {console.quote(request.model)} {output}"
        console.say("next", f"winml {after}")


def _list(given: dict[str, Any], *, as_json: bool) -> None:
    from winml.modelkit.building.optimize.command import list_passes
    from winml.modelkit.render.optimize import passes_text

    console.show_result(passes_text, list_passes(given["target"], given["ep"], given["device"]), as_json=as_json)


def _request(model: str, given: dict[str, Any]) -> Any:
    from winml.modelkit.building.optimize.command import DEFAULT_TIMEOUT_S, OptimizeRequest
    from winml.modelkit.cli.option_values import sizes

    if given["output"] is None:
        raise click.UsageError("name the optimized model with `-o FILE`")
    return OptimizeRequest(
        model=model,
        output=given["output"],
        target=given["target"],
        ep=given["ep"],
        device=given["device"],
        level=given["level"],
        enable=given["enable"],
        disable=given["disable"],
        opset=given["opset"],
        dims=sizes(given),
        allow_unsupported=given["allow_unsupported"],
        verify=not given["no_verify"],
        seed=given["seed"],
        overwrite=given["overwrite"],
        rebuild=given["rebuild"],
        timeout_s=given["timeout"] or DEFAULT_TIMEOUT_S,
    )

"""`winml export`."""

from __future__ import annotations

from typing import Any

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.build_options import export_options, export_request
from winml.modelkit.cli.help import Command
from winml.modelkit.cli.options import (
    HELP,
    examples,
    json_option,
    model_options,
    output_option,
    rebuild_option,
    refuse_options,
    resolve_model,
    timeout_option,
)


@click.command(
    "export",
    help="Export a Hugging Face model to ONNX and compare it with PyTorch: named outputs, two shapes, with and without "
    "padding. A composite model gives one folder per part. `--sample -o FILE.onnx` writes the ONNX file that ships "
    "with winml.",
    epilog=examples(
        "winml export --sample -o model.onnx",
        "winml export -m ./my-bert -o my-bert-onnx",
        "winml export -m ORG/NAME --revision main --opset 18 -o model",
        "winml export -m ./my-bert --shape sequence=128 --dynamic-axes batch -o fixed",
        "winml export -m ./my-t5 --part encoder -o encoder --json",
    ),
    cls=Command,
    context_settings=HELP,
)
@model_options
@output_option("DIR", "Folder for the model and its processor files; with --sample, the ONNX file.", required=True)
@click.option("--overwrite", is_flag=True, help="Replace another export in the folder, or the file.")
@click.option("--opset", type=click.IntRange(17, 24), metavar="N", help="Opset, 17 to 24 (default 20).")
@export_options
@rebuild_option("Export again and ignore the cache.")
@timeout_option("Time limit in seconds.")
@json_option
@click.pass_context
def command(context: click.Context, /, model: str | None, sample: bool, as_json: bool, **given: Any) -> None:
    if sample and model is None:
        _copy_sample(context, given, as_json=as_json)
        return
    from winml.modelkit.building.export.command import ExportRequest, export
    from winml.modelkit.cli.stage_progress import StageProgress
    from winml.modelkit.render.export import export_text

    request = ExportRequest(
        model=resolve_model(model, sample),
        output=given["output"],
        options=export_request(given),
        opset=given["opset"],
        overwrite=given["overwrite"],
        rebuild=given["rebuild"],
        timeout_s=given["timeout"],
    )
    with StageProgress() as progress:
        result = export(request, progress.on_event)
    console.show_result(export_text, result, as_json=as_json)
    for warning in result.warnings:
        console.say("warning", warning)
    if not as_json:
        console.say("wrote", given["output"])
        console.say("next", f"winml build -m {console.quote(request.model)} --target cpu -o DIR")


def _copy_sample(context: click.Context, given: dict[str, Any], *, as_json: bool) -> None:
    """Write the sample's ONNX file; there is nothing to export, so options of an export would have no effect."""
    from winml.modelkit.building.export.sample_copy import copy_sample
    from winml.modelkit.render.export import sample_text

    refuse_options(context, "--sample", besides=("sample", "output", "overwrite", "as_json"))
    result = copy_sample(given["output"], overwrite=given["overwrite"])
    console.show_result(sample_text, result, as_json=as_json)
    if not as_json:
        console.say("next", f"winml perf -m {console.quote(given['output'])}")

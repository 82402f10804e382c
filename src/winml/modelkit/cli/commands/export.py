"""`winml export`."""

from __future__ import annotations

from typing import Any

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.build_options import export_options, export_request
from winml.modelkit.cli.options import HELP, examples, json_option, model_options, output_option, resolve_model


@click.command(
    "export",
    help="Export a Hugging Face model to ONNX and compare it with PyTorch: named outputs, two shapes, with padding. A "
    "composite model gives one folder per part.",
    epilog=examples(
        "winml export -m ./my-bert -o my-bert-onnx",
        "winml export -m ORG/NAME --revision main --opset 18 -o model",
        "winml export -m ./my-bert --shape sequence=128 --dynamic-axes batch -o fixed",
        "winml export -m ./my-t5 --part encoder -o encoder --json",
    ),
    context_settings=HELP,
)
@model_options
@output_option("DIR", "Folder for the model and its processor files.", required=True)
@click.option("--overwrite", is_flag=True, help="Replace another export in the folder.")
@click.option("--opset", type=click.IntRange(17, 24), metavar="N", help="Opset, 17 to 24 (default 20).")
@export_options
@click.option("--rebuild", is_flag=True, help="Export again and ignore the cache.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="S", help="Time limit in seconds.")
@json_option
def command(model: str | None, sample: bool, as_json: bool, **given: Any) -> None:
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

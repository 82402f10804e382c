"""`winml config`."""

from __future__ import annotations

from typing import Any

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.build_options import build_options, config_request, export_options
from winml.modelkit.cli.help import Command
from winml.modelkit.cli.options import HELP, examples, json_option, model_options, output_option, resolve_model
from winml.modelkit.core import plain_text


@click.command(
    "config",
    help="Write a complete build config with `auto` resolved: the same file builds the same bytes.",
    epilog=examples(
        "winml config --sample -p int8 -o config.json",
        "winml config -m model.onnx --target qnn/npu --calibration samples.npz -o config.json",
        "winml config -m model.onnx --target cpu --no-quant > config.json",
        "winml config -m ORG/NAME --task text-classification --target qnn/npu --no-quant -o config.json",
    ),
    cls=Command,
    context_settings=HELP,
)
@model_options
@build_options
@export_options
@output_option("FILE", "The config file (default: stdout).")
@click.option("--overwrite", is_flag=True, help="Replace an existing output file.")
@json_option
def command(model: str | None, sample: bool, output: str | None, overwrite: bool, as_json: bool, **given: Any) -> None:
    import json

    from winml.modelkit.building.config import make_config
    from winml.modelkit.cli.results import ResultFile
    from winml.modelkit.cli.stage_progress import StageProgress
    from winml.modelkit.core.values import to_json
    from winml.modelkit.render.build import config_text

    result_file = ResultFile(output, overwrite=overwrite)
    with StageProgress() as progress:
        request = config_request(resolve_model(model, sample), sample=sample, given=given)
        result = make_config(request, progress.on_event)
    result_file.write(result.config)
    if as_json:
        console.data_json(result)
    elif output is None:
        console.data(plain_text.json_text(json.dumps(to_json(result.config), indent=2, ensure_ascii=False)))
    else:
        console.show(config_text, result)
    for note in result.notes:
        console.say("note", note)
    if output is not None and not as_json:
        console.say("wrote", output)
        console.say("next", f"winml build -c {console.quote(output)} -o DIR")

"""`winml inspect`."""

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
    resolve_model,
    size_options,
    timeout_option,
)


@click.command(
    "inspect",
    help="Show a model's inputs, outputs, opset, size, operators, and whether it is quantized or compiled; for a "
    "Hugging Face model, its tasks, class, inputs, parameters and parts, without loading it.",
    epilog=examples(
        "winml inspect --sample", "winml inspect -m bert.onnx --dim sequence=128 --json", "winml inspect -m ./my-bert"
    ),
    cls=Command,
    context_settings=HELP,
)
@model_options
@size_options
@timeout_option("Time limit for reading in seconds (default 20, plus 1 per 10 MB).")
@json_option
def command(model: str | None, sample: bool, timeout: float | None, as_json: bool, **given: Any) -> None:
    from winml.modelkit.building.inspect import Inspection, inspect
    from winml.modelkit.cli.next_command import SIZES, after_inspect, model_option, repeat_options
    from winml.modelkit.cli.option_values import sizes
    from winml.modelkit.cli.progress import QuietProgress
    from winml.modelkit.render.inspect import folder_text, inspect_text

    path = resolve_model(model, sample)
    with QuietProgress() as progress:
        result = inspect(path, dims=sizes(given), timeout_s=timeout, on_event=progress.on_event)
    if as_json:
        console.data_json(result)
    elif isinstance(result, Inspection):
        console.show(inspect_text, result)
        named = model_option(path, sample=sample) + repeat_options(given, SIZES)
        console.say("next", after_inspect(result, named))
    else:
        console.show(folder_text, result)
        console.say("next", f"winml export -m {console.quote(path)} -o DIR")

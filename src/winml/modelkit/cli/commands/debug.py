"""`winml debug`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.help import Command
from winml.modelkit.cli.options import (
    HELP,
    ep_options_option,
    examples,
    json_option,
    output_options,
    own_model_options,
    resolve_model,
    seed_option,
    size_options,
    target_options,
    timeout_option,
    trust_of,
    trust_option,
)

if TYPE_CHECKING:
    from winml.modelkit.accuracy.result import DebugResult

_AT_LEAST_1 = click.IntRange(min=1)


@click.command(
    "debug",
    help="Find the layers that lose the accuracy of a quantized model: both models run on the same inputs, the "
    "quantized one on its target, and its layers are ranked by what the noise of each alone does to the outputs.",
    epilog=examples(
        "winml debug -m int8.onnx --reference fp32.onnx --data test.npz --target qnn/npu",
        "winml debug -m int8.onnx --reference fp32.onnx --data test.npz --target cpu --json -o debug.json",
        "winml debug -m build/ --reference fp32.onnx --data random --samples 2 --layers 30",
    ),
    cls=Command,
    context_settings=HELP,
)
@own_model_options
@click.option("--reference", required=True, metavar="MODEL", help="The model before it was quantized.")
@click.option(
    "--data",
    required=True,
    metavar="DATA",
    help="Inputs: a file (.npz .csv .tsv .jsonl .parquet .txt), a folder of images, `hf:ORG/NAME/FILE`, or `random`.",
)
@target_options
@click.option(
    "--samples", type=_AT_LEAST_1, default=4, show_default=True, metavar="N", help="Use N samples of the data."
)
@seed_option("Seed of the selection.")
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="ROLE=NAME",
    help="Column for text, text_pair, image, label or an input.",
)
@click.option("--processor", metavar="DIR", help="Folder with tokenizer, image processor and config.json.")
@click.option("--length", type=_AT_LEAST_1, metavar="N", help="Tokens per text, for a model with dynamic length.")
@size_options
@click.option(
    "--layers", type=_AT_LEAST_1, default=12, show_default=True, metavar="N", help="Layers to show; a result has all."
)
@ep_options_option
@trust_option
@timeout_option("Time limit per session in seconds (default: none).")
@output_options
@json_option
def command(model: str | None, output: str | None, overwrite: bool, as_json: bool, **given: Any) -> None:
    from winml.modelkit.accuracy.debug import DebugRequest, debug
    from winml.modelkit.cli.option_values import sizes
    from winml.modelkit.cli.progress import DebugProgress
    from winml.modelkit.cli.results import ResultFile
    from winml.modelkit.core.config import DataSection
    from winml.modelkit.ep.options import parse_pairs

    result_file = ResultFile(output, overwrite=overwrite, as_json=as_json)
    data = DataSection(
        given["data"],
        limit=given["samples"],
        seed=given["seed"],
        columns=parse_pairs(given["columns"], option="--column", example="text=sentence"),
        processor=given["processor"],
        length=given["length"],
    )
    request = DebugRequest(
        model=resolve_model(model, False),
        reference=given["reference"],
        data=data,
        target=given["target"],
        ep=given["ep"],
        device=given["device"],
        samples=given["samples"],
        dims=sizes(given),
        ep_options=parse_pairs(given["ep_options"]),
        timeout_s=given["timeout"],
        trust=trust_of(given),
    )
    with DebugProgress() as progress:
        result = debug(request, progress.on_event)
    result_file.write(result)
    if as_json:
        console.data_json(result)
        return
    _show(result, given["layers"])
    result_file.say_wrote()
    result_file.say_report()


def _show(result: DebugResult, layers: int) -> None:
    from winml.modelkit.render.debug import debug_text

    console.show(lambda found: debug_text(found, layers), result)
    for note in result.notes:
        console.say("note", note)
    for warning in result.warnings:
        console.say("warning", warning)

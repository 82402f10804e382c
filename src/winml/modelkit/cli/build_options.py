"""Options that `winml config`, `winml build` and in part `winml quantize` share, and the request they make."""

from __future__ import annotations

from typing import Any

import click

from winml.modelkit.cli.options import (
    ep_options_option,
    max_sample_option,
    seed_option,
    stack,
    target_options,
    trust_of,
    trust_option,
)
from winml.modelkit.cli.spellings import earlier
from winml.modelkit.ep import precision

own_calibration_options = stack(
    click.option(
        "--calibration",
        metavar="FILE|random",
        help="Calibration data: .npz, folder of images, .txt, .csv, .jsonl or .parquet; `random` inputs cost accuracy.",
    ),
    click.option("--samples", type=click.IntRange(min=1), metavar="N", help="Use N samples of the data."),
    max_sample_option,
    click.option(
        "--column", "columns", multiple=True, metavar="ROLE=NAME", help="Column of a table, for example text=sentence."
    ),
    click.option("--processor", metavar="DIR", help="Folder of the tokenizer or image processor."),
    seed_option("Random seed."),
)
"""For a command where `--data` is something else."""
calibration_options = stack(own_calibration_options, earlier("--data", to="calibration", now="--calibration"))

export_options = stack(
    click.option("--task", metavar="TASK", help="Task of a Hugging Face model (default: the one it was saved for)."),
    click.option("--part", metavar="PART", help="Only this part of a composite model; `model` is the whole."),
    click.option(
        "--exporter",
        type=click.Choice(["transformers", "legacy", "genai"]),
        help="Exporter to ONNX (default: onnxruntime-genai's builder for decoders that it has, else transformers, and "
        "legacy where that fails).",
    ),
    click.option(
        "--shape",
        "shapes",
        multiple=True,
        metavar="NAME=N[,N…]",
        help="Fix a whole input (x=1,3,48,320) or an axis (sequence=64).",
    ),
    click.option("--dynamic-axes", metavar="NAME,...", help="Axes to keep dynamic, such as batch,sequence; or `none`."),
    click.option("--input-specs", metavar="FILE", help="JSON file with shape, dtype, low and high of each input."),
    click.option("--no-parity", is_flag=True, help="Do not compare outputs with PyTorch."),
    click.option("--trust-remote-code", is_flag=True, help="Run code that comes with a Hugging Face model."),
)

build_options = stack(
    target_options,
    click.option(
        "-p",
        "--precision",
        default="auto",
        show_default=True,
        metavar="PRECISION",
        help=f"{', '.join(precision.precision_names())}, or auto: what the target prefers.",
    ),
    calibration_options,
    click.option("--no-quant", is_flag=True, help="Do not quantize, whatever the target's default."),
    click.option("--no-optimize", is_flag=True, help="Do not run graph passes."),
    click.option("--level", metavar="LEVEL", help="Optimization level; `winml optimize --help` lists them."),
    click.option("--enable", multiple=True, metavar="PASS", help="Add a pass; `winml optimize --list` shows them all."),
    click.option("--disable", multiple=True, metavar="PASS", help="Skip a pass."),
    click.option("--opset", type=click.IntRange(min=7), metavar="N", help="Opset to convert to."),
    click.option(
        "--dim", "dims", multiple=True, metavar="NAME=N", help="Fix a dynamic dimension, by name or position: x[2]=48."
    ),
    click.option("--compile/--no-compile", "compiled", default=False, help="Also compile to an EP context."),
    click.option("--threads", type=click.IntRange(min=1), metavar="N", help="Threads of sessions that run the result."),
    ep_options_option,
    trust_option,
)

NAMES = (
    "target", "ep", "device", "precision", "calibration", "samples", "columns", "processor", "seed", "no_quant",
    "no_optimize", "level", "enable", "disable", "opset", "dims", "compiled", "threads", "ep_options",
    "task", "part", "exporter", "shapes", "dynamic_axes", "input_specs", "no_parity",
)  # fmt: skip
"""The parameters that make a config; `--trust-remote-code` may also be given with `--config`."""


def config_request(model: str, *, sample: bool, given: dict[str, Any]) -> Any:
    """What the options ask for."""
    from winml.modelkit.building.config import ConfigRequest
    from winml.modelkit.cli.option_values import dimensions, sizes
    from winml.modelkit.core.model_ref import parse
    from winml.modelkit.ep.options import parse_pairs

    if given["no_quant"] and given["precision"] not in (precision.AUTO, precision.UNQUANTIZED):
        raise click.UsageError("`--no-quant` cannot be combined with `--precision`")
    # Shapes of an exported model go to the exporter; those of an ONNX model are sizes like any other.
    exported = parse(model).is_exported
    return ConfigRequest(
        model=model,
        target=given["target"],
        ep=given["ep"],
        device=given["device"],
        precision=precision.UNQUANTIZED if given["no_quant"] else given["precision"],
        data=calibration_data(False, given),
        sample_data=calibration_data(sample, given),
        optimize=not given["no_optimize"],
        level=given["level"],
        enable=given["enable"],
        disable=given["disable"],
        opset=given["opset"],
        dims=dimensions(given["dims"]) if exported else sizes(given),
        compile=given["compiled"],
        threads=given["threads"],
        ep_options=parse_pairs(given["ep_options"]),
        export=export_request(given if exported else {**given, "shapes": ()}),
        trust=trust_of(given),
    )


def export_request(given: dict[str, Any]) -> Any:
    """How a Hugging Face model is to be exported."""
    from winml.modelkit.building.export.resolve import ExportOptions
    from winml.modelkit.cli.option_values import axis_names, input_specs, shapes

    return ExportOptions(
        task=given["task"],
        part=given["part"],
        exporter=given["exporter"],
        shapes=shapes(given["shapes"]),
        dynamic_axes=axis_names(given["dynamic_axes"]),
        input_specs=input_specs(given["input_specs"]),
        verify=not given["no_parity"],
        trust_remote_code=given["trust_remote_code"],
    )


def calibration_data(sample: bool, given: dict[str, Any]) -> Any:
    """The calibration data from the options; the sample has its own."""
    from winml.modelkit.core.config import DataSection
    from winml.modelkit.ep.options import parse_pairs

    source = given["calibration"]
    if source is None and sample:
        from winml.modelkit import sample as sample_files

        source = str(sample_files.CALIBRATION)
    if source is None:
        return None
    return DataSection(
        source=source,
        limit=given["samples"],
        seed=given["seed"],
        columns=parse_pairs(given["columns"], option="--column", example="text=sentence"),
        processor=given["processor"],
        length=given.get("length"),
    )

"""`winml quantize`."""

from __future__ import annotations

from typing import Any

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.build_options import calibration_data, own_calibration_options
from winml.modelkit.cli.help import Command
from winml.modelkit.cli.options import (
    HELP,
    examples,
    join_words,
    json_option,
    model_options,
    output_option,
    resolve_model,
    size_options,
    target_options,
    timeout_option,
    verify_option,
)
from winml.modelkit.ep import precision

_FIELDS = {
    "activations": "activation_type",
    "weights": "weight_type",
    "per_channel": "per_channel",
    "symmetric_activations": "symmetric_activations",
    "symmetric_weights": "symmetric_weights",
    "reduce_range": "reduce_range",
    "rules": "rules",
    "method": "calibration_method",
    "percentile": "percentile",
    "bias_correction": "bias_correction",
    "smooth": "smoothing",
    "block_size": "block_size",
    "block_method": "block_method",
    "block_compute": "block_compute",
    "keep_io": "keep_io_types",
}
"""Options and the keys of the section they change; an option that is not given changes nothing."""
_NAME_FIELDS = ("op_types", "exclude_op_types", "nodes", "exclude_nodes", "wide_nodes")


@click.command(
    "quantize",
    help="Quantize a model in the way the target prefers, and compare its outputs with the original's. Static "
    f"precisions ({', '.join(precision.precision_names(data=True))}) need calibration data; "
    f"{join_words(precision.precision_names(data=False, quantized=True), 'and')} do not.",
    epilog=examples(
        "winml quantize --sample -o int8.onnx",
        "winml quantize -m model.onnx -o npu.onnx --target qnn/npu --calibration images/ --samples 128",
        "winml quantize -m bert.onnx -o dynamic.onnx -p dynamic",
        "winml quantize -m bert.onnx -o int8.onnx --calibration texts.csv --column text=sentence --op-types MatMul",
        "winml quantize -m llm.onnx -o int4.onnx -p int4 --block-size 64",
        "winml quantize -m model.onnx -o mixed.onnx --target qnn/npu --calibration train.npz --data test.npz "
        "--task image-classification --max-drop 0.01",
        "winml quantize -m model.onnx --sensitivity --target cpu --calibration train.npz -o layers.json",
    ),
    cls=Command,
    context_settings=HELP,
)
@model_options
@output_option("FILE", "The quantized model; with `--sensitivity`, a file for the result.")
@click.option("--overwrite", is_flag=True, help="Replace an existing output file.")
@click.option("--rebuild", is_flag=True, help="Quantize again and ignore the cache.")
@target_options
@click.option(
    "-p",
    "--precision",
    metavar="PRECISION",
    help=f"{join_words(precision.precision_names(quantized=True), 'or')} (default: what the target prefers, or int8).",
)
@own_calibration_options
@click.option(
    "--length", type=click.IntRange(min=1), metavar="N", help="Tokens per text, for a model with dynamic length."
)
@size_options
@click.option("--activations", type=click.Choice(["uint8", "int8", "uint16", "int16"]), help="Type of activations.")
@click.option("--weights", type=click.Choice(["int8", "uint8", "int16", "int4", "uint4"]), help="Type of the weights.")
@click.option(
    "--per-channel/--per-tensor",
    "per_channel",
    default=None,
    help="Scales of the weights (default: the more accurate).",
)
@click.option(
    "--symmetric-activations/--asymmetric-activations",
    default=None,
    help="Symmetric or asymmetric ranges of activations.",
)
@click.option(
    "--symmetric-weights/--asymmetric-weights", default=None, help="Symmetric or asymmetric ranges of weights."
)
@click.option(
    "--reduce-range/--full-range",
    default=None,
    help="7-bit weights, where 16-bit sums could saturate (default: where they do on this processor).",
)
@click.option("--rules", type=click.Choice(["ort", "qnn"]), help="Whose conventions the QDQ pairs follow.")
@click.option(
    "--method",
    type=click.Choice(["minmax", "entropy", "percentile", "mse", "best"]),
    help="How ranges are computed; `best` chooses for each tensor what loses least.",
)
@click.option(
    "--percentile", type=click.FloatRange(50, 100), metavar="PCT", help="Percentage of values kept (default 99.99)."
)
@click.option(
    "--bias-correction/--no-bias-correction",
    default=None,
    help="Put the mean error of every product on the calibration data into its bias.",
)
@click.option(
    "--smooth",
    type=click.FloatRange(0, 1),
    metavar="X",
    help="Move this share of the ranges of activations into weights (SmoothQuant); 0.5 is usual.",
)
@click.option("--op-types", multiple=True, metavar="OP", help="Only this operator; may be repeated.")
@click.option("--exclude-op-types", multiple=True, metavar="OP", help="Exclude this operator; may be repeated.")
@click.option("--nodes", multiple=True, metavar="NODE", help="Only this node; may be repeated.")
@click.option("--exclude-nodes", multiple=True, metavar="NODE", help="Exclude this node; may be repeated.")
@click.option(
    "--wide-nodes",
    multiple=True,
    metavar="NODE",
    help="16-bit activations for this node (int8 on QNN); may be repeated.",
)
@click.option("--block-size", type=click.IntRange(16, 1024), metavar="N", help="Weights that share a scale (int4).")
@click.option(
    "--block-method",
    type=click.Choice(["rtn", "hqq", "k_quant"]),
    help="How scales of blocks are found (default: rtn, to the nearest).",
)
@click.option(
    "--block-compute", type=click.Choice(["float32", "int8"]), help="What activations are multiplied in (int4)."
)
@click.option("--keep-io/--float16-io", "keep_io", default=None, help="With fp16: types of inputs and outputs.")
@click.option(
    "--max-drop",
    type=float,
    metavar="X",
    help="Change what loses accuracy, then keep layers in float, until the metric drops by at most X.",
)
@click.option(
    "--min-agreement",
    type=click.FloatRange(-1, 1),
    metavar="X",
    help="The same until the median cosine of every output to the original's is at least X.",
)
@click.option(
    "--sensitivity", is_flag=True, help="Write no model: measure what quantizing each layer alone does to the outputs."
)
@click.option(
    "--group",
    "grouping",
    type=click.Choice(["layer", "op-type", "block"]),
    help="With `--sensitivity`: what is quantized together (default: layer).",
)
@click.option("--data", metavar="DATA", help="Data for a limit or `--sensitivity`, as `winml eval` takes it.")
@click.option("--task", metavar="TASK", help="Task of the model, for `--max-drop` (default: from its config.json).")
@click.option("--metric", metavar="NAME", help="Metric that `--max-drop` is for (default: the task's first).")
@click.option(
    "--judge",
    type=click.Choice(["interval", "value"]),
    default="interval",
    show_default=True,
    help="Compare the whole interval with the limit, or only the value.",
)
@verify_option("Do not compare outputs.", "--no-compare")
@timeout_option("Time limit in seconds.")
@json_option
def command(model: str | None, sample: bool, as_json: bool, **given: Any) -> None:
    from winml.modelkit.building.quantize.command import quantize
    from winml.modelkit.cli.stage_progress import StageProgress
    from winml.modelkit.render.quantize import quantize_text

    if given["sensitivity"]:
        _measure_sensitivity(resolve_model(model, sample), given, sample=sample, as_json=as_json)
        return
    if given["grouping"]:
        raise click.UsageError("`--group` is for `--sensitivity`")
    request = _request(resolve_model(model, sample), given, sample=sample)
    goal = _goal(given, sample=sample)
    if goal is not None:
        _quantize_within(request, goal, as_json=as_json)
        return
    with StageProgress() as progress:
        result = quantize(request, progress.on_event)
    console.show_result(quantize_text, result, as_json=as_json)
    for note in result.outcome.notes:
        console.say("note", note)
    for warning in result.outcome.warnings:
        console.say("warning", warning)
    if not as_json:
        console.say("wrote", request.output)
        console.say("next", f"winml compare {console.quote(request.model)} {console.quote(request.output)}")


def _goal(given: dict[str, Any], *, sample: bool) -> Any:
    """The limit to hold; None without one."""
    from winml.modelkit import sample as sample_files
    from winml.modelkit.accuracy.mend import Goal
    from winml.modelkit.core.config import DataSection

    source = given["data"] or (str(sample_files.TEST) if sample else None)
    if given["max_drop"] is None and given["min_agreement"] is None:
        if given["data"] or given["task"] or given["metric"]:
            raise click.UsageError(
                "`--data`, `--task` and `--metric` are for a limit (`--max-drop`, `--min-agreement`) or `--sensitivity`"
            )
        return None
    if source is None:
        raise click.UsageError("a limit needs the data that it is held on: `--data DATA`")
    return Goal(
        data=DataSection(
            source,
            limit=4 if source == "random" else None,
            columns=_columns(given),
            processor=given["processor"],
            length=given["length"],
        ),
        task=given["task"] or ("image-classification" if sample else None),
        metric=given["metric"],
        max_drop=given["max_drop"],
        min_agreement=given["min_agreement"],
        by=given["judge"],
    )


def _quantize_within(request: Any, goal: Any, *, as_json: bool) -> None:
    from winml.modelkit.accuracy.mend import quantize_within
    from winml.modelkit.cli.progress import DebugProgress
    from winml.modelkit.render.mend import mend_text

    with DebugProgress() as progress:
        result = quantize_within(request, goal, progress.on_event)
    console.show_result(mend_text, result, as_json=as_json)
    for note in result.notes:
        console.say("note", note)
    for warning in result.warnings:
        console.say("warning", warning)
    if not as_json:
        console.say("wrote", request.output)
        console.say("next", f"winml compare {console.quote(request.model)} {console.quote(request.output)}")


def _measure_sensitivity(model: str, given: dict[str, Any], *, sample: bool, as_json: bool) -> None:
    from winml.modelkit import sample as sample_files
    from winml.modelkit.accuracy.sensitivity import SensitivityRequest, sensitivity
    from winml.modelkit.cli.progress import DebugProgress
    from winml.modelkit.cli.results import ResultFile
    from winml.modelkit.core.config import DataSection
    from winml.modelkit.render.sensitivity import sensitivity_text

    if given["max_drop"] is not None or given["min_agreement"] is not None:
        raise click.UsageError("`--sensitivity` writes no model, so that there is no limit to hold")
    result_file = ResultFile(given["output"], overwrite=given["overwrite"], as_json=as_json)
    source = given["data"] or (str(sample_files.TEST) if sample else None)
    if source is None and (given["task"] or given["metric"]):
        raise click.UsageError("`--task` and `--metric` need labelled data: `--data DATA`")
    request = SensitivityRequest(
        quantize=_request(model, {**given, "output": ""}, sample=sample),
        data=None
        if source is None
        else DataSection(source, columns=_columns(given), processor=given["processor"], length=given["length"]),
        task=given["task"],
        metric=given["metric"],
        grouping=given["grouping"] or "layer",
    )
    with DebugProgress() as progress:
        result = sensitivity(request, progress.on_event)
    result_file.write(result)
    if as_json:
        console.data_json(result)
        return
    console.show(sensitivity_text, result)
    for note in result.notes:
        console.say("note", note)
    for warning in result.warnings:
        console.say("warning", warning)
    result_file.say_wrote()
    result_file.say_report()


def _columns(given: dict[str, Any]) -> dict[str, str]:
    from winml.modelkit.ep.options import parse_pairs

    return parse_pairs(given["columns"], option="--column", example="text=sentence")


def _request(model: str, given: dict[str, Any], *, sample: bool) -> Any:
    from winml.modelkit.building.quantize.command import QuantizeRequest
    from winml.modelkit.cli.option_values import sizes

    if given["output"] is None:
        raise click.UsageError("name the quantized model with `-o FILE`")
    changes = {field: given[option] for option, field in _FIELDS.items() if given[option] is not None}
    changes |= {field: given[field] for field in _NAME_FIELDS if given[field]}
    return QuantizeRequest(
        model=model,
        output=given["output"],
        target=given["target"],
        ep=given["ep"],
        device=given["device"],
        precision=given["precision"],
        changes=changes,
        dims=sizes(given),
        data=calibration_data(False, given),
        sample_data=calibration_data(sample, given),
        compare=not given["no_verify"],
        overwrite=given["overwrite"],
        rebuild=given["rebuild"],
        timeout_s=given["timeout"],
    )

"""`winml eval`."""

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
    max_sample_option,
    model_options,
    output_option,
    output_options,
    resolve_model,
    seed_option,
    size_options,
    target_options,
    threads_option,
    timeout_option,
    trust_of,
    trust_option,
)

if TYPE_CHECKING:
    from winml.modelkit.evaluation.result import EvalResult

_AT_LEAST_1 = click.IntRange(min=1)


@click.command(
    "eval",
    help="Measure the accuracy of a model on the target itself, with an interval for each metric; with a reference, "
    "also the drop and the distance between outputs. Limits are fractions: 0.01 is one percentage point.",
    epilog=examples(
        "winml eval --sample",
        "winml eval -m int8.onnx --reference fp32.onnx --data test.npz --task image-classification --max-drop 0.01",
        "winml eval -m model.onnx --data photos/ --task image-classification --samples 1000 --target qnn/npu",
        "winml eval -m bert.onnx --data dev.csv --task text-classification --column text=sentence",
        "winml eval -m model.onnx --data random --target qnn/npu --reference-target cpu --min-agreement 0.9",
        "winml eval -m llama-int4/ --reference llama-fp32/ --data texts.jsonl --task perplexity --max-drop 0.5",
        "winml eval -m int8.onnx --reference fp32.onnx --data test.npz --metric my_metric.py:score --max-drop 0.02",
    ),
    cls=Command,
    context_settings=HELP,
)
@model_options
@click.option(
    "--data",
    metavar="DATA",
    help="File (.npz .csv .tsv .jsonl .parquet .txt, COCO's .json), folder of images or recordings, "
    "`hf:ORG/NAME/FILE`, `default` for the data set of the task, or `random`.",
)
@click.option("--task", metavar="TASK", help="Task of the model (default: from its config.json).")
@click.option("--reference", metavar="MODEL", help="Model to compare with.")
@click.option("--reference-target", metavar="EP[/DEVICE]", help="Where the reference runs (default: the same target).")
@target_options
@click.option("--samples", type=_AT_LEAST_1, metavar="N", help="Use N samples of the data, chosen with the seed.")
@max_sample_option
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
@click.option("--output-name", metavar="NAME", help="Output to judge (default: logits, or the first).")
@click.option(
    "--task-option",
    "task_options",
    multiple=True,
    metavar="NAME=VALUE",
    help="Setting of the task: threshold, scores, over, alphabet, blank, stride, stop, chat.",
)
@click.option(
    "--state",
    multiple=True,
    metavar="INPUT=OUTPUT",
    help="Input that takes over an output of the step before; a sample is a sequence (default: found by name).",
)
@click.option(
    "--new-tokens",
    type=_AT_LEAST_1,
    metavar="N",
    help="Tokens to generate for a prompt, at most (default: 64, or half of a shorter context).",
)
@click.option(
    "--runtime",
    type=click.Choice(["genai", "onnxruntime"]),
    help="Program that runs a folder that generates text (default: what the build names, else onnxruntime-genai where "
    "it is installed and has the EP, else winml's own loop).",
)
@click.option(
    "--metric",
    metavar="NAME|FILE.py:NAME",
    help="Metric the limits are for (default: the task's first), or a function of your own.",
)
@click.option("--min-metric", type=float, metavar="X", help="Exit 5 when the metric is below X.")
@click.option("--max-metric", type=float, metavar="X", help="Exit 5 when a metric that is better lower is above X.")
@click.option("--max-drop", type=float, metavar="X", help="Exit 5 when the metric dropped by more than X.")
@click.option(
    "--min-agreement",
    type=click.FloatRange(-1, 1),
    metavar="X",
    help="Exit 5 when the median cosine of an output to the reference's is below X.",
)
@click.option(
    "--judge",
    type=click.Choice(["interval", "value"]),
    default="interval",
    show_default=True,
    help="Compare the whole interval with the limit, or only the value.",
)
@threads_option
@ep_options_option
@trust_option
@output_option(
    "FILE.npz",
    "Also save the outputs of the model and its reference; large ones are sampled.",
    "--save-outputs",
)
@click.option("--strict-ep", is_flag=True, help="Fail (exit 5) when a node runs on the CPU instead of the target.")
@timeout_option("Time limit per model in seconds (default: none).")
@output_options
@json_option
def command(model: str | None, sample: bool, output: str | None, overwrite: bool, as_json: bool, **given: Any) -> None:
    import contextlib
    import sys

    from winml.modelkit.cli.next_command import after_eval, model_option
    from winml.modelkit.cli.progress import EvalProgress
    from winml.modelkit.cli.results import ResultFile
    from winml.modelkit.evaluation.evaluate import evaluate

    result_file = ResultFile(output, overwrite=overwrite, as_json=as_json)
    # What a function of the user's prints is not part of the result.
    with result_file.keeping("eval", _show), EvalProgress() as progress, contextlib.redirect_stdout(sys.stderr):
        request = _request(resolve_model(model, sample), sample, given)
        result = evaluate(request, progress.on_event)
    result_file.write(result)
    if as_json:
        console.data_json(result)
        return
    _show(result)
    result_file.say_wrote()
    if result.outputs is not None:
        console.say("wrote", result.outputs.file)
    console.say("next", after_eval(result, model_option(request.model, sample=sample), given["data"]))
    result_file.say_report()


def _show(result: EvalResult) -> None:
    from winml.modelkit.render.evaluate import evaluate_text

    console.show(evaluate_text, result)
    for note in result.notes:
        console.say("note", note)
    for warning in result.warnings:
        console.say("warning", warning)


def _request(model: str, sample: bool, given: dict[str, Any]) -> Any:
    from winml.modelkit.cli.option_values import sizes
    from winml.modelkit.ep.options import parse_pairs
    from winml.modelkit.evaluation.custom_metric import load_metric, names_file
    from winml.modelkit.evaluation.evaluate import EvalRequest
    from winml.modelkit.evaluation.result import Judging

    custom = load_metric(given["metric"]) if given["metric"] and names_file(given["metric"]) else None
    return EvalRequest(
        model=model,
        data=_data(sample, given),
        task=given["task"] or ("image-classification" if sample and given["data"] is None else None),
        target=given["target"],
        ep=given["ep"],
        device=given["device"],
        reference=given["reference"],
        reference_target=given["reference_target"],
        judging=Judging(
            None if custom else given["metric"],
            given["min_metric"],
            given["max_drop"],
            given["judge"],
            given["min_agreement"],
            given["max_metric"],
        ),
        custom=custom,
        task_options=parse_pairs(given["task_options"], option="--task-option", example="threshold=0.4"),
        state=parse_pairs(given["state"], option="--state", example="state=stateN"),
        runtime=given["runtime"],
        new_tokens=given["new_tokens"],
        output=given["output_name"],
        threads=given["threads"],
        ep_options=parse_pairs(given["ep_options"]),
        trust=trust_of(given),
        strict_ep=given["strict_ep"],
        dims=sizes(given),
        save_outputs=given["save_outputs"],
        timeout_s=given["timeout"],
    )


def _data(sample: bool, given: dict[str, Any]) -> Any:
    """The data section; None leaves it to the build of the model."""
    from winml.modelkit import sample as sample_files
    from winml.modelkit.core.config import DataSection
    from winml.modelkit.ep.options import parse_pairs

    source = given["data"] or (str(sample_files.TEST) if sample else None)
    columns = parse_pairs(given["columns"], option="--column", example="text=sentence")
    if source is None:
        if columns or any(given[name] is not None for name in ("samples", "processor", "length")):
            raise click.UsageError("`--samples`, `--column`, `--processor` and `--length` need `--data`")
        return None
    return DataSection(
        source,
        limit=given["samples"],
        seed=given["seed"],
        columns=columns,
        processor=given["processor"],
        length=given["length"],
    )

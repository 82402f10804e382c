"""`winml autoconfig`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.cluster_options import cluster_options
from winml.modelkit.cli.help import Command
from winml.modelkit.cli.options import (
    HELP,
    ep_options_option,
    examples,
    input_options,
    json_option,
    knowledge_option,
    model_options,
    output_option,
    priority_option,
    stack,
    targets_options,
    trust_option,
)

data_options = stack(
    click.option("--data", metavar="DATA", help="Labelled data for the accuracy gate."),
    click.option("--task", metavar="TASK", help="Task of the model (default: from its config.json)."),
    click.option(
        "--task-option",
        "task_options",
        multiple=True,
        metavar="NAME=VALUE",
        help="Setting of the task: threshold, scores, over, alphabet, blank.",
    ),
    click.option(
        "--metric",
        metavar="NAME|FILE.py:NAME",
        help="Metric the limits are for (default: the task's first), or a function of your own.",
    ),
    click.option("--min-metric", type=float, metavar="X", help="Lowest accepted metric."),
    click.option(
        "--max-metric", type=float, metavar="X", help="Highest accepted value of a metric that is better lower."
    ),
    click.option(
        "--max-drop", type=float, metavar="X", help="Largest accepted drop of the metric (default 0.01 with --data)."
    ),
    click.option(
        "--min-agreement",
        type=click.FloatRange(-1, 1),
        metavar="X",
        help="Lowest accepted median cosine to the given model's outputs (default 0.99 without --data).",
    ),
    click.option(
        "--judge",
        type=click.Choice(["interval", "value"]),
        default="interval",
        show_default=True,
        help="Compare the whole interval with the limit, or only the value.",
    ),
    click.option("--calibration", metavar="FILE|random", help="Samples for static quantization, or `random`."),
    click.option("--samples", type=click.IntRange(min=1), metavar="N", help="Use N samples of --data."),
    click.option(
        "--length", type=click.IntRange(min=1), metavar="N", help="Tokens per text, for a model with dynamic length."
    ),
    click.option("--column", "columns", multiple=True, metavar="ROLE=NAME", help="Column of a table."),
    click.option("--processor", metavar="DIR", help="Folder with tokenizer, image processor and config.json."),
)

search_options = stack(
    click.option(
        "--objective",
        type=click.Choice(["latency", "size", "placement", "first-token", "tokens-per-second", "memory"]),
        metavar="NAME",
        help="What to optimize: latency (default), size or placement (default on a simulated target); of a model that "
        "generates text tokens-per-second (default), first-token, memory or size.",
    ),
    click.option(
        "--budget", default="10m", show_default=True, metavar="TIME", help="Time budget, such as 90s, 10m or 2h."
    ),
    click.option("--stop-at", metavar="GAIN", help="Stop once this gain is certain: 30% of the time, or 1.5x."),
    click.option(
        "--max-discards",
        type=click.IntRange(min=1),
        metavar="N",
        help="Stop after N trials in a row without a new leader.",
    ),
    click.option("--space", metavar="FILE", help="Search only the knobs and levels in this file."),
    click.option(
        "--mixed",
        metavar="FILE",
        help="Also try mixed precision, by a result of `winml quantize --sensitivity`.",
    ),
    click.option("--preset", metavar="NAME", help="Try a fixed list of hypotheses: npu, gpu, cpu or dml."),
    click.option("--only", metavar="ID,...", help="Only these hypotheses of the preset."),
    click.option("--reuse", metavar="DIR", help="Reuse the trials of an earlier search."),
    knowledge_option,
)


@click.command(
    "autoconfig",
    help="Search for the config of a model that is fastest on a target and still accurate: opset, graph passes, "
    "quantization, session and provider options. Every config is built, probed and checked before it is timed against "
    "the baseline in interleaved rounds; the winner is measured again. An interrupted search continues with --resume.",
    epilog=examples(
        "winml autoconfig --sample -o digits_search",
        "winml autoconfig -m model.onnx --data test.npz --task image-classification --max-drop 0.01 -o search",
        "winml autoconfig -m model.onnx --data test.npz --metric my_metric.py:score --max-drop 0.02 -o search_own",
        "winml autoconfig -m model.onnx --target qnn/npu --calibration samples.npz -o search_npu",
        "winml autoconfig -m model.onnx --preset cpu --only h3,h7 --budget 30m -o preset",
        "winml autoconfig -m ./llama --objective first-token -o search_llama",
        "winml autoconfig -m model.onnx -o search --resume --budget 1h",
        "winml autoconfig --models list.txt --target cpu -o sweep",
        "winml autoconfig --models list.txt --target qnn/npu --cluster dask://10.0.0.5:8786 "
        "--tls-ca ca.pem --tls-cert me.pem --tls-key me.key --staging oci://10.0.0.5:5000/staging -o sweep",
    ),
    cls=Command,
    context_settings=HELP,
)
@model_options
@click.option(
    "--models",
    "model_list",
    metavar="FILE",
    help="Search every model in a list, one per line: files, folders, ORG/NAME.",
)
@targets_options("Target; may be repeated, and the EP is searched too.")
@data_options
@search_options
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    metavar="N",
    help="Threads of the baseline (default: the runtime's choice).",
)
@ep_options_option
@trust_option
@input_options
@priority_option
@output_option("DIR", "Folder of the search.", required=True)
@click.option("--resume", is_flag=True, help="Continue the search in the folder.")
@click.option("--overwrite", is_flag=True, help="Replace the search in the folder; its files are deleted.")
@cluster_options
@json_option
def command(model: str | None, sample: bool, model_list: str | None, as_json: bool, **given: Any) -> None:
    import contextlib
    import sys

    from winml.modelkit.cli.autoconfig_progress import SearchProgress
    from winml.modelkit.cli.autoconfig_request import autoconfig_request, sweep_request
    from winml.modelkit.render.autoconfig import autoconfig_text
    from winml.modelkit.render.autoconfig_sweep import sweep_text
    from winml.modelkit.search.autoconfig import autoconfig
    from winml.modelkit.search.result import SearchResult, SweepResult
    from winml.modelkit.search.sweep import sweep

    result: SearchResult | SweepResult
    written: tuple[str, ...]
    # What a function of the user's prints is not part of the result.
    with SearchProgress() as progress, contextlib.redirect_stdout(sys.stderr):
        if model_list is not None:
            result = sweep(sweep_request(model_list, model, sample, given), progress.on_event)
        else:
            result = autoconfig(autoconfig_request(model, sample, given), progress.on_event)
    if as_json:
        console.data_json(result)
        return
    if isinstance(result, SearchResult):
        console.show(autoconfig_text, result)
        written = ("champion", "report.html")
    else:
        console.show(sweep_text, result)
        written = ("SUMMARY.md",)
    for note in result.notes:
        console.say("note", note)
    for name in written:
        console.say("wrote", str(Path(given["output"], name)))
    console.say("next", result.next)
    console.say_report(given["output"])

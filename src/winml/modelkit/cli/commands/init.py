"""`winml init`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.help import Command
from winml.modelkit.cli.options import (
    HELP,
    at_revision,
    examples,
    json_option,
    model_options,
    output_option,
    size_options,
)


@click.command(
    "init",
    cls=Command,
    help="Start a project: write a build config for each target and a CI workflow that builds the model, checks its "
    "accuracy and compares its speed with the last build. On a terminal, what no option says is asked for.",
    epilog=examples(
        "winml init",
        "winml init --sample --yes -o my-project",
        "winml init -m model.onnx --target cpu --target qnn/npu --calibration samples.npz --yes",
        "winml init -m model.onnx -p int8 --calibration samples.npz --data test.npz --task image-classification --yes",
    ),
    context_settings=HELP,
)
@model_options
@click.option("--target", "targets", multiple=True, metavar="EP[/DEVICE]", help="Where to run (default: cpu).")
@click.option(
    "-p", "--precision", metavar="PRECISION", help="A precision, or auto (default): the default of each target."
)
@click.option("--calibration", metavar="FILE|random", help="Calibration data: a file or folder, or `random`.")
@click.option(
    "--data", metavar="DATA", help="Labelled data to measure the accuracy on; without it outputs are compared."
)
@click.option("--task", metavar="TASK", help="Task of the model, for --data.")
@click.option(
    "--max-drop", type=click.FloatRange(0, 1), metavar="X", help="Largest accepted drop of the metric (default 0.01)."
)
@click.option(
    "--fail-if-slower",
    type=click.FloatRange(min=0),
    default=5.0,
    show_default=True,
    metavar="PCT",
    help="Largest accepted slowdown in the workflow, in percent.",
)
@size_options
@output_option("DIR", "Folder of the project, the root of its repository (default: here).")
@click.option("--overwrite", is_flag=True, help="Replace files that exist.")
@click.option("--yes", is_flag=True, help="Ask nothing: take the defaults for what no option says.")
@json_option
def command(output: str | None, overwrite: bool, yes: bool, as_json: bool, **given: Any) -> None:
    from winml.modelkit.building.init_command import WORKFLOW, InitRequest, check_free, init_project
    from winml.modelkit.cli.option_values import sizes
    from winml.modelkit.cli.stage_progress import StageProgress
    from winml.modelkit.render.init import init_text

    if given["sample"] and given["model"] is not None:
        raise click.UsageError("give either `-m MODEL` or `--sample`")
    folder = Path(output or ".")
    check_free(folder, [WORKFLOW], overwrite=overwrite)
    if not yes and not as_json and console.is_terminal(sys.stdin) and console.is_terminal(sys.stderr):
        from winml.modelkit.cli.init_questions import ask

        given = ask(given)
    if given["model"] is None and not given["sample"]:
        raise click.UsageError("give either `-m MODEL` or `--sample`")
    request = InitRequest(
        folder=folder,
        model=None if given["sample"] else at_revision(given["model"]),
        targets=given["targets"] or ("cpu",),
        precision=given["precision"] or "auto",
        calibration=given["calibration"],
        data=given["data"],
        task=given["task"],
        max_drop=0.01 if given["max_drop"] is None else given["max_drop"],
        fail_if_slower_pct=given["fail_if_slower"],
        dims=sizes(given),
        overwrite=overwrite,
    )
    with StageProgress() as progress:
        result = init_project(request, progress.on_event)
    console.show_result(init_text, result, as_json=as_json)
    for note in result.notes:
        console.say("note", note)
    if not as_json:
        if output is not None:
            console.say("next", f"cd {console.quote(output)}")
        first = result.configs[0]
        console.say("next", f"winml build -c {first.file} -o {first.build_folder}")

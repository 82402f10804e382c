"""`winml matrix`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.build_options import calibration_options
from winml.modelkit.cli.cluster_options import cluster_options
from winml.modelkit.cli.help import Group
from winml.modelkit.cli.options import (
    HELP,
    examples,
    json_option,
    models_options,
    output_option,
    stack,
    targets_options,
    timeout_option,
    trust_option,
)
from winml.modelkit.cli.spellings import earlier


@click.group(
    "matrix",
    help="Build many models for many targets: stages that cells share run once, finished cells are published, and an "
    "interrupted run can be resumed.",
    epilog=examples(
        "winml matrix plan --sample",
        "winml matrix run --sample -o out",
        "winml matrix run --models list.txt --priority P0 --feed folder:artifacts --run-stamp 20260609 -o out",
        "winml matrix run --models list.txt --feed folder:artifacts --run-stamp 20260609 --resume -o other",
        "winml matrix status out",
    ),
    cls=Group,
    context_settings=HELP,
)
def command() -> None:
    pass


plan_options = stack(
    click.option(
        "--models",
        "model_list",
        metavar="FILE",
        help="A list: MODEL [task=T] [priority=P0] [name=N] [calibration=FILE].",
    ),
    models_options("A model; may be repeated."),
    click.option("--task", metavar="TASK", help="The task of the models given with -m."),
    click.option("--priority", metavar="PRIORITY", help="Only models of this priority."),
    targets_options("Target; may be repeated (default: the eight of the matrix)."),
    click.option("--run-stamp", metavar="STAMP", help="Name of the run in versions (default: the date in UTC)."),
    click.option("--package-name", metavar="NAME", help="One package for all (default: one per model and task)."),
    click.option("--compile/--no-compile", "compiled", default=False, help="Compile where the provider can."),
    calibration_options,
    click.option("--no-analyze", is_flag=True, help="Do not query targets for operator support."),
    trust_option,
    timeout_option("Time limit per cell in seconds.", default=3600.0),
)


@command.command(
    "plan",
    help="Show the cells: targets, precisions, folders and versions. Nothing is read or built.",
    epilog=examples(
        "winml matrix plan --sample", "winml matrix plan --models list.txt --target qnn/npu --target cpu --json"
    ),
    context_settings=HELP,
)
@plan_options
@json_option
def plan(as_json: bool, **given: Any) -> None:
    from winml.modelkit.build_matrix import command as matrix
    from winml.modelkit.cli.matrix_request import plan_request
    from winml.modelkit.render.matrix import plan_text

    result = matrix.plan(plan_request(given))
    console.show_result(plan_text, result, as_json=as_json)
    _say_notes(result.notes)


@command.command(
    "run",
    help="Build every cell and publish it. Without targets: qnn_npu, qnn_gpu, ov_cpu, ov_npu, ov_gpu, mlas_cpu, "
    "dml_gpu and vitisai_npu, each in a subfolder of the model's; a single target goes into the model's folder itself. "
    "No provider needs to be installed. Local files are deleted once the feed is verified to have them.",
    epilog=examples(
        "winml matrix run --sample -o out",
        "winml matrix run -m a.onnx -m b.onnx --target cpu --jobs 2 -o out",
        "winml matrix run --models list.txt --feed oci://registry.example.com/models --max-disk 50G -o out",
        "winml matrix run --models list.txt --feed folder:artifacts --run-stamp 20260609 --resume -o out",
        "winml matrix run --models list.txt --cluster dask://10.0.0.5:8786 --tls-ca ca.pem --tls-cert me.pem "
        "--tls-key me.key --feed oci://10.0.0.5:5000/models -o out",
    ),
    context_settings=HELP,
)
@plan_options
@output_option("DIR", "Folder of the run.", required=True)
@click.option("--feed", metavar="FEED", envvar="WINML_FEED", help="Publish to this feed; a plain path is a folder.")
@click.option("--resume", is_flag=True, help="Continue the run of this stamp, also in a new folder.")
@earlier("--continue", is_flag=True, to="resume", now="--resume")
@click.option("--trust-journal", is_flag=True, help="Resume from the journal alone, without querying the feed.")
@click.option("--keep-local", is_flag=True, help="Keep the files of cells that were published.")
@click.option("--upload-skip-existing", is_flag=True, help="Do not fail when a version exists with different content.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Parallel builds.")
@click.option("--max-disk", metavar="SIZE", help="Maximum disk use of the store and the folder, for example 50G.")
@cluster_options
@json_option
def run(as_json: bool, **given: Any) -> None:
    from winml.modelkit.build_matrix import command as matrix
    from winml.modelkit.cli.matrix_request import run_request
    from winml.modelkit.cli.progress import MatrixProgress
    from winml.modelkit.core.errors import ModelkitError
    from winml.modelkit.render.matrix import cells_text

    with MatrixProgress() as progress:
        try:
            result = matrix.run(run_request(given), progress.on_event)
        except ModelkitError as error:
            if not as_json and isinstance(error.result, matrix.RunResult):
                console.show(cells_text, error.result)
            raise
    console.show_result(cells_text, result, as_json=as_json)
    _say_notes(result.notes)
    if not as_json:
        console.say("wrote", given["output"])
        console.say("next", f"winml matrix status {console.quote(given['output'])}")
        console.say_report(given["output"])


@command.command(
    "status",
    help="Show how far a run is: every cell, the time left, the disk in use.",
    epilog=examples("winml matrix status out"),
    context_settings=HELP,
)
@click.argument("folder", metavar="DIR")
@earlier("-o", "--output", to="folder", now="winml matrix status DIR")
@json_option
def status(folder: str, as_json: bool) -> None:
    from winml.modelkit.build_matrix.command import read_status
    from winml.modelkit.render.matrix import cells_text

    result = read_status(folder)
    console.show_result(cells_text, result, as_json=as_json)
    _say_notes(result.notes)


def _say_notes(notes: Iterable[str]) -> None:
    for note in notes:
        console.say("note", note)

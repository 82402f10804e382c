"""`winml support`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.help import Group
from winml.modelkit.cli.options import (
    HELP,
    examples,
    json_option,
    knowledge_option,
    model_options,
    models_options,
    output_option,
    resolve_model,
    resolve_models,
    sample_option,
    seed_option,
    size_options,
    target_list_options,
    targets_of,
    timeout_option,
)

if TYPE_CHECKING:
    from winml.modelkit.core.events import Event


@click.group(
    "support",
    help="Model support: probe a model, produce a contribution with its evidence, review one by running it again.",
    epilog=examples(
        "winml support probe -m model.onnx",
        "winml support produce -m model.onnx -p dynamic -o contribution",
        "winml support review contribution",
        "winml support knowledge list",
    ),
    cls=Group,
    context_settings=HELP,
)
def command() -> None:
    pass


def _show_progress(event: Event) -> None:
    """Print a line per command that is run."""
    from winml.modelkit.support.commands import CommandStarted

    if isinstance(event, CommandStarted):
        console.say("note", f"{event.what} ...")


_timeout_option = timeout_option("Time limit per command in seconds.")


@command.command(
    "probe",
    help="Check what a model needs to be supported: whether the exporter knows it, the default builds and runs, "
    "and which known obstacles apply.",
    epilog=examples("winml support probe -m model.onnx", "winml support probe -m ./my-bart --target cpu --json"),
    context_settings=HELP,
)
@model_options
@target_list_options("Target to build for and run on (default: every device ready on this machine, the CPU first).")
@_timeout_option
@json_option
def probe(model: str | None, sample: bool, timeout: float | None, as_json: bool, **given: Any) -> None:
    from winml.modelkit.render.support import probe_text
    from winml.modelkit.support.probe import ProbeRequest
    from winml.modelkit.support.probe import probe as run_probe

    result = run_probe(ProbeRequest(resolve_model(model, sample), targets_of(given), timeout), _show_progress)
    console.show_result(probe_text, result, as_json=as_json)
    if not as_json and result.answer == "recipe":
        console.say("next", f"winml support produce -m {console.quote(result.model.reference)} -o DIR")


@command.command(
    "produce",
    help="Build, run, compare and evaluate a model up to the goal, without prompting, and write a contribution: "
    "recipe, evidence of every command, report. Several models give a folder each and a table. Nothing is published.",
    epilog=examples(
        "winml support produce -m ./my-bart -o contribution",
        "winml support produce -m model.onnx -p dynamic --goal L2 -o contribution",
        "winml support produce -m ./a -m ./b -m ./c -o contributions",
    ),
    context_settings=HELP,
)
@models_options("The model; may be repeated.")
@target_list_options("Target to build for and run on (default cpu); the first decides, the others are tried too.")
@click.option(
    "--goal",
    type=click.Choice(["L0", "L1", "L2", "L3"]),
    default="L2",
    show_default=True,
    help="Last level: L0 builds, L1 is measured, L2 agrees with the original, L3 meets its metric.",
)
@click.option(
    "--recipe",
    metavar="FILE|NAME",
    help="Recipe file, or name of a shipped recipe (default: what the probe finds).",
)
@click.option(
    "-p", "--precision", metavar="PRECISION", help="Make a recipe with this precision, such as fp16 or dynamic."
)
@click.option("--level", metavar="LEVEL", help="Make a recipe with this optimization level.")
@click.option("--data", metavar="DATA", help="Labelled data for L3: a file.")
@click.option("--task", metavar="TASK", help="Task of the data.")
@click.option("--min-metric", type=click.FloatRange(-1, 1), metavar="X", help="Lowest metric for a PASS of L3.")
@output_option("DIR", "A new folder.", required=True)
@knowledge_option
@_timeout_option
@json_option
def produce(
    models: tuple[str, ...], sample: bool, precision: str | None, level: str | None, as_json: bool, **given: Any
) -> None:
    from winml.modelkit.core.recipe import BuildPart
    from winml.modelkit.render.support import batch_text, produce_text
    from winml.modelkit.support.batch import BatchResult, produce_all
    from winml.modelkit.support.produce import ProduceRequest

    models = resolve_models(models, sample)
    if not models:
        raise click.UsageError("name a model with `-m MODEL`, or use `--sample`")
    given["targets"] = targets_of(given) or ("cpu",)
    del given["target_list"]
    given["timeout_s"] = given.pop("timeout")
    request = ProduceRequest(model=models[0], build=BuildPart(precision=precision, level=level), **given)
    result = produce_all(request, models, _show_progress)
    if isinstance(result, BatchResult):
        console.show_result(batch_text, result, as_json=as_json)
    else:
        console.show_result(produce_text, result, as_json=as_json)
    if not as_json:
        console.say("wrote", request.output)
        console.say("next", f"winml support review {console.quote(request.output)}")
        if not isinstance(result, BatchResult):
            console.say_report(request.output)


@command.command(
    "review",
    help="Check a contribution for consistency and run its commands again in an empty folder: APPROVE (exit 0), "
    "REQUEST_CHANGES or REJECT (exit 5), not a contribution (exit 2). Commands are run again in a sandbox: bubblewrap, "
    "or namespaces of the Linux kernel; without one nothing is run again (exit 3).",
    epilog=examples("winml support review contribution", "winml support review contribution -m ./my-bart --json"),
    context_settings=HELP,
)
@click.argument("folder")
@click.option("-m", "--model", metavar="MODEL", help="Where the model is (default: from the contribution).")
@sample_option
@click.option("--repo", metavar="DIR", help="The repository that it changes (default: the one that contains it).")
@click.option("--base", metavar="REF", help="Base of the change (default: `origin/main`, or `main`).")
@click.option(
    "--unsandboxed",
    is_flag=True,
    help="Run the commands of the contribution without a sandbox, with your permissions.",
)
@knowledge_option
@_timeout_option
@json_option
def review(folder: str, model: str | None, sample: bool, timeout: float | None, as_json: bool, **given: Any) -> None:
    from winml.modelkit.core.errors import ModelkitError
    from winml.modelkit.render.support import rejection_text, review_text
    from winml.modelkit.support.review.command import NoContribution, ReviewRequest, ReviewResult
    from winml.modelkit.support.review.command import review as run_review

    if given["unsandboxed"]:
        console.say("warning", "commands are run again without a sandbox, with your permissions (`--unsandboxed`)")
    try:
        model = None if model is None and not sample else resolve_model(model, sample)
        result = run_review(ReviewRequest(folder, model=model, timeout_s=timeout, **given), _show_progress)
    except ModelkitError as error:
        if not as_json and isinstance(error.result, ReviewResult):
            console.show(review_text, error.result)
        if not as_json and isinstance(error.result, NoContribution):
            console.show(rejection_text, error.result)
        raise
    console.show_result(review_text, result, as_json=as_json)


@command.command(
    "inputs",
    help="Make inputs for a model: one set for `winml perf --input-data`, or rows for `winml eval --data`.",
    epilog=examples("winml support inputs -m model.onnx -o inputs.npz"),
    context_settings=HELP,
)
@model_options
@click.option("--samples", type=click.IntRange(min=1), metavar="N", help="Rows of N samples instead of one set.")
@size_options
@click.option(
    "--int-range",
    "int_ranges",
    multiple=True,
    metavar="[INPUT=]LOW:HIGH",
    help="Values of integer inputs, both ends included (default 0:1).",
)
@seed_option("Seed of the values.")
@output_option("FILE.npz", "The file.", required=True)
@json_option
def inputs(model: str | None, sample: bool, int_ranges: tuple[str, ...], as_json: bool, **given: Any) -> None:
    from winml.modelkit.cli import option_values
    from winml.modelkit.cli.next_command import model_option
    from winml.modelkit.render.support import inputs_text
    from winml.modelkit.support.inputs import InputsRequest, make_inputs

    request = InputsRequest(
        model=resolve_model(model, sample),
        output=given["output"],
        samples=given["samples"],
        dims=option_values.sizes(given),
        int_ranges=option_values.int_ranges(int_ranges),
        seed=given["seed"],
    )
    console.show_result(inputs_text, make_inputs(request), as_json=as_json)
    if not as_json:
        console.say("wrote", request.output)
        named, file = model_option(request.model, sample=sample), console.quote(request.output)
        reads = f"perf {named} --input-data {file}" if request.samples is None else f"eval {named} --data {file}"
        console.say("next", f"winml {reads}")


@command.group(
    "knowledge",
    help="Findings about supporting models, one claim each.",
    epilog=examples("winml support knowledge list", "winml support knowledge show bart-001"),
    context_settings=HELP,
)
def knowledge() -> None:
    pass


@knowledge.command(
    "list",
    help="List findings about model families and methodology.",
    epilog=examples("winml support knowledge list", "winml support knowledge list --family bart --json"),
    context_settings=HELP,
)
@click.option("--family", metavar="FAMILY", help="Only this family, or `methodology`.")
@click.option("--status", metavar="STATUS", help="Only reported, observed or refuted ones.")
@knowledge_option
@json_option
def listing(family: str | None, status: str | None, knowledge: str | None, as_json: bool) -> None:
    from winml.modelkit.findings.model_knowledge import list_knowledge
    from winml.modelkit.render.support import knowledge_list_text

    console.show_result(knowledge_list_text, list_knowledge(knowledge, family=family, status=status), as_json=as_json)


@knowledge.command(
    "show",
    help="Show a finding.",
    epilog=examples("winml support knowledge show bart-001"),
    context_settings=HELP,
)
@click.argument("finding")
@knowledge_option
@json_option
def show(finding: str, knowledge: str | None, as_json: bool) -> None:
    from winml.modelkit.findings.model_knowledge import show_finding
    from winml.modelkit.render.support import finding_text

    console.show_result(finding_text, show_finding(knowledge, finding), as_json=as_json)


@knowledge.command(
    "add",
    help="Add the finding in FILE to your own; existing findings are never changed.",
    epilog=examples("winml support knowledge add finding.json"),
    context_settings=HELP,
)
@click.argument("file")
@knowledge_option
@json_option
def add(file: str, knowledge: str | None, as_json: bool) -> None:
    from winml.modelkit.findings.model_knowledge import add_finding
    from winml.modelkit.render.support import addition_text

    result = add_finding(knowledge, file)
    console.show_result(addition_text, result, as_json=as_json)
    if not as_json:
        console.say("wrote", result.file)


@knowledge.command(
    "check",
    help="Check all findings strictly; exit 5 when a name refers to nothing.",
    epilog=examples("winml support knowledge check", "winml support knowledge check --knowledge my-findings"),
    context_settings=HELP,
)
@knowledge_option
@json_option
def check(knowledge: str | None, as_json: bool) -> None:
    from winml.modelkit.findings.model_knowledge import check_knowledge
    from winml.modelkit.render.support import knowledge_check_text

    console.show_result(knowledge_check_text, check_knowledge(knowledge), as_json=as_json)

"""`winml compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.help import Command
from winml.modelkit.cli.options import (
    HELP,
    ep_options_option,
    examples,
    input_options,
    json_option,
    output_options,
    priority_option,
    rebuild_option,
    refuse_options,
    resolve_model,
    sample_option,
    targets_of,
    targets_options,
    threads_option,
    timeout_option,
    trust_of,
    trust_option,
)
from winml.modelkit.cli.spellings import earlier, take_one

if TYPE_CHECKING:
    from winml.modelkit.measuring.compare_result import CompareResult, PartialCompare


@click.command(
    "compare",
    help="Test whether each CANDIDATE is faster than BASE and by how much, at a known error rate: both are measured "
    "interleaved in fresh processes until the answer is clear. An arm is a model file, a build folder, a folder that "
    "generates text or a config.",
    epilog=examples(
        "winml compare fp32.onnx int8.onnx",
        "winml compare old/ new/ --fail-if-slower 3",
        "winml compare fp32.json int8.json",
        "winml compare model.onnx --target cpu --target openvino/cpu",
        "winml compare base.onnx a.onnx b.onnx c.onnx --json -o compare.json",
        "winml compare llama-fp16 llama-int4 --metric first-token --prompt-tokens 256",
        "winml compare llama-int4 --runtime genai --runtime onnxruntime",
        "winml compare --from compare.json",
    ),
    cls=Command,
    context_settings=HELP,
)
@click.argument("arms", nargs=-1, metavar="[BASE] [CANDIDATE]...")
@click.option(
    "-m", "--model", metavar="MODEL", multiple=True, callback=take_one, help="The base, as the first argument."
)
@sample_option
@targets_options("Target; one model on several is compared with itself on the first.")
@click.option("--as-built", is_flag=True, help="Compare builds for different targets, each on its own.")
@click.option(
    "--fail-if-slower", type=click.FloatRange(min=0), metavar="PCT", help="Exit 5 when slower by more than PCT percent."
)
@click.option("--allow-different", is_flag=True, help="Measure even if outputs differ from the base's.")
@click.option(
    "--min-agreement",
    type=click.FloatRange(-1, 1),
    default=0.95,
    show_default=True,
    metavar="X",
    help="Least cosine for equal outputs.",
)
@earlier("--min-cosine", type=click.FloatRange(-1, 1), to="min_agreement", now="--min-agreement")
@click.option("--by-position", is_flag=True, help="Match inputs and outputs by position instead of by name.")
@click.option("--force", is_flag=True, help="Also measure candidates that are identical (A/A self-test) or far slower.")
@click.option(
    "--max-seconds",
    type=click.FloatRange(min=1),
    default=60.0,
    show_default=True,
    metavar="S",
    help="Seconds per candidate.",
)
@timeout_option("Time limit per round in seconds.", default=120.0)
@threads_option
@ep_options_option
@trust_option
@input_options
@click.option(
    "--metric",
    type=click.Choice(["first-token", "tokens-per-second", "memory"], case_sensitive=False),
    help="What of folders that generate text decides (default tokens-per-second).",
)
@click.option("--prompt-tokens", type=click.IntRange(min=1), metavar="N", help="Length of the prompt (default 32).")
@click.option("--new-tokens", type=click.IntRange(min=1), metavar="N", help="Tokens after the prompt (default 64).")
@click.option(
    "--runtime",
    "runtimes",
    multiple=True,
    type=click.Choice(["genai", "onnxruntime"], case_sensitive=False),
    help="Program that generates; one folder on both is compared with itself on the first.",
)
@click.option("--no-calibration", is_flag=True, help="Do not use A/A rounds; needs more rounds per candidate.")
@rebuild_option("Measure the A/A rounds again instead of using the stored ones.", "--recalibrate")
@click.option("--no-confirm", is_flag=True, help="Do not measure the winner among several again on fresh rounds.")
@priority_option
@click.option("--from", "from_file", metavar="FILE", help="Judge a stored comparison again, without measuring.")
@output_options
@json_option
@click.pass_context
def command(
    context: click.Context, /, arms: tuple[str, ...], model: str | None, sample: bool, as_json: bool, **given: Any
) -> None:
    from winml.modelkit.cli.compare_progress import CompareProgress
    from winml.modelkit.cli.next_command import after_compare
    from winml.modelkit.cli.results import ResultFile
    from winml.modelkit.measuring.compare import compare
    from winml.modelkit.measuring.rejudge import rejudge

    result_file = ResultFile(given["output"], overwrite=given["overwrite"], as_json=as_json)
    models: tuple[str, ...] = ()
    if given["from_file"] is not None:
        if arms:
            raise click.UsageError("`--from` cannot be combined with models: it judges a stored comparison again")
        refuse_options(context, "--from", besides=("from_file", "fail_if_slower", "output", "overwrite", "as_json"))
        with result_file.keeping("compare", _show):
            result = rejudge(Path(given["from_file"]), fail_if_slower_pct=given["fail_if_slower"])
    else:
        base = () if model is None and not sample else (resolve_model(model, sample),)
        if not base and not arms:
            raise click.UsageError("name a base and a candidate, or one model and several times `--target`")
        with result_file.keeping("compare", _show), CompareProgress() as progress:
            models = (*base, *arms)
            result = compare(_request(models, given), progress.on_event)
    result_file.write(result)
    if as_json:
        console.data_json(result)
    else:
        _show(result)
        result_file.say_wrote()
        hint, following = after_compare(result, models, given)
        if hint is not None:
            console.say("hint", hint)
        if following is not None:
            console.say("next", following)
        result_file.say_report()


def _show(result: CompareResult | PartialCompare) -> None:
    from winml.modelkit.measuring.compare_result import PartialCompare
    from winml.modelkit.render.compare import compare_text

    whole = result.result if isinstance(result, PartialCompare) else result
    console.show(compare_text, whole)
    for warning in whole.warnings:
        console.say("note", warning)


def _request(models: tuple[str, ...], given: dict[str, Any]) -> Any:
    from winml.modelkit.cli.option_values import input_settings
    from winml.modelkit.ep.options import parse_pairs
    from winml.modelkit.measuring.compare_arms import CompareGeneration, CompareRequest

    return CompareRequest(
        models=models,
        targets=targets_of(given) or (None,),
        as_built=given["as_built"],
        ep=given["ep"],
        device=given["device"],
        threads=given["threads"],
        ep_options=parse_pairs(given["ep_options"]),
        trust=trust_of(given),
        inputs=input_settings(given),
        force=given["force"],
        allow_different=given["allow_different"],
        min_cosine=given["min_agreement"],
        by_position=given["by_position"],
        calibrate=not given["no_calibration"],
        recalibrate=given["rebuild"],
        raise_priority=not given["normal_priority"],
        confirm=not given["no_confirm"],
        max_seconds=given["max_seconds"],
        timeout_s=given["timeout"],
        seed=given["seed"],
        fail_if_slower_pct=given["fail_if_slower"],
        generation=CompareGeneration(
            metric=None if given["metric"] is None else given["metric"].lower(),
            prompt_tokens=given["prompt_tokens"],
            new_tokens=given["new_tokens"],
            runtimes=tuple(word.lower() for word in given["runtimes"]) or (None,),
        ),
    )

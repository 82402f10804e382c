"""`winml compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.options import (
    HELP,
    examples,
    input_options,
    json_option,
    output_options,
    target_options,
    trust_of,
    trust_option,
)

if TYPE_CHECKING:
    from winml.modelkit.measuring.compare_result import CompareResult, PartialCompare


@click.command(
    "compare",
    help="Test whether each CANDIDATE is faster than BASE and by how much, at a known error rate: both are measured "
    "interleaved in fresh processes until the answer is clear. An arm is a model file, a build folder or a config.",
    epilog=examples(
        "winml compare fp32.onnx int8.onnx",
        "winml compare old/ new/ --fail-if-slower 3",
        "winml compare fp32.json int8.json",
        "winml compare model.onnx --targets cpu,openvino/cpu",
        "winml compare base.onnx a.onnx b.onnx c.onnx --json -o compare.json",
        "winml compare --from compare.json",
    ),
    context_settings=HELP,
)
@click.argument("base", required=False)
@click.argument("candidates", nargs=-1)
@click.option("--targets", metavar="T,T,...", help="Compare one model over several targets; the first is the base.")
@target_options
@click.option(
    "--fail-if-slower", type=click.FloatRange(min=0), metavar="PCT", help="Exit 5 when slower by more than PCT percent."
)
@click.option("--allow-different", is_flag=True, help="Measure even if outputs differ from the base's.")
@click.option(
    "--min-cosine",
    type=click.FloatRange(-1, 1),
    default=0.95,
    show_default=True,
    help="Least cosine for equal outputs.",
)
@click.option("--by-position", is_flag=True, help="Match inputs and outputs by position instead of by name.")
@click.option("--force", is_flag=True, help="Also measure candidates that are identical (A/A self-test) or far slower.")
@click.option(
    "--max-seconds", type=click.FloatRange(min=1), default=60.0, show_default=True, help="Seconds per candidate."
)
@click.option("--timeout", type=click.FloatRange(min=1), default=120.0, show_default=True, help="Seconds per round.")
@click.option(
    "--threads", type=click.IntRange(min=1), help="Threads inside an operator (default: the runtime's choice)."
)
@click.option(
    "--ep-options", multiple=True, metavar="K=V", help="Option of the execution provider; unknown ones are errors."
)
@trust_option
@input_options
@click.option("--no-calibration", is_flag=True, help="Do not use A/A rounds; needs more rounds per candidate.")
@click.option("--recalibrate", is_flag=True, help="Measure the A/A rounds again.")
@click.option("--no-confirm", is_flag=True, help="Do not measure the winner among several again on fresh rounds.")
@click.option("--no-priority", is_flag=True, help="Do not raise the process priority while measuring.")
@click.option("--from", "from_file", metavar="FILE", help="Judge a stored comparison again, without measuring.")
@output_options
@json_option
def command(base: str | None, candidates: tuple[str, ...], as_json: bool, **given: Any) -> None:
    from winml.modelkit.cli.compare_progress import CompareProgress
    from winml.modelkit.cli.next_command import after_compare
    from winml.modelkit.cli.results import ResultFile
    from winml.modelkit.measuring.compare import compare
    from winml.modelkit.measuring.rejudge import rejudge

    result_file = ResultFile(given["output"], overwrite=given["overwrite"], as_json=as_json)
    if given["from_file"] is not None:
        if base is not None:
            raise click.UsageError("`--from` cannot be combined with models")
        with result_file.keeping("compare", _show):
            result = rejudge(Path(given["from_file"]), fail_if_slower_pct=given["fail_if_slower"])
    else:
        if base is None:
            raise click.UsageError("name a base and a candidate, or one model with `--targets`")
        with result_file.keeping("compare", _show), CompareProgress() as progress:
            result = compare(_request((base, *candidates), given), progress.on_event)
    result_file.write(result)
    if as_json:
        console.data_json(result)
    else:
        _show(result)
        result_file.say_wrote()
        models = () if base is None else (base, *candidates)
        hint, following = after_compare(result, models, given)
        if hint is not None:
            console.say("hint", hint)
        if following is not None:
            console.say("next", following)


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
    from winml.modelkit.measuring.compare_arms import CompareRequest

    several = given["targets"]
    if several is not None and given["target"] is not None:
        raise click.UsageError("`--targets` cannot be combined with `--target`")
    words = [t.strip() for t in several.split(",") if t.strip()] if several else [given["target"]]
    if len(set(words)) != len(words):
        raise click.UsageError("`--targets` has a target twice")
    return CompareRequest(
        models=models,
        targets=tuple(words),
        ep=given["ep"],
        device=given["device"],
        threads=given["threads"],
        ep_options=parse_pairs(given["ep_options"]),
        trust=trust_of(given),
        inputs=input_settings(given),
        force=given["force"],
        allow_different=given["allow_different"],
        min_cosine=given["min_cosine"],
        by_position=given["by_position"],
        calibrate=not given["no_calibration"],
        recalibrate=given["recalibrate"],
        raise_priority=not given["no_priority"],
        confirm=not given["no_confirm"],
        max_seconds=given["max_seconds"],
        timeout_s=given["timeout"],
        seed=given["seed"],
        fail_if_slower_pct=given["fail_if_slower"],
    )

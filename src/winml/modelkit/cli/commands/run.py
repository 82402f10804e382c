"""`winml run`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.help import Command
from winml.modelkit.cli.options import (
    HELP,
    answer_options,
    ep_options_option,
    examples,
    json_option,
    max_sample_option,
    model_options,
    output_options,
    resolve_model,
    size_options,
    target_options,
    threads_option,
    timeout_option,
    trust_of,
    trust_option,
)

if TYPE_CHECKING:
    from winml.modelkit.serving.prediction import PredictionResult


@click.command(
    "run",
    help="Run a model once on its target, without fallback, and say what it answers: labels with scores, text, boxes, "
    "a vector. Images, texts and recordings are prepared by the model's own processor; a folder that generates text "
    "takes a prompt, and its answer is shown while it is made.",
    epilog=examples(
        "winml run --sample",
        "winml run -m resnet/ --image cat.jpg",
        "winml run -m bert/ --text excellent --target qnn/npu --strict-ep",
        "winml run -m wav2vec2/ --audio speech.wav --json",
        "winml run -m clip/ --image cat.jpg --labels cat,dog",
        "winml run -m model.onnx --input-data inputs.npz",
        "winml run -m llama-int4/ --prompt Hello --task-option chat=true --new-tokens 100",
    ),
    cls=Command,
    context_settings=HELP,
)
@model_options
@click.option("--image", metavar="FILE", help="Image to answer: BMP, GIF, JPEG, PNG, TIFF or WebP.")
@click.option("--text", metavar="TEXT", help="Text to answer.")
@click.option("--text-pair", metavar="TEXT", help="Second text: the context of a question, or what to compare with.")
@click.option("--audio", metavar="FILE", help="Recording to answer: .wav with PCM.")
@click.option("--input-data", metavar="FILE.npz", help="Inputs by name, instead of synthetic ones.")
@click.option("--prompt", metavar="TEXT", help="Prompt of a folder that generates text.")
@click.option("--labels", metavar="NAME,...", help="Classes to choose from, of a zero-shot model.")
@answer_options
@target_options
@size_options
@max_sample_option
@threads_option
@ep_options_option
@trust_option
@click.option("--strict-ep", is_flag=True, help="Fail (exit 5) when a node runs on the CPU instead of the target.")
@timeout_option("Time limit in seconds (default: none).")
@output_options
@json_option
def command(model: str | None, sample: bool, output: str | None, overwrite: bool, as_json: bool, **given: Any) -> None:
    from winml.modelkit.cli.next_command import model_option
    from winml.modelkit.cli.progress import AnswerProgress
    from winml.modelkit.cli.results import ResultFile
    from winml.modelkit.render.run import run_text
    from winml.modelkit.serving.run_command import run, with_sample

    result_file = ResultFile(output, overwrite=overwrite, as_json=as_json)
    with result_file.keeping("run"), AnswerProgress(streams=not as_json) as progress, with_sample(sample) as arrays:
        request = _request(resolve_model(model, sample), arrays, given)
        result = run(request, progress.on_event)
    result_file.write(result)
    if as_json:
        console.data_json(result)
        return
    if progress.streamed:
        console.end_pieces()
    console.show(run_text, result, streamed=progress.streamed)
    _say(result)
    result_file.say_wrote()
    console.say("next", f"winml perf {model_option(request.model.model, sample=sample)} --target {result.target}")


def _say(result: PredictionResult) -> None:
    for note in result.notes:
        console.say("note", note)
    for warning in result.warnings:
        console.say("warning", warning)


def _request(model: str, arrays: str | None, given: dict[str, Any]) -> Any:
    from winml.modelkit.cli.options import model_request
    from winml.modelkit.serving.prediction import Given
    from winml.modelkit.serving.run_command import RunRequest

    names = ("image", "audio", "text", "text_pair", "prompt")
    fields = {name: given[name] for name in names}
    # The sample answers the first of its test images where nothing else is given.
    nothing = given["input_data"] is None and not any(value is not None for value in fields.values())
    labels = tuple(word.strip() for word in (given["labels"] or "").split(",") if word.strip())
    return RunRequest(
        model=model_request(model, given, trust_of(given), task="image-classification" if arrays else None),
        given=Given(**fields, arrays=arrays if nothing else given["input_data"], labels=labels),
        timeout_s=given["timeout"],
        source="test.npz, image 0" if arrays and nothing else None,
    )

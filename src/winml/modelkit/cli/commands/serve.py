"""`winml serve`."""

from __future__ import annotations

from typing import Any

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.help import Command
from winml.modelkit.cli.options import (
    HELP,
    answer_options,
    ep_options_option,
    examples,
    json_option,
    model_options,
    resolve_model,
    size_options,
    target_options,
    threads_option,
    timeout_option,
    trust_of,
    trust_option,
)

_AT_LEAST_1 = click.IntRange(min=1)


@click.command(
    "serve",
    help="Answer requests with a model over HTTP on this machine, until Ctrl-C: POST /predict takes arrays, images, "
    "texts and recordings; a folder that generates text answers /v1/chat/completions and /v1/completions as OpenAI's "
    "clients ask them, also as a stream. GET /health, /metadata and /metrics tell about it. It listens on 127.0.0.1 "
    "only and needs its token.",
    epilog=examples(
        "winml serve --sample",
        "winml serve -m resnet/ --target qnn/npu --port 9000",
        "winml serve -m llama-int4/ --timeout 300 --queue 8",
    ),
    cls=Command,
    context_settings=HELP,
)
@model_options
@click.option(
    "--port",
    type=click.IntRange(min=0, max=65535),
    metavar="N",
    help="Port of 127.0.0.1 (default: 8650, or a free one where that is taken).",
)
@click.option("--no-token", is_flag=True, help="Answer every user and program of this machine.")
@click.option("--max-body", default="16M", show_default=True, metavar="SIZE", help="Maximum size of a request.")
@click.option(
    "--queue",
    type=click.IntRange(min=0),
    default=64,
    show_default=True,
    metavar="N",
    help="Requests that may wait; further ones are refused (429).",
)
@click.option(
    "--workers",
    type=_AT_LEAST_1,
    default=1,
    show_default=True,
    metavar="N",
    help="Processes with the model; each answers one request at a time.",
)
@timeout_option("Time limit of an answer in seconds, after which its process is started again.", 60.0)
@click.option(
    "--stop-timeout",
    type=click.FloatRange(min=0),
    default=10.0,
    show_default=True,
    metavar="S",
    help="Seconds for answers that were begun when the server is stopped.",
)
@answer_options
@target_options
@size_options
@threads_option
@ep_options_option
@trust_option
@click.option("--strict-ep", is_flag=True, help="Fail (exit 5) when a node runs on the CPU instead of the target.")
@json_option
def command(model: str | None, sample: bool, as_json: bool, **given: Any) -> None:
    from winml.modelkit.cli.option_values import size_bytes
    from winml.modelkit.cli.options import model_request
    from winml.modelkit.cli.progress import AnswerProgress
    from winml.modelkit.render.run import ready_text
    from winml.modelkit.serving.serve_command import ServeReady, ServeRequest, serve
    from winml.modelkit.serving.server import Limits

    task = "image-classification" if sample else None
    request = ServeRequest(
        model=model_request(resolve_model(model, sample), given, trust_of(given), task=task),
        port=given["port"],
        token=not given["no_token"],
        limits=Limits(
            body_bytes=size_bytes(given["max_body"]),
            running=given["workers"],
            queue=given["queue"],
            timeout_s=given["timeout"],
            grace_s=given["stop_timeout"],
        ),
    )
    progress = AnswerProgress(streams=False)

    def show(ready: ServeReady) -> None:
        progress.__exit__(None, None, None)
        for note in ready.notes:
            console.say("note", note)
        for warning in ready.warnings:
            console.say("warning", warning)
        console.say("note", f"{ready.model} on {ready.target}; press Ctrl-C to stop")
        console.show_result(ready_text, ready, as_json=as_json)

    with progress:
        serve(request, progress.on_event, show, lambda line: console.say("note", line))

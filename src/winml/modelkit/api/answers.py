"""Functions that use a model: run and serve."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from winml.modelkit.api.arguments import at_least, more_than_zero, one_of, options_of, sizes_of, text_of, trust_of
from winml.modelkit.api.call import Call, calling
from winml.modelkit.api.progress import EvaluateProgress
from winml.modelkit.core.events import OnEvent

if TYPE_CHECKING:
    from winml.modelkit.api.arguments import Arrays, Dims, EPOptions, ModelLike, PathLike, Shapes, Words
    from winml.modelkit.serving.prediction import PredictionResult
    from winml.modelkit.serving.run_command import ModelRequest
    from winml.modelkit.serving.serve_command import ServeReady

_RUNTIMES = ("genai", "onnxruntime")


def run(
    model: ModelLike,
    *,
    image: PathLike | None = None,
    text: str | None = None,
    text_pair: str | None = None,
    audio: PathLike | None = None,
    inputs: PathLike | Arrays | None = None,
    prompt: str | None = None,
    labels: Sequence[str] = (),
    task: str | None = None,
    target: str | None = None,
    processor: PathLike | None = None,
    length: int | None = None,
    output_name: str | None = None,
    top: int = 5,
    task_options: Mapping[str, str | float] | None = None,
    runtime: Literal["genai", "onnxruntime"] | None = None,
    new_tokens: int | None = None,
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    threads: int | None = None,
    ep_options: EPOptions | None = None,
    trust_options: Words = (),
    strict_ep: bool = False,
    timeout: float | None = None,
    on_event: OnEvent | None = None,
    progress: bool | None = None,
) -> PredictionResult:
    """Run a model once on its target, without fallback, and say what it answers.

    One of `image`, `text`, `audio`, `inputs` and `prompt` is given; the model's own processor prepares it. Text that is
    generated also comes piece by piece, as events `TextPiece`.
    """
    at_least(1, top=top, length=length, new_tokens=new_tokens, threads=threads)
    more_than_zero(timeout=timeout)
    one_of(_RUNTIMES, runtime=runtime)
    with calling(on_event, progress, EvaluateProgress) as call:
        from winml.modelkit.serving.prediction import Given
        from winml.modelkit.serving.run_command import RunRequest
        from winml.modelkit.serving.run_command import run as run_once

        arrays = None
        if inputs is not None:
            settings = call.inputs(inputs, dims=None, shapes=None, batch_size=None, int_ranges=None, seed=0)
            arrays = text_of(settings.npz)
        request = RunRequest(
            model=_model_request(
                call,
                model,
                task=task,
                target=target,
                processor=text_of(processor),
                length=length,
                output=output_name,
                top=top,
                task_options={name: str(value) for name, value in (task_options or {}).items()},
                runtime=runtime,
                new_tokens=new_tokens,
                dims=sizes_of(dims, shapes),
                threads=threads,
                ep_options=options_of(ep_options),
                trust=trust_of(trust_options),
                strict_ep=strict_ep,
            ),
            given=Given(
                image=text_of(image),
                audio=text_of(audio),
                arrays=arrays,
                text=text,
                text_pair=text_pair,
                prompt=prompt,
                labels=tuple(labels),
            ),
            timeout_s=timeout,
            source="arrays in memory" if isinstance(inputs, Mapping) else None,
        )
        return run_once(request, call.on_event)


def _model_request(call: Call, model: ModelLike, **given: Any) -> ModelRequest:
    from winml.modelkit.serving.run_command import ModelRequest

    return ModelRequest(model=call.model(model), **given)


@contextlib.contextmanager
def serve(
    model: ModelLike,
    *,
    port: int | None = None,
    token: bool = True,
    max_body: int = 16 * 2**20,
    queue: int = 64,
    workers: int = 1,
    timeout: float = 60.0,
    stop_timeout: float = 10.0,
    task: str | None = None,
    target: str | None = None,
    processor: PathLike | None = None,
    length: int | None = None,
    output_name: str | None = None,
    top: int = 5,
    task_options: Mapping[str, str | float] | None = None,
    runtime: Literal["genai", "onnxruntime"] | None = None,
    new_tokens: int | None = None,
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    threads: int | None = None,
    ep_options: EPOptions | None = None,
    trust_options: Words = (),
    strict_ep: bool = False,
) -> Iterator[ServeReady]:
    """Answer requests over HTTP on 127.0.0.1 while a `with` block runs; its end finishes what was begun.

    What the block gets has the `address` and the `token` that requests carry as `Authorization: Bearer`.
    """
    at_least(1, top=top, length=length, new_tokens=new_tokens, threads=threads, workers=workers, max_body=max_body)
    at_least(0, queue=queue, stop_timeout=stop_timeout, port=port)
    more_than_zero(timeout=timeout)
    one_of(_RUNTIMES, runtime=runtime)
    with calling() as call:
        from winml.modelkit.serving.serve_command import RunningServer, ServeRequest
        from winml.modelkit.serving.server import Limits

        request = ServeRequest(
            model=_model_request(
                call,
                model,
                task=task,
                target=target,
                processor=text_of(processor),
                length=length,
                output=output_name,
                top=top,
                task_options={name: str(value) for name, value in (task_options or {}).items()},
                runtime=runtime,
                new_tokens=new_tokens,
                dims=sizes_of(dims, shapes),
                threads=threads,
                ep_options=options_of(ep_options),
                trust=trust_of(trust_options),
                strict_ep=strict_ep,
            ),
            port=port,
            token=token,
            limits=Limits(body_bytes=max_body, running=workers, queue=queue, timeout_s=timeout, grace_s=stop_timeout),
        )
        server = RunningServer(request, call.on_event, lambda line: None)
        thread = threading.Thread(target=server.run, name="winml-serve", daemon=True)
        thread.start()
        try:
            yield server.ready
        finally:
            server.stop()
            thread.join()

"""`winml run`: one prediction on a target, in words."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from winml.modelkit.building.model_argument import ModelArgument
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.events import OnEvent, TargetChosen
from winml.modelkit.core.measurement import Arm
from winml.modelkit.core.suggest import near_path
from winml.modelkit.data import sizes
from winml.modelkit.ep import options
from winml.modelkit.ep import probing as targets
from winml.modelkit.ep.targets import Resolved
from winml.modelkit.ep.trust import NOTHING, Trust
from winml.modelkit.evaluation.evaluate import find_model, generates
from winml.modelkit.serving.prediction import (
    Given,
    OpenArguments,
    PredictionResult,
    RunAnswer,
    RunArguments,
    TextPiece,
)
from winml.modelkit.session.arm import arm_arguments
from winml.modelkit.worker.client import Worker
from winml.modelkit.worker.scratch import ScratchFolder

PRELOAD = ("winml.modelkit.serving.operations",)


@dataclass(frozen=True)
class ModelRequest:
    """A model to answer with, as the user named it."""

    model: str
    task: str | None = None
    target: str | None = None
    ep: str | None = None
    device: str | None = None
    processor: str | None = None
    length: int | None = None
    output: str | None = None
    task_options: dict[str, str] = field(default_factory=dict)
    top: int = 5
    runtime: str | None = None
    new_tokens: int | None = None
    dims: dict[str, int] = field(default_factory=dict)
    threads: int | None = None
    ep_options: dict[str, str] = field(default_factory=dict)
    strict_ep: bool = False
    trust: Trust = NOTHING

    @property
    def generates(self) -> bool:
        return generates(self.model)


@dataclass(frozen=True)
class RunRequest:
    """Everything the user decided."""

    model: ModelRequest
    given: Given
    timeout_s: float | None = None
    source: str | None = None
    """What the input is called in the result; None: its file or its text."""


@dataclass(frozen=True)
class ChosenModel:
    """A model on its target, with what a worker opens it with."""

    resolved: Resolved
    built_for: str | None
    opening: OpenArguments
    notes: tuple[str, ...]


def choose_model(request: ModelRequest, on_event: OnEvent, folder: Path) -> ChosenModel:
    """The model behind a request on its target; `folder` is for files that have to be made for it."""
    _check(request)
    model = find_model(request.model, on_event, request.trust.with_typed(request.ep_options))
    chosen = targets.choose(model.target, request.target, request.ep, request.device)
    resolved = chosen.resolved
    on_event(TargetChosen(resolved.target))
    return ChosenModel(resolved, model.target, _opening(request, model, resolved, folder), tuple(chosen.notes))


def _check(request: ModelRequest) -> None:
    if request.processor is not None and not Path(request.processor).is_dir():
        raise RequestError(f"folder not found: `{request.processor}`", hint=near_path(Path(request.processor)))
    if request.generates:
        return
    given = {"--runtime": request.runtime, "--new-tokens": request.new_tokens}
    named = next((option for option, value in given.items() if value is not None), None)
    if named is not None:
        raise RequestError(
            f"`{named}` is for folders that generate text, and `{request.model}` is none",
            hint="such a folder has genai_config.json or parts.json; `winml build -m MODEL -o DIR` makes it",
        )


def _opening(request: ModelRequest, model: ModelArgument, resolved: Resolved, folder: Path) -> OpenArguments:
    target = resolved.target
    threads = request.threads if request.threads is not None else model.section.threads
    given = {**model.section.ep_options, **request.ep_options}
    checked = options.check_options(target, options.with_threads(target, given, threads))
    # What generates is opened by its folder.
    path = model.path.parent if request.generates else sizes.openable(model.path, target, folder)
    arm = Arm(
        artifact=str(path.absolute()),
        target=target,
        session=replace(model.section, threads=threads, ep_options=checked),
    )
    beside = Path(request.processor) if request.processor is not None else model.path.parent
    return OpenArguments(
        arm=arm_arguments(arm, resolved.installed.package.distribution, strict_ep=request.strict_ep),
        folder=str(beside.absolute()),
        task=request.task,
        task_options=request.task_options,
        output=request.output,
        length=request.length,
        top=request.top,
        generates=request.generates,
        runtime=request.runtime,
        new_tokens=request.new_tokens,
        dims=request.dims,
    )


def check_given(given: Given, *, generates: bool) -> Given:
    """Raise for what is no one input; paths become such that a worker in another folder finds them."""
    asked = [name for name in ("image", "audio", "arrays", "text", "prompt") if getattr(given, name) is not None]
    if not asked:
        raise RequestError(
            "there is nothing to run the model on",
            hint="give a `--prompt TEXT`"
            if generates
            else "give `--image FILE`, `--text TEXT`, `--audio FILE` or `--input-data FILE.npz`",
        )
    if len(asked) > 1:
        raise RequestError(f"one input is taken but {len(asked)} are given: {', '.join(asked)}")
    if given.text_pair is not None and given.text is None:
        raise RequestError("`--text-pair` stands beside `--text`, which is not given")
    if given.prompt is not None and not generates:
        raise RequestError(
            "`--prompt` is for folders that generate text", hint="`--text` gives a text to any other model"
        )
    if generates and given.arrays is not None:
        raise RequestError("a model that generates text takes no arrays", hint="give it a `--prompt TEXT`")
    for name in ("image", "audio", "arrays"):
        file = getattr(given, name)
        if file is not None:
            if not Path(file).is_file():
                raise RequestError(f"file not found: `{file}`", hint=near_path(Path(file)))
            changed: dict[str, Any] = {name: str(Path(file).absolute())}
            given = replace(given, **changed)
    return given


@contextlib.contextmanager
def with_sample(sample: bool) -> Iterator[str | None]:
    """The first test image of the sample as a file; None for another model."""
    if not sample:
        yield None
        return
    from winml.modelkit import sample as sample_files
    from winml.modelkit.graph import npz

    with ScratchFolder("winml-run-") as folder, npz.open_archive(sample_files.TEST) as archive:
        image = npz.read_array(archive, npz.headers(archive)["image"])
        npz.write_arrays(folder / "image_0.npz", {"image": image[:1]})
        yield str(folder / "image_0.npz")


def run(request: RunRequest, on_event: OnEvent) -> PredictionResult:
    """The answer of a model to one input on its target, without fallback to another one."""
    given = check_given(request.given, generates=request.model.generates)
    with ScratchFolder("winml-run-") as folder:
        chosen = choose_model(request.model, on_event, folder)
        resolved = chosen.resolved
        with Worker(preload=PRELOAD, python=resolved.installed.python) as worker:
            found = worker.ask(
                RunAnswer,
                "serving.run",
                RunArguments(opening=chosen.opening, given=given),
                timeout_s=request.timeout_s,
                events=TextPiece,
                on_event=on_event,
                what=f"running `{Path(request.model.model).name}` on {resolved.target}",
            )
    opened, prediction = found.opened, found.prediction
    return PredictionResult(
        model=request.model.model,
        target=str(resolved.target),
        simulated=resolved.target.simulated,
        built_for=chosen.built_for,
        task=opened.task,
        input=given.kind,
        source=request.source or request.given.source,
        answer=prediction.answer,
        outputs=prediction.outputs,
        placement=opened.placement,
        provider_options=opened.provider_options,
        environment=opened.environment,
        runtime=opened.runtime,
        notes=(*opened.notes, *prediction.notes),
        warnings=(*chosen.notes, *opened.warnings),
    )

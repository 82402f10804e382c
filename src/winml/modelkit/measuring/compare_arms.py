"""The arms of a comparison: models on targets, with a size for every dimension."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from winml.modelkit.building.model_argument import ModelArgument, model_argument
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import ModelFileError, RequestError, UnavailableError
from winml.modelkit.core.events import OnEvent
from winml.modelkit.core.generation import GENAI_CONFIG, is_decoder_folder, read_decoder_folder
from winml.modelkit.core.measurement import Arm, CompareProtocol, GenerationArm, GenerationMetric
from winml.modelkit.core.target import Target
from winml.modelkit.data import sizes
from winml.modelkit.ep import options
from winml.modelkit.ep import probing as targets
from winml.modelkit.ep.probing import Chosen
from winml.modelkit.ep.trust import NOTHING, Trust
from winml.modelkit.graph.input_settings import InputSettings
from winml.modelkit.graph.signature import SignatureInput, read_signature
from winml.modelkit.graph.sizes import Size, match_sizes, open_dims
from winml.modelkit.measuring.events import ArmBuilding
from winml.modelkit.measuring.rounds import ArmSpec
from winml.modelkit.session.generation.graph_fit import check_graph
from winml.modelkit.session.generation.runtimes import choose_runtime

PROMPT_TOKENS, NEW_TOKENS = 32, 64
"""Of a text where nothing else was asked for: one length, because a comparison has one answer."""


@dataclass(frozen=True)
class CompareGeneration:
    """What of folders that generate text is compared; None leaves the choice to us."""

    metric: GenerationMetric | None = None
    prompt_tokens: int | None = None
    new_tokens: int | None = None
    runtimes: tuple[str | None, ...] = (None,)
    """One for all arms, or those that one folder is compared with itself on."""


@dataclass(frozen=True)
class CompareRequest:
    """Everything the user decided."""

    models: tuple[str, ...]
    targets: tuple[str | None, ...] = (None,)
    as_built: bool = False
    """Builds for different targets, each on its own."""
    ep: str | None = None
    device: str | None = None
    threads: int | None = None
    ep_options: dict[str, str] = field(default_factory=dict)
    inputs: InputSettings = InputSettings()
    force: bool = False
    allow_different: bool = False
    min_cosine: float = 0.95
    by_position: bool = False
    calibrate: bool = True
    recalibrate: bool = False
    raise_priority: bool = True
    confirm: bool = True
    max_seconds: float = 60.0
    timeout_s: float = 120.0
    seed: int = 0
    fail_if_slower_pct: float | None = None
    protocol: CompareProtocol | None = None
    """Another protocol than the device's own, for benchmarks."""
    trust: Trust = NOTHING
    generation: CompareGeneration = CompareGeneration()


@dataclass(frozen=True)
class Arms:
    """The arms of a comparison, and what was decided on the way to them."""

    specs: list[ArmSpec]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Asked:
    """A model on a target, before anything is opened."""

    label: str
    model: ModelArgument
    chosen: Chosen
    runtime: str | None = None
    """The program that was asked for to run a folder that generates text."""

    @property
    def target(self) -> Target:
        return self.chosen.resolved.target


def _arms(request: CompareRequest, on_event: OnEvent) -> list[_Asked]:
    """One arm per model, or one per target when a single model is compared over several."""
    runtimes = request.generation.runtimes
    arms = [(m, t, r) for r in runtimes for t in request.targets for m in request.models]
    if len(arms) < 2:
        raise RequestError(
            "compare needs a base and a candidate", hint="name two models, or one with `--target A --target B`"
        )
    if sum(len(several) > 1 for several in (request.models, request.targets, runtimes)) > 1:
        what = "runtimes" if len(runtimes) > 1 else "targets"
        raise RequestError(f"several models over several {what} cannot be compared at once", hint="use one model")
    models = {model: _open_model(model, request, on_event) for model in request.models}
    return [
        _Asked(model, models[model], targets.choose(models[model].target, target, request.ep, request.device), runtime)
        for model, target, runtime in arms
    ]


def _generates_text(request: CompareRequest) -> bool:
    """Whether folders that generate text are compared; they are compared with each other only."""
    folders = [model for model in request.models if is_decoder_folder(Path(model))]
    if folders and len(folders) < len(request.models):
        other = next(model for model in request.models if model not in folders)
        raise RequestError(
            f"`{folders[0]}` generates text and `{other}` does not", hint="compare two folders with genai_config.json"
        )
    if not folders and request.generation != CompareGeneration():
        raise RequestError(
            f"`{request.models[0]}` is no folder that generates text: it has no {GENAI_CONFIG}",
            hint="`--metric`, `--prompt-tokens`, `--new-tokens` and `--runtime` are for such folders",
        )
    inputs = request.inputs
    if folders and (inputs.npz is not None or inputs.dims or inputs.int_ranges):
        raise RequestError(
            "inputs cannot be given to folders that generate text",
            hint="a text is set with `--prompt-tokens`, `--new-tokens`, `--batch-size` and `--seed`",
        )
    return bool(folders)


def arms_of(request: CompareRequest, on_event: OnEvent) -> Arms:
    """The arms that can be compared: on requested targets, and none that is simulated."""
    text = _generates_text(request)
    found = _arms(request, on_event)
    _refuse_other_targets(request, found)
    simulated = [arm for arm in found if arm.target.simulated]
    arms = [arm for arm in found if not arm.target.simulated]
    if len(arms) < 2:
        raise UnavailableError(
            f"`{simulated[0].target}` is simulated on this machine: its times say nothing about a device, so there is "
            "no verdict",
            hint="`winml perf` shows placement; compare on a machine that has the device",
        )
    notes = [
        f"{arm.target} is skipped: it is simulated on this machine, and its times say nothing about a device"
        for arm in simulated
    ]
    notes += [f"`{arm.label}`: {note}" for arm in arms for note in arm.chosen.notes]
    specs = [_spec(request, arm) for arm in arms]
    several = len(request.targets) > 1
    if text:
        specs, reasons = _add_texts(specs, arms, request)
        notes += reasons
        several = several or len(request.generation.runtimes) > 1
    else:
        specs = _add_sizes(specs, request)
    return Arms(specs if several else _label_arms(specs), tuple(notes))


def _add_texts(specs: list[ArmSpec], asked: list[_Asked], request: CompareRequest) -> tuple[list[ArmSpec], list[str]]:
    """The arms with what is generated in each: the same text in all, and the program that runs it."""
    folders = [read_decoder_folder(Path(arm.label).absolute()) for arm in asked]
    for folder in folders:
        check_graph(folder)
    wanted, context = request.generation, min(folder.context_length for folder in folders)
    new_tokens = wanted.new_tokens or max(2, min(NEW_TOKENS, context // 2))
    prompt = wanted.prompt_tokens or max(1, min(PROMPT_TOKENS, context - new_tokens))
    if prompt + new_tokens > context:
        raise RequestError(
            f"a prompt of {prompt} tokens with {new_tokens} more does not fit the context of {context}",
            hint="give a shorter `--prompt-tokens` or fewer `--new-tokens`",
        )
    metric: GenerationMetric = wanted.metric or "tokens-per-second"
    if metric == "tokens-per-second" and new_tokens < 2:
        raise RequestError("tokens per second need at least 2 new tokens", hint="give more `--new-tokens`")
    found, notes = [], []
    for spec, arm, folder in zip(specs, asked, folders, strict=True):
        session = spec.arm.session
        runtime = choose_runtime(arm.target, arm.runtime, folder=folder, saved=session.runtime, section=session)
        text = GenerationArm(
            folder=str(folder.folder),
            metric=metric,
            runtime=runtime.name,
            prompt_tokens=prompt,
            new_tokens=new_tokens,
            batch=request.inputs.batch_size or 1,
        )
        label = runtime.name if len(wanted.runtimes) > 1 else spec.label
        notes.append(f"`{label}` is run by {runtime.name}: {runtime.reason}")
        arm_with_text = replace(spec.arm, artifact=str(folder.model), generation=text)
        found.append(replace(spec, arm=arm_with_text, label=label))
    what = {
        "first-token": f"a prompt of {prompt} tokens until its first token",
        "tokens-per-second": f"one of the {new_tokens - 1} tokens after the first, after a prompt of {prompt}",
        "memory": f"a text of {prompt} and {new_tokens} tokens; compared is the peak of the process",
    }
    return found, [f"a run is {what[metric]}", *notes]


def _refuse_other_targets(request: CompareRequest, arms: list[_Asked]) -> None:
    """Builds for different targets are compared on one that the user names."""
    asked = request.targets != (None,) or request.ep is not None or request.device is not None
    if request.as_built and asked:
        raise RequestError("`--as-built` takes the target of each build", hint="drop `--target`, or drop `--as-built`")
    unbuilt = next((arm for arm in arms if arm.chosen.built_for is None), None)
    if request.as_built and unbuilt is not None:
        raise RequestError(
            f"`{unbuilt.label}` is no build, so that it has no target of its own",
            hint="build it, or name targets with `--target`",
        )
    if asked or request.as_built or len({arm.target for arm in arms}) == 1:
        return
    words = ", ".join(f"`{arm.label}` for {arm.chosen.built_for or arm.target}" for arm in arms)
    raise RequestError(
        f"the models are on different targets: {words}",
        hint="name the one to compare them on with `--target EP/DEVICE`, or add `--as-built`",
    )


def _add_sizes(specs: list[ArmSpec], request: CompareRequest) -> list[ArmSpec]:
    """The arms with a size for every open dimension: one that an arm leaves open and another fixes has that size.

    A name that the user gave a size need not be in every arm: a build may have fixed it.
    """
    if request.inputs.npz is not None:
        return specs
    try:
        shapes = [read_signature(Path(spec.arm.artifact)).inputs for spec in specs]
    except ModelFileError:  # the runtime reports what is wrong with the file
        return specs
    given = [_fitting(inputs, request.inputs.dims) for inputs in shapes]
    for word in request.inputs.dims:
        if all(word not in dims for dims in given):
            match_sizes(shapes[0], {word: request.inputs.dims[word]})  # reports what is wrong with it
    fixed = [_sizes_by_place(inputs) for inputs in shapes]
    found = []
    for number, (spec, inputs, dims) in enumerate(zip(specs, shapes, given, strict=True)):
        known = {place: size for other, places in enumerate(fixed) if other != number for place, size in places.items()}
        others = {
            name: Size(known[place], "other arm", f"{place} of another compared model")
            for name, places in open_dims(inputs).items()
            for place in map(str, places)
            if place in known
        }
        asked = replace(request.inputs, dims=dims)
        found.append(replace(spec, inputs=sizes.complete(Path(spec.arm.artifact), asked, others)))
    return found


def _fitting(inputs: Sequence[SignatureInput], dims: Mapping[str, int]) -> dict[str, int]:
    """The sizes that a user gave which this model has a place for."""
    found = {}
    for word, size in dims.items():
        with contextlib.suppress(RequestError):
            match_sizes(inputs, {word: size})
            found[word] = size
    return found


def _sizes_by_place(inputs: Sequence[SignatureInput]) -> dict[str, int]:
    return {
        f"{value.name}[{index}]": dim
        for value in inputs
        for index, dim in enumerate(value.shape)
        if isinstance(dim, int)
    }


def _open_model(model: str, request: CompareRequest, on_event: OnEvent) -> ModelArgument:
    """What to open for an arm and the target it is for; a config is built first, in the cache."""
    trust = request.trust.with_typed(request.ep_options)
    if not model.endswith(".json"):
        return model_argument(model, on_event, trust=trust)
    on_event(ArmBuilding(model))
    # Stages import modules that a comparison of finished models does not need.
    from winml.modelkit.building.build import BuildRequest, build

    unproven = "`winml compare` compares its outputs with those of the other arm"
    wanted = BuildRequest(config=model, analyze=False, prove=False, unproven=unproven, trust=request.trust)
    result = build(wanted, lambda event: None)
    return replace(model_argument(result.folder, trust=trust), target=str(result.target))


def _spec(request: CompareRequest, asked: _Asked) -> ArmSpec:
    argument, resolved = asked.model, asked.chosen.resolved
    section = argument.section
    threads = request.threads if request.threads is not None else section.threads
    given = options.with_threads(resolved.target, {**section.ep_options, **request.ep_options}, threads)
    section = replace(section, threads=threads, ep_options=options.check_options(resolved.target, given))
    arm = Arm(artifact=str(argument.path), target=resolved.target, session=section, build=argument.build)
    installed = resolved.installed
    label = str(resolved.target) if len(request.targets) > 1 else asked.label
    return ArmSpec(arm, label, installed.python, installed.package.distribution, request.inputs)


def _label_arms(specs: list[ArmSpec]) -> list[ArmSpec]:
    """Arms by the shortest end of their paths that distinguishes them; equal ones are numbered."""
    parts = [Path(s.label).parts for s in specs]
    depth = next((d for d in range(1, 10) if len({p[-d:] for p in parts}) == len(set(parts))), 10)
    names: list[str] = []
    for p in parts:
        name = "/".join(p[-depth:])
        count = sum(n == name or n.startswith(f"{name} (") for n in names)
        names.append(f"{name} ({count + 1})" if count else name)
    return [replace(s, label=n) for s, n in zip(specs, names, strict=True)]

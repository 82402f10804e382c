"""The start of a search: targets, objective, data, baseline, and what is known before the first trial."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from winml.modelkit.building import config as configs
from winml.modelkit.building.config import ConfigRequest
from winml.modelkit.building.model_argument import ModelArgument, model_argument
from winml.modelkit.building.optimize.knobs import single_pass
from winml.modelkit.building.optimize.result import Candidate, Candidates
from winml.modelkit.building.pipeline.artifact import Source
from winml.modelkit.building.pipeline.steps import find_source
from winml.modelkit.core import model_ref
from winml.modelkit.core.config import RANDOM, DataSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError, UnavailableError
from winml.modelkit.core.events import OnEvent, TargetChosen
from winml.modelkit.core.finding import Finding
from winml.modelkit.core.generation import GENAI_CONFIG, is_decoder_folder
from winml.modelkit.core.location import knowledge_root
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.objective import TIMED, Objective
from winml.modelkit.core.suggest import near_path
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import to_json
from winml.modelkit.data import sizes
from winml.modelkit.ep import probing as targets
from winml.modelkit.ep.targets import Resolved
from winml.modelkit.ep.trust import NOTHING, Trust
from winml.modelkit.evaluation.custom_metric import CustomMetric
from winml.modelkit.evaluation.evaluate import check_limits
from winml.modelkit.evaluation.result import Judging
from winml.modelkit.graph.description import FoundBlock, GraphFacts, ModelDescription
from winml.modelkit.graph.input_settings import InputSettings
from winml.modelkit.graph.sizes import Size
from winml.modelkit.knowledge import rules
from winml.modelkit.knowledge.findings import Knowledge
from winml.modelkit.knowledge.model_family import ModelFamily, find_family
from winml.modelkit.knowledge.presets import Preset, load_preset
from winml.modelkit.knowledge.rules import Advice
from winml.modelkit.search.decoders import (
    SearchedDecoder,
    describe_search,
    describe_text,
    describe_texts,
    find_decoder_folder,
    make_gate_data,
)
from winml.modelkit.search.events import PassesProbed
from winml.modelkit.search.gate import GateRequest
from winml.modelkit.search.insight import Insight, describe_contradictions
from winml.modelkit.search.knob_table import (
    NO_DATA,
    collect_insight,
    make_decoder_space,
    make_preset_space,
    make_space,
)
from winml.modelkit.search.mixed import read_sensitivity
from winml.modelkit.search.records import GateLimits, Identity
from winml.modelkit.search.space import ConfigJSON, Space
from winml.modelkit.search.strategy import SearchLimits
from winml.modelkit.session.generation.runtimes import choose_runtime
from winml.modelkit.worker.client import Worker

AGREEMENT_SAMPLES = 64
CALIBRATION_SAMPLES = 128
CANDIDATES_TIMEOUT_S = 300.0


@dataclass(frozen=True)
class AutoconfigRequest:
    """Everything the user chose."""

    model: str
    output: str
    targets: tuple[str | None, ...] = (None,)
    ep: str | None = None
    device: str | None = None
    objective: Objective | None = None
    data: DataSection | None = None
    """Labelled data for the gate."""
    task: str | None = None
    metric: str | None = None
    """The metric of the task that the limits are for; None means its first."""
    custom: CustomMetric | None = None
    """The user's own metric; no document can name one."""
    task_options: dict[str, str] = field(default_factory=dict)
    min_metric: float | None = None
    max_metric: float | None = None
    max_drop: float | None = None
    min_agreement: float | None = None
    judge: Literal["interval", "value"] = "interval"
    calibration: DataSection | None = None
    inputs: InputSettings = InputSettings()
    threads: int | None = None
    ep_options: dict[str, str] = field(default_factory=dict)
    limits: SearchLimits = field(default_factory=SearchLimits)
    resume: bool = False
    overwrite: bool = False
    again: str | None = None
    """The command that resumes the search, without its budget; None for a call from Python."""
    space: str | None = None
    sensitivity: str | None = None
    """A result of `winml quantize --sensitivity`, from which levels of mixed precision are made."""
    preset: str | None = None
    only: tuple[str, ...] = ()
    reuse: str | None = None
    knowledge: str | None = None
    raise_priority: bool = True
    calibrate: bool = True
    exhaustive: bool = False
    """Try every choice, for benchmarks."""
    seed: int = 0
    trust: Trust = NOTHING


@dataclass(frozen=True)
class Preparation:
    """The start of a search."""

    request: AutoconfigRequest
    resolved: tuple[Resolved, ...]
    objective: Objective
    source: Source
    base: ConfigJSON
    calibration: DataSection | None
    gate: GateRequest
    whole: Space
    """Everything that could be searched."""
    insight: Insight
    findings: tuple[Finding, ...]
    family: ModelFamily
    facts: GraphFacts
    notes: tuple[str, ...]
    decoder: SearchedDecoder | None = None
    """For a model that generates text."""

    @property
    def model(self) -> str:
        """The model as a user names it in the next command."""
        named = self.request.model
        if self.decoder is None:
            return str(self.source.path)
        return str(Path(named).absolute()) if Path(named).exists() else named

    @property
    def identity(self) -> Identity:
        return Identity(
            model=self.source.artifact.digest,
            targets=tuple(r.target for r in self.resolved),
            objective=self.objective,
            baseline={**self.base, "model": None},
            calibration=None if self.calibration is None else self.calibration.digest,
            gate=_identify_gate(self.gate.limits),
            knobs={knob.name: knob.names for knob in self.whole.knobs},
            inputs=self.request.inputs,
            versions={str(r.target): _package_versions(r) for r in self.resolved},
            text=None if self.decoder is None else self.decoder.text,
        )


def _identify_gate(limits: GateLimits) -> GateLimits:
    """The gate without places: data and a function are the same ones in another folder."""
    source = limits.custom_metric
    return replace(limits, data=None, custom_metric=None if source is None else replace(source, file=None))


def check_request(request: AutoconfigRequest) -> None:
    """Raise for contradictory options."""
    _check_accuracy(request)
    if request.only and request.preset is None:
        raise RequestError("`--only` selects hypotheses of a preset", hint="choose one with `--preset`")
    if request.preset is not None and request.space is not None:
        raise RequestError("`--preset` cannot be combined with `--space`")
    if request.preset is not None and request.sensitivity is not None:
        raise RequestError("`--preset` cannot be combined with `--mixed`")
    if request.resume and request.overwrite:
        raise RequestError("`--resume` cannot be combined with `--overwrite`")
    for folder in (request.knowledge, request.reuse):
        if folder is not None and not Path(folder).is_dir():
            raise RequestError(f"folder not found: `{folder}`", hint=near_path(folder))


def _check_accuracy(request: AutoconfigRequest) -> None:
    """Raise for a metric or limits that cannot be: without data, or a function that nothing limits or identifies."""
    limits = (request.min_metric, request.max_metric, request.max_drop)
    needs_data = {
        "a limit for the metric": limits != (None, None, None),
        "a metric": request.metric is not None or request.custom is not None,
        "a task": request.task is not None,
        "`--task-option`": bool(request.task_options),
    }
    for what, is_given in needs_data.items():
        if is_given and request.data is None:
            raise RequestError(f"{what} needs labelled data", hint="give them with `--data`")
    check_limits(
        Judging(request.metric, request.min_metric, request.max_drop, max_metric=request.max_metric), request.custom
    )
    if request.custom is None:
        return
    if limits == (None, None, None):
        raise RequestError(
            f"a metric of your own needs a limit: nothing says how far `{request.custom.name}` may change",
            hint="give `--max-drop X`, `--min-metric X` or `--max-metric X`",
        )
    source = request.custom.source
    if request.resume and source.digest is None:
        raise RequestError(
            f"the text of `{source.function}` is unknown, so that a search judged by it cannot be resumed",
            hint="define it in a file",
        )


def _check_task(request: AutoconfigRequest, model: Path) -> None:
    """Raise for labelled data whose task is neither given nor in the model's config.json, or has no metric."""
    if request.data is not None and request.custom is None:
        from winml.modelkit.evaluation.all_tasks import choose_task

        task, note = choose_task(request.task, request.data, model.parent)
        if not task.metrics and request.task is None and note is not None:
            raise RequestError(note, hint="name a task with a metric: `--task`, for example `image-classification`")


_OF_TEXT: tuple[Objective, ...] = ("first-token", "tokens-per-second", "memory")


def _choose_objective(
    request: AutoconfigRequest, resolved: Resolved, *, generates: bool
) -> tuple[Objective, tuple[str, ...]]:
    target = resolved.target
    if generates:
        return _choose_of_text(request, target)
    objective: Objective = request.objective or ("placement" if target.simulated else "latency")
    if objective in _OF_TEXT:
        raise RequestError(
            f"`--objective {objective}` is for a model that generates text, and `{request.model}` is not built as one "
            f"for {target}",
            hint=f"name a folder with {GENAI_CONFIG}, or a Hugging Face decoder on another target than an NPU; "
            "`winml build -m MODEL -o DIR` makes such a folder",
        )
    if objective == "latency" and target.simulated:
        raise UnavailableError(
            f"`{target}` is simulated on this machine: its times say nothing about a device, so there is no latency "
            "verdict",
            hint="use `--objective placement` or `size` here, and search for latency on a machine with the device",
        )
    if objective == "placement" and target.ep == "cpu":
        raise RequestError("every node is placed on the CPU there", hint="use `--objective latency` or `size`")
    if not target.simulated or request.objective is not None:
        return objective, ()
    note = (
        f"`{target}` is simulated on this machine: the objective is placement, then size, "
        "because its times are not a device's"
    )
    return objective, (note,)


def _choose_of_text(request: AutoconfigRequest, target: Target) -> tuple[Objective, tuple[str, ...]]:
    """The objective for a model that generates text."""
    objective: Objective = request.objective or "tokens-per-second"
    if objective == "latency":
        raise RequestError(
            f"`{request.model}` generates text, which has no one latency",
            hint="use `--objective first-token` for the time of a prompt, or `tokens-per-second` for that of a step",
        )
    if target.simulated and objective in (*TIMED, "memory"):
        raise UnavailableError(
            f"`{target}` is simulated on this machine: its {objective} says nothing about a device",
            hint="use `--objective size` here, and search on a machine with the device",
        )
    if objective == "placement" and target.ep == "cpu":
        raise RequestError("every node is placed on the CPU there", hint="use `--objective tokens-per-second`")
    if request.objective is not None:
        return objective, ()
    note = "the model generates text: the objective is tokens-per-second; others are first-token, memory and size"
    return objective, (note,)


def _refuse_of_text(request: AutoconfigRequest, *, targets: int) -> None:
    """Raise for options that a search of a model that generates text does not have."""
    inputs = request.inputs
    given = {
        "--calibration": request.calibration is not None,
        "--preset": request.preset is not None,
        "--mixed": request.sensitivity is not None,
        "--input-data": inputs.npz is not None,
        "--dim` and `--shape": bool(inputs.dims),
        "--int-range": bool(inputs.int_ranges),
    }
    named = next((option for option, is_given in given.items() if is_given), None)
    if named is not None:
        raise RequestError(
            f"`{named}` cannot be used in a search of a model that generates text",
            hint="configs are judged by `--min-agreement`, or by texts with `--data FILE`",
        )
    if request.custom is not None:
        raise RequestError(
            "a model that generates text is judged by its tasks, not by a function",
            hint="`--metric kl_divergence --max-metric X` or `--max-drop X` limit what it may lose",
        )
    if request.data is not None and (request.min_metric, request.max_metric, request.max_drop) == (None, None, None):
        raise RequestError(
            "a gate by texts needs a limit: metrics of text have no common unit",
            hint="`--max-drop X` is in the unit of the metric (perplexity); `--metric kl_divergence --max-metric X` is "
            "in nats",
        )
    if targets > 1:
        raise RequestError(
            "a model that generates text is searched on one target at a time", hint="give one `--target`"
        )


def prepare(request: AutoconfigRequest, on_event: OnEvent) -> Preparation:
    """Everything that is known without building or measuring."""
    named = request.targets != (None,) or request.ep is not None or request.device is not None
    ref = model_ref.parse(request.model)
    given: ModelArgument | None = None
    # What is exported is for no target yet, and a decoder is not exported whole.
    if not named and not ref.is_exported and (ref.kind == "build" or not is_decoder_folder(Path(request.model))):
        given = model_argument(request.model, on_event, trust=request.trust.with_typed(request.ep_options))
    built_for = None if given is None else given.target
    resolved = tuple(
        targets.choose(built_for, target, request.ep, request.device).resolved for target in request.targets
    )
    if len({one.target for one in resolved}) != len(resolved):
        raise RequestError("`--target` has a target twice")
    for one in resolved:
        on_event(TargetChosen(one.target))
    folder = find_decoder_folder(request.model, resolved[0].target, on_event)
    objective, notes = _choose_objective(request, resolved[0], generates=folder is not None)
    if any(r.target.simulated for r in resolved) and len(resolved) > 1:
        raise UnavailableError("a simulated target cannot be compared with another one", hint="search on it alone")
    decoder: SearchedDecoder | None = None
    if folder is None:
        given = given or model_argument(request.model, on_event, trust=request.trust.with_typed(request.ep_options))
        model = given.path.absolute()
        _check_task(request, model)
        request = replace(request, inputs=sizes.complete(model, request.inputs))
    else:
        _refuse_of_text(request, targets=len(resolved))
        given, decoder, text_notes = _open_decoder(request, folder, resolved[0].target, objective)
        model, notes = given.path, (*notes, *text_notes)
    preset = None if request.preset is None else load_preset(request.preset)
    with Worker(preload=configs.PRELOAD) as worker:
        calibration, calibration_notes = _choose_calibration(request, model, worker, texts=decoder is not None)
        gate, gate_notes = _make_gate(request, calibration, model, worker, decoder)
        base = _make_baseline(request, resolved[0], preset, calibration, given, worker)
        source = find_source(model, worker)
        args, what = {"path": str(model), "fingerprint": False}, "reading the model"
        facts = worker.ask(ModelDescription, "graph.describe", args, what=what).facts
        family = _find_family(request, model, worker)
        if decoder is not None:
            fused = decoder.folder.in_place
            whole = make_decoder_space(base, resolved[0].target, request.space, fused=fused)
            effects = _try_passes(whole, model, worker, on_event)
        elif preset is None:
            found = None if request.sensitivity is None else read_sensitivity(request.sensitivity)
            whole = make_space(base, tuple(r.target for r in resolved), request.space, found)
            effects = _try_passes(whole, model, worker, on_event)
        else:
            whole, effects = make_preset_space(base, preset, request.only), {}
    target = resolved[0].target
    findings = Knowledge(Path(request.knowledge) if request.knowledge else knowledge_root()).findings
    advice = rules.find_advice(findings, facts, target, families=family.names, versions=_package_versions(resolved[0]))
    insight = collect_insight(
        whole,
        target=target,
        facts=facts,
        effects=effects,
        advice=advice,
        missing={} if calibration is not None else {"data": NO_DATA},
        preset=preset,
        objective=objective,
        others=len(resolved) > 1,
    )
    return Preparation(
        request=request,
        resolved=resolved,
        objective=objective,
        source=source,
        base=base,
        calibration=calibration,
        gate=gate,
        whole=whole,
        insight=insight,
        findings=findings,
        family=family,
        facts=facts,
        notes=(
            *notes,
            *_preset_notes(preset, target),
            *_dim_notes(base, request.inputs.sizes or {}),
            *calibration_notes,
            *gate_notes,
            *measuring_notes(advice, findings, objective),
            *describe_contradictions(insight.notes),
        ),
        decoder=decoder,
    )


def _open_decoder(
    request: AutoconfigRequest, folder: Path, target: Target, objective: Objective
) -> tuple[ModelArgument, SearchedDecoder, tuple[str, ...]]:
    """The model of a decoder folder with the session of its build, what is measured of it, and what to say of that."""
    section = SessionSection()
    if model_ref.parse(str(folder)).kind == "build":
        section = model_argument(str(folder), trust=request.trust.with_typed(request.ep_options)).section
    decoder = describe_search(folder, target, section, objective, request.inputs.batch_size)
    notes: tuple[str, ...] = ()
    if objective in _OF_TEXT:
        notes = describe_text(decoder.text, choose_runtime(target, folder=decoder.folder, saved=section.runtime).reason)
    if decoder.folder.ignored:
        notes += (f"settings of {GENAI_CONFIG} that are not used: {', '.join(decoder.folder.ignored)}",)
    return ModelArgument(decoder.folder.model, section), decoder, notes


def _preset_notes(preset: Preset | None, target: Target) -> tuple[str, ...]:
    """A note when a preset is tried on another target than its own."""
    if preset is None or preset.target == str(target):
        return ()
    return (f"preset `{preset.id}` was made for {preset.target} and is used on {target}",)


def measuring_notes(advice: Iterable[Advice], findings: Iterable[Finding], objective: Objective) -> tuple[str, ...]:
    """Findings about measuring on this target, for a search by times; general ones are skipped."""
    if objective not in TIMED:
        return ()
    special = {finding.id for finding in findings if finding.scope.ep is not None}
    return tuple(f"on measuring: {one.reason}" for one in advice if one.place == "measure" and one.finding in special)


def _dim_notes(base: ConfigJSON, found: Mapping[str, Size]) -> tuple[str, ...]:
    """Dynamic dimensions that have a fixed size in every config of the search."""
    fixed = (base["optimize"] or {}).get("fixed_dims", {})
    chosen = {name: size for name, size in found.items() if size.source not in ("given", "batch") or name in fixed}
    if not chosen:
        return ()
    verb = f"dimensions are fixed for {base['target']}" if fixed else "dimensions are measured at"
    return (f"{verb}: {sizes.words(chosen)}; set them with `--dim NAME=N`",)


def _choose_calibration(
    request: AutoconfigRequest, model: Path, worker: Worker, *, texts: bool
) -> tuple[DataSection | None, tuple[str, ...]]:
    """The data of static quantization: those given, or some of the labelled ones, with a note; no texts."""
    if texts:
        return None, ()
    notes: tuple[str, ...] = ()
    data = request.calibration
    if data is None and request.data is not None:
        data = replace(request.data, limit=CALIBRATION_SAMPLES)
        notes = (
            f"calibrated on {CALIBRATION_SAMPLES} of the samples that the accuracy gate uses; "
            "give others with `--calibration` for an unbiased accuracy",
        )
    if data is None:
        return None, ()
    if data.limit is None:
        data = replace(data, limit=CALIBRATION_SAMPLES)
    data = sizes.random_data(data, model, given=request.inputs.dims, worker=worker)
    return configs.describe_data(data, model, worker), notes


def _make_gate(
    request: AutoconfigRequest,
    calibration: DataSection | None,
    model: Path,
    worker: Worker,
    decoder: SearchedDecoder | None,
) -> tuple[GateRequest, tuple[str, ...]]:
    """Labelled data if given; otherwise agreement with the given model, on the best available inputs."""
    labelled = request.data is not None
    data = request.data or replace(calibration or DataSection(RANDOM), limit=AGREEMENT_SAMPLES, digest=None)
    if decoder is not None and not labelled:
        data = make_gate_data(decoder.folder)
    data = sizes.random_data(data, model, given=request.inputs.dims, worker=worker)
    texts = decoder is not None and labelled
    found = describe_texts(data) if texts else configs.describe_data(data, model, worker)
    gate = GateRequest(
        replace(found, digest=None),
        request.task if labelled else "outputs",
        request.min_metric,
        request.max_drop,
        min_agreement=request.min_agreement,
        judge=request.judge,
        digest=found.digest,
        metric=request.metric,
        max_metric=request.max_metric,
        custom=request.custom,
        task_options=request.task_options,
        texts=texts,
    )
    return gate, () if labelled else (gate.describe(),)


def _make_baseline(
    request: AutoconfigRequest,
    resolved: Resolved,
    preset: Preset | None,
    calibration: DataSection | None,
    model: ModelArgument,
    worker: Worker,
) -> ConfigJSON:
    """The config of the baseline: the model as it is, or the first hypothesis of a preset.

    A build folder also provides its session section.
    """
    made = configs.make(
        ConfigRequest(
            model=str(model.path.absolute()),
            target=str(resolved.target),
            precision="fp32" if preset is None else preset.precision,
            data=calibration,
            optimize=preset is not None,
            opset=None if preset is None else preset.opset,
            dims=dict(request.inputs.dims) if resolved.target.device == "npu" else {},
            threads=model.section.threads if request.threads is None else request.threads,
            ep_options={**model.section.ep_options, **request.ep_options},
        ),
        worker,
    )
    session = made.config.session
    session = replace(model.section, threads=session.threads, ep_options=session.ep_options)
    value: dict[str, Any] = to_json(replace(made.config, session=session))
    if value["quantize"] is not None:
        value["quantize"]["calibration"] = None  # added to every static config when it is built
    return value


def _find_family(request: AutoconfigRequest, model: Path, worker: Worker) -> ModelFamily:
    """The family of a model, by what lies beside what was named, then beside the file, then by its graph."""
    named = Path(request.model)
    folders = [*((named,) if named.is_dir() else ()), model.parent]
    found = worker.ask(FoundBlock, "graph.block", {"path": str(model)}, what="reading the model")
    return find_family(dict.fromkeys(folders), found.block)


def _try_passes(space: Space, model: Path, worker: Worker, on_event: OnEvent) -> dict[str, Candidate]:
    """The effect of every pass of the space, alone, on the model."""
    names = [name for knob in space.knobs if (name := single_pass(knob.name)) is not None]
    if not names:
        return {}
    on_event(PassesProbed())
    args = {"model": str(model), "passes": names}
    answer = worker.ask(Candidates, "optimize.candidates", args, timeout_s=CANDIDATES_TIMEOUT_S, what="trying passes")
    return {row.name: row for row in answer.passes}


def _package_versions(resolved: Resolved) -> dict[str, str]:
    """Versions of the packages here, by the names findings use."""
    found: dict[str, str] = {}
    for name, distribution in (
        ("onnxruntime", "onnxruntime"),
        (resolved.target.ep, resolved.installed.package.distribution),
    ):
        try:
            found[name] = version(distribution)
        except PackageNotFoundError:
            continue  # in a private environment; unknown versions are not compared
    return found

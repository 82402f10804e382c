"""`winml build`: from a model to the artifact for a target, stage by stage through the cache."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from winml.modelkit import __version__
from winml.modelkit.building import build_analysis, build_compile
from winml.modelkit.building import config as configs
from winml.modelkit.building.analysis.result import AnalyzeResult
from winml.modelkit.building.compile.stage import Settings
from winml.modelkit.building.config import ConfigRequest, MadeConfig
from winml.modelkit.building.events import PrecisionGivenUp, StagesPlanned
from winml.modelkit.building.export import resolve as export
from winml.modelkit.building.export.decoder_folder import describe_decoder
from winml.modelkit.building.export.families import DECODER, WHOLE
from winml.modelkit.building.export.fit import processor_warnings
from winml.modelkit.building.export.folder import ModelFolder
from winml.modelkit.building.exported import Exported, Exporting, processor_objects, run_export
from winml.modelkit.building.manifest import BuildManifest, BuildSource, ManifestArtifact
from winml.modelkit.building.pipeline import folder as folders
from winml.modelkit.building.pipeline.artifact import Artifact, Source
from winml.modelkit.building.pipeline.identity import identity_of
from winml.modelkit.building.pipeline.run import Pipeline
from winml.modelkit.building.pipeline.steps import find_source, make_steps
from winml.modelkit.building.pipeline.table import COMPILE, OPTIMIZE, QUANTIZE
from winml.modelkit.building.pipeline.table import EXPORT as EXPORT_STAGE
from winml.modelkit.building.proof import prove as build_proof
from winml.modelkit.building.proof.proof import Proof
from winml.modelkit.building.quantize import advice
from winml.modelkit.building.result import BuildResult, BuiltArtifact, Fallback, FilesBy, failure_of
from winml.modelkit.core.build_folder import ANALYSIS, CONFIG, EXPORT, MANIFEST, MODEL
from winml.modelkit.core.config import RANDOM, BuildConfig, DataSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import CheckFailed, ModelFileError, ModelkitError, RunFailedError
from winml.modelkit.core.events import OnEvent, TargetChosen
from winml.modelkit.core.generation import (
    GENAI_CONFIG,
    TOKENIZER,
    DecoderFolder,
    is_decoder_folder,
    make_genai_config,
    read_decoder_folder,
)
from winml.modelkit.core.values import to_json
from winml.modelkit.ep import precision
from winml.modelkit.ep.trust import NOTHING, Trust
from winml.modelkit.session.generation.graph_fit import check_graph
from winml.modelkit.store import atomic, digest
from winml.modelkit.store.cache import Cache
from winml.modelkit.worker.client import Worker

R = TypeVar("R")
_OWN_FILES = (ANALYSIS, CONFIG, EXPORT, GENAI_CONFIG, MANIFEST)
"""Files of a decoder folder that a build of it writes itself."""


@dataclass(frozen=True)
class BuildRequest:
    """Everything the user decided."""

    config: ConfigRequest | BuildConfig | str
    """Options to make a config from, a config, or the path of one."""
    model: str | None = None
    """The model for a config that was given as a file; None takes the one it names."""
    output: str | None = None
    """The build folder; None puts it into the cache."""
    overwrite: bool = False
    rebuild: bool = False
    analyze: bool = True
    timeout_s: float | None = None
    prove: bool = True
    """Whether the artifact is opened on its target, run there and compared with its source."""
    unproven: str = build_proof.SWITCHED_OFF
    """Why it is not, where it is not."""
    proof: Proof | None = None
    """An existing proof of the same artifact."""
    prove_timeout_s: float = build_proof.SECONDS
    fallback_precision: bool = False
    """Whether a build whose artifact fails on its target continues with the next precision."""
    or_whole: bool = False
    """Whether a decoder in no table that cannot be exported with its cache is built whole, with a warning."""
    trust_remote_code: bool = False
    """Whether code that comes with the model of a config file may run; a config cannot allow that itself."""
    trust: Trust = NOTHING
    """What a config file may set though it names a library or a file."""


@dataclass(frozen=True)
class _BuildPlan:
    """What is built, from what, for where."""

    made: MadeConfig
    exported: Exported | None
    """The model that the stages after the export start from; None when the model is ONNX."""
    source: Source
    identity: str
    folder: Path
    doubts: tuple[str, ...]
    """Warnings about the quantize section on the target."""

    @property
    def config(self) -> BuildConfig:
        return self.made.config


def build(request: BuildRequest, on_event: OnEvent) -> BuildResult:
    """Build; the result of an error shows how far the build got."""

    def run(attempt: Attempt) -> BuildResult:
        # One process reads the model at the beginning and runs the proof at the end.
        with Worker(preload=configs.PRELOAD) as worker:
            ready = make_ready(attempt.request, on_event, worker)
            attempt.plan = ready.plan
            proof = ready.given_proof
            with ready.blaming():
                return deliver(ready, proof or build_proof.prove(ready.subject, ready.place(worker)), attempt)

    return with_fallbacks(request, on_event, run)


def with_fallbacks(request: BuildRequest, on_event: OnEvent, run: Callable[[Attempt], R]) -> R:
    """The result of the first attempt whose artifact is good; others follow only where that was allowed."""
    attempt = Attempt(request)
    while True:
        try:
            return run(attempt)
        except (CheckFailed, RunFailedError) as error:
            after = attempt.next(error)
            if after is None:
                raise
            attempt = after
            last = attempt.fallbacks[-1]
            on_event(PrecisionGivenUp(last.precision, last.then, last.reason))


@dataclass
class Attempt:
    """A build at one precision, and the precisions that failed before it."""

    request: BuildRequest
    fallbacks: tuple[Fallback, ...] = ()
    plan: _BuildPlan | None = None
    """What it builds, once that is known."""

    def next(self, error: ModelkitError) -> Attempt | None:
        """The attempt after one whose artifact failed on its target; None when there is none or none is allowed."""
        failed = failure_of(error)
        if self.fallbacks:
            error.result = replace(failed, fallbacks=self.fallbacks)
        plan = self.plan
        if plan is None or failed.proof is None or not self.request.fallback_precision:
            return None
        data = _calibration_data(self.request, plan)
        tried = [fallback.precision for fallback in self.fallbacks]
        name = plan.config.precision
        after = precision.next_precision(plan.made.planned.target, name, data=data is not None, tried=tried)
        if after is None:
            return None
        given_up = Fallback(precision=name, then=after, reason=error.message, identity=plan.identity)
        return Attempt(_at_precision(self.request, plan, after, data), (*self.fallbacks, given_up))

    @property
    def notes(self) -> list[str]:
        return [f"fell back from precision {f.precision} to {f.then}: {f.reason}" for f in self.fallbacks]


def _calibration_data(request: BuildRequest, plan: _BuildPlan) -> DataSection | None:
    """What there is to calibrate on, whether or not the precision so far needs it."""
    if isinstance(request.config, ConfigRequest):
        return request.config.data or request.config.sample_data
    return None if plan.config.quantize is None else plan.config.quantize.calibration


def _at_precision(request: BuildRequest, plan: _BuildPlan, name: str, data: DataSection | None) -> BuildRequest:
    if isinstance(request.config, ConfigRequest):
        return replace(request, config=replace(request.config, precision=name))
    inputs = () if plan.config.export is None else plan.config.export.inputs
    section = precision.fit_cache(
        precision.quantize_section(plan.made.planned.target, name), [entry.name for entry in inputs]
    )
    if section is not None and section.mode == "static":
        section = replace(section, calibration=data)
    return replace(request, config=replace(plan.config, precision=name, quantize=section))


@dataclass(frozen=True)
class Ready:
    """An artifact that was made but neither proven nor delivered."""

    request: BuildRequest
    plan: _BuildPlan
    pipeline: Pipeline
    cache: Cache
    uncompiled: Artifact
    analysis: AnalyzeResult | None
    started: float

    @property
    def given_proof(self) -> Proof | None:
        """A proof that was given or is switched off; None when one has to be made."""
        if self.request.proof is None and not self.request.prove:
            return build_proof.unproven(self.request.unproven)
        return self.request.proof

    @property
    def subject(self) -> build_proof.Subject:
        """What is to be proven."""
        plan, request, exported = self.plan, self.request, self.plan.exported
        return build_proof.Subject(
            config=plan.config,
            planned=plan.made.planned,
            reference=plan.source.path if exported is None else exported.path,
            reference_digest=plan.source.artifact.digest if exported is None else exported.run.artifact.digest,
            data=_inputs(plan),
            model_folder=plan.source.path.parent,
            uncompiled=self.uncompiled,
            unloadable=build_compile.unloadable(self.pipeline.runs),
            seconds=min(request.prove_timeout_s, request.timeout_s or request.prove_timeout_s),
        )

    def place(self, worker: Worker) -> build_proof.Place:
        return build_proof.Place(self.pipeline, self.cache, worker)

    @contextlib.contextmanager
    def blaming(self) -> Iterator[None]:
        """Errors carry the stages that ran and the one that failed."""
        with _blaming(self.pipeline):
            yield


@contextlib.contextmanager
def _blaming(pipeline: Pipeline) -> Iterator[None]:
    try:
        yield
    except ModelkitError as error:
        failed = failure_of(error)
        if failed.stages is None:
            stages = tuple(run.summarize() for run in pipeline.runs)
            error.result = replace(failed, stages=stages, stage=pipeline.stage)
        raise


def make_ready(request: BuildRequest, on_event: OnEvent, worker: Worker) -> Ready:
    """Run the stages of a build."""
    started = time.monotonic()
    cache = Cache()
    made = _make_config(request, on_event, worker)
    exported: Exported | None = None
    on_event(StagesPlanned(_stage_names(request, made)))
    given_up: tuple[str, ...] = ()
    if made.export is not None:
        exporting = Exporting(cache, on_event, request.rebuild, request.timeout_s)
        try:
            exported = run_export(made.export, exporting)
        except (CheckFailed, RunFailedError) as error:
            made, given_up = _plan_whole(request, made, error, on_event, worker)
            assert made.export is not None
            exported = run_export(made.export, exporting)
        made = configs.fit_export(made, exported.path, exported.run.report["exporter"])
    source = find_source(Path(made.config.model or ""), worker) if exported is None else exported.source
    plan = _plan(request, made, exported, source, cache)
    plan = replace(plan, doubts=(*given_up, *plan.doubts))
    settings: Settings | None = None
    if made.config.compile is not None:
        settings = build_compile.settings_for(
            made.config.compile, made.planned, rebuild=request.rebuild, timeout_s=request.timeout_s
        )
    on_event(TargetChosen(made.planned.target))
    pipeline = Pipeline(
        source,
        cache=cache,
        start=Worker,
        on_event=on_event,
        rebuild=request.rebuild,
        timeout_s=request.timeout_s,
    )
    if exported is not None:
        pipeline.adopt(exported.run)
    with _blaming(pipeline):
        analysis = _run_stages(pipeline, request, plan, cache)
        uncompiled = pipeline.artifact
        if settings is not None:
            build_compile.compile_artifact(pipeline, settings, cache)
    return Ready(request, plan, pipeline, cache, uncompiled, analysis, started)


def _plan_whole(
    request: BuildRequest, made: MadeConfig, error: ModelkitError, on_event: OnEvent, worker: Worker
) -> tuple[MadeConfig, tuple[str, ...]]:
    """The build of a model as a whole, whose decoder could not be exported with its cache, and a warning.

    Raises the error again where that was not allowed, or for a family of the tables, which is known to have one.
    """
    config, exporting = request.config, made.export
    is_derived = exporting is not None and exporting.section.part == DECODER and exporting.section.derived
    if not request.or_whole or not is_derived or not isinstance(config, ConfigRequest):
        raise error
    whole = replace(config, export=replace(config.export, part=WHOLE))
    warning = f"export: the decoder could not be exported with its cache: {error.message}"
    return _make_config(replace(request, config=whole), on_event, worker), (warning,)


def _stage_names(request: BuildRequest, made: MadeConfig) -> tuple[str, ...]:
    """The stages that a build reports, in their order."""
    config = made.config
    wanted = {
        EXPORT_STAGE.name: made.export is not None,
        OPTIMIZE.name: config.optimize is not None,
        build_analysis.STAGE: request.analyze,
        QUANTIZE.name: config.quantize is not None,
        COMPILE.name: config.compile is not None,
        build_proof.STAGE: request.prove and request.proof is None,
    }
    return tuple(name for name, is_wanted in wanted.items() if is_wanted)


def _make_config(request: BuildRequest, on_event: OnEvent, worker: Worker) -> MadeConfig:
    if isinstance(request.config, ConfigRequest):
        return configs.make(request.config, worker, on_event=on_event, timeout_s=request.timeout_s)
    config = request.config if isinstance(request.config, BuildConfig) else configs.load(request.config, request.trust)
    config = replace(config, model=request.model or config.model)
    return configs.complete(config, worker, trust_remote_code=request.trust_remote_code)


def _plan(
    request: BuildRequest, made: MadeConfig, exported: Exported | None, source: Source, cache: Cache
) -> _BuildPlan:
    # What a build's result depends on: the model's content and the sections, not the location of any file.
    identity = identity_of(to_json(made.config), source.artifact.digest)
    if request.output is None:
        stem = Path(made.config.model or "").stem if exported is None else exported.located.name
        folder = cache.builds / f"{stem}-{identity.removeprefix(digest.PREFIX)[:16]}"
        atomic.make_folder(folder.parent)
    else:
        folder = folders.place(request.output)
    folders.check(folder, identity, overwrite=request.overwrite)
    section = made.config.quantize
    doubts = () if section is None else tuple(advice.check(section, made.planned.target))
    if exported is not None:
        doubts += tuple(processor_warnings(exported.located.folder))
    return _BuildPlan(made, exported, source, identity, folder, doubts)


def _run_stages(pipeline: Pipeline, request: BuildRequest, plan: _BuildPlan, cache: Cache) -> AnalyzeResult | None:
    """Run every stage; analyze what the optimizer made, or the model itself when it is not optimized."""
    analysis: AnalyzeResult | None = None
    for step in make_steps(plan.config, plan.source):
        if step.stage is not OPTIMIZE and analysis is None and request.analyze:
            analysis = build_analysis.analyze_artifact(pipeline, plan.made.planned, plan.config.session, cache)
        pipeline.run(step)
    if analysis is None and request.analyze:
        analysis = build_analysis.analyze_artifact(pipeline, plan.made.planned, plan.config.session, cache)
    return analysis


def _inputs(plan: _BuildPlan) -> DataSection:
    """What a proof runs on: samples of the calibration data, or what an export was traced with."""
    section, exported = plan.config.quantize, plan.exported
    if section is not None and section.calibration is not None:
        return section.calibration
    if exported is None:
        return build_proof.make_inputs(plan.source.path)
    return replace(export.random_inputs(exported.section), limit=build_proof.SAMPLES)


def deliver(ready: Ready, proof: Proof, attempt: Attempt) -> BuildResult:
    """Fill the build folder and return the result of the build."""
    plan, pipeline, analysis, cache = ready.plan, ready.pipeline, ready.analysis, ready.cache
    config, exported, target = plan.config, plan.exported, plan.made.planned.target
    seconds = time.monotonic() - ready.started
    warnings = (*_warnings(plan, pipeline, analysis), *build_proof.warnings(proof))
    with folders.writing(plan.folder) as staged:
        how = _link(plan, pipeline, cache, staged)
        if analysis is not None:
            folders.write_json(staged / ANALYSIS, analysis)
        if exported is not None:
            folders.write_json(staged / EXPORT, exported.run.report)
        folders.write_json(staged / CONFIG, config)
        decoder = _find_decoder(plan, staged / MODEL)
        if decoder is not None:
            folders.write_json(staged / GENAI_CONFIG, make_genai_config(decoder, file=MODEL))
        names = sorted(path.relative_to(staged).as_posix() for path in staged.rglob("*") if path.is_file())
        manifest = BuildManifest(
            winml=__version__,
            identity=plan.identity,
            target=target,
            precision=config.precision,
            source=BuildSource(
                path=str(plan.source.path) if exported is None else exported.located.reference,
                artifact=plan.source.artifact,
            ),
            artifact=ManifestArtifact(file=MODEL, digest=pipeline.artifact.digest),
            stages=tuple(run.record() for run in pipeline.runs),
            skipped=tuple(n for n in ("export", "optimize", "quantize", "compile") if getattr(config, n) is None),
            calibration=None if config.quantize is None else config.quantize.calibration,
            placement=build_analysis.placement(analysis),
            seconds=seconds,
            files_by=how,
            folder=tuple(names),
            objects={**_objects(pipeline), **_processor(plan, cache)},
            proof=proof,
            fallbacks=attempt.fallbacks,
            warnings=warnings,
        )
        folders.write_json(staged / MANIFEST, manifest)
    model = plan.folder / MODEL
    size = sum((plan.folder / name).stat().st_size for name in pipeline.artifact.files)
    return BuildResult(
        model=config.model or "",
        target=target,
        precision=config.precision,
        folder=str(plan.folder),
        artifact=BuiltArtifact(path=str(model), digest=pipeline.artifact.digest, bytes=size),
        stages=tuple(run.summarize() for run in pipeline.runs),
        analysis=None if analysis is None else build_analysis.counts(analysis),
        proof=proof,
        fallbacks=attempt.fallbacks,
        files_by=how,
        seconds=seconds,
        notes=(*attempt.notes, *plan.made.notes, *_stage_lines(pipeline, "notes")),
        warnings=warnings,
    )


def _link(plan: _BuildPlan, pipeline: Pipeline, cache: Cache, staged: Path) -> FilesBy:
    """Fill the folder: every stage's files, and the last model once more as `model.onnx`."""
    if not pipeline.runs:
        for name, file in plan.source.files.items():
            cache.objects.link_out(cache.objects.put_file(file), staged / name)
        plan.source.check_unchanged()
    ways = [folders.link_files(cache.objects, run.artifact.files, staged) for run in pipeline.runs]
    ways.append(folders.link_files(cache.objects, _processor(plan, cache), staged))
    last = pipeline.artifact
    ways.append(folders.link_files(cache.objects, {MODEL: last.files[last.main]}, staged))
    return "copy" if "copy" in ways else "link"


def _find_decoder(plan: _BuildPlan, model: Path) -> DecoderFolder | None:
    """How to run what was built step by step, where it is a decoder; `model` is its artifact."""
    exported = plan.exported
    if exported is None:
        return _source_decoder(plan)
    return describe_decoder(exported.located.folder, model) if exported.section.part == DECODER else None


def _source_decoder(plan: _BuildPlan) -> DecoderFolder | None:
    """The decoder folder whose model is built: what is built of it generates text as well.

    For an NPU its shapes are fixed, so that no text can grow.
    """
    path = plan.source.path
    if plan.exported is not None or plan.made.planned.target.device == "npu" or not is_decoder_folder(path.parent):
        return None
    try:
        found = read_decoder_folder(path.parent)
    except ModelFileError:  # of several parts: this one is built as the graph that it is
        return None
    if found.model.resolve() != path.resolve():
        return None
    check_graph(found)
    return found


def _processor(plan: _BuildPlan, cache: Cache) -> dict[str, str]:
    """What makes the inputs of an exported model and names its classes, for users of the artifact."""
    if plan.exported is not None:
        return processor_objects(plan.exported.located.folder, cache)
    if _source_decoder(plan) is None:
        return {}
    files = processor_objects(ModelFolder(plan.source.path.parent), cache)
    return {name: stored for name, stored in files.items() if name not in _OWN_FILES}


def _objects(pipeline: Pipeline) -> dict[str, str]:
    """The files of the folder that are objects of the store."""
    last = pipeline.artifact
    named = {name: value for run in pipeline.runs for name, value in run.artifact.files.items()}
    return {**last.files, **named, MODEL: last.files[last.main]}


def _stage_lines(pipeline: Pipeline, kind: str) -> list[str]:
    """The `notes` or `warnings` of every stage."""
    return [f"{run.step.stage.name}: {text}" for run in pipeline.runs for text in run.report.get(kind, ())]


def _text_warnings(plan: _BuildPlan) -> list[str]:
    """What a decoder folder will lack: its tokenizer, or all that makes it one."""
    path, exported = plan.source.path, plan.exported
    if exported is not None:
        is_decoder, folder = exported.section.part == DECODER, exported.located.folder.path
    else:
        is_decoder, folder = _source_decoder(plan) is not None, path.parent
    if is_decoder:
        if (folder / TOKENIZER).is_file():
            return []
        return [f"there is no {TOKENIZER} in `{folder}`: `winml eval` of what is built needs `--processor DIR`"]
    if exported is None and is_decoder_folder(path.parent) and plan.made.planned.target.device != "npu":
        try:
            read_decoder_folder(path.parent)
        except ModelFileError as error:
            return [f"what is built does not generate text, because its config is not read: {error.message}"]
    return []


def _warnings(plan: _BuildPlan, pipeline: Pipeline, analysis: AnalyzeResult | None) -> list[str]:
    found = [*plan.doubts, *_stage_lines(pipeline, "warnings"), *_text_warnings(plan)]
    section = plan.config.quantize
    if section is not None and section.calibration is not None and section.calibration.source == RANDOM:
        found.append("calibrated on random inputs; measure the accuracy with `winml eval` before you use it")
    return found + build_analysis.warnings(analysis)

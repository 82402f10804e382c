"""Hugging Face models on their way to ONNX: where a reference is found, and its export from the cache."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from importlib import metadata
from pathlib import Path

from winml.modelkit import __version__
from winml.modelkit.building.events import StageDone, StageStarted
from winml.modelkit.building.export import genai, warm
from winml.modelkit.building.export.derivation import InputDerivation
from winml.modelkit.building.export.families import has_decoder
from winml.modelkit.building.export.folder import ModelFolder, Weights
from winml.modelkit.building.export.resolve import (
    ExportOptions,
    is_derived,
    parts_of,
    refuse_remote_code,
    resolve,
    signature_of,
    task_of,
)
from winml.modelkit.building.export.table import DERIVE_VERSION, libraries_of
from winml.modelkit.building.manifest import BuildManifest, BuildSource, ManifestArtifact
from winml.modelkit.building.pipeline import folder as folders
from winml.modelkit.building.pipeline.artifact import Source, hash_source
from winml.modelkit.building.pipeline.run import Pipeline, StageRun, Step
from winml.modelkit.building.pipeline.table import EXPORT as EXPORT_STAGE
from winml.modelkit.core.build_folder import EXPORT, MANIFEST, MODEL
from winml.modelkit.core.config import ExportSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import UnavailableError
from winml.modelkit.core.events import HubWaiting, OnEvent, ignore
from winml.modelkit.core.generation import INSTALL_GENAI
from winml.modelkit.core.model_ref import CONFIG, ModelRef
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import read, to_json
from winml.modelkit.data.answers import HubModel
from winml.modelkit.graph.signature import Signature
from winml.modelkit.store import atomic, digest
from winml.modelkit.store.cache import Cache
from winml.modelkit.store.stage_cache import StageKey
from winml.modelkit.worker.client import Worker
from winml.modelkit.worker.scratch import ScratchFolder

INSTALL = "install torch==2.13.0 by that pin, then `pip install 'winml-modelkit[hf]'`"


@dataclass(frozen=True)
class Located:
    """A model folder on this machine, and the reference that finds the same one again."""

    folder: ModelFolder
    reference: str

    @property
    def name(self) -> str:
        """A name for its files."""
        return self.reference.partition("@")[0].rstrip("/\\").replace("\\", "/").rpartition("/")[2] or "model"


@dataclass(frozen=True)
class ExportPlan:
    """What is exported, and how."""

    located: Located
    section: ExportSection
    trust_remote_code: bool = False

    @property
    def signature(self) -> Signature:
        """The inputs that the model will have."""
        return signature_of(self.located.folder, self.section)


@dataclass(frozen=True)
class Exporting:
    """How exports run."""

    cache: Cache = field(default_factory=Cache)
    on_event: OnEvent = ignore
    rebuild: bool = False
    timeout_s: float | None = None
    start: Callable[[], Worker] = warm.start


@dataclass(frozen=True)
class Exported:
    """A model that was exported, and a folder that holds it with the files of its processor."""

    located: Located
    section: ExportSection
    source: Source
    run: StageRun
    folder: Path

    @property
    def path(self) -> Path:
        return self.folder / MODEL


def locate(ref: ModelRef, *, weights: bool = True, code: bool = False, on_event: OnEvent = ignore) -> Located:
    """The folder of a model; one of the hub is fetched, and its revision pinned to a commit."""
    if ref.kind == "folder":
        folder = Path(ref.source).absolute()
        return Located(ModelFolder(folder), str(folder))
    with Worker() as worker:
        args = {"repo": ref.repo, "revision": ref.revision, "weights": weights, "code": code}
        what = f"fetching `{ref}`"
        answer = worker.ask(HubModel, "data.hub_model", args, what=what, events=HubWaiting, on_event=on_event)
    return Located(ModelFolder(answer.folder), f"{ref.repo}@{answer.revision}")


def hub_weights(ref: ModelRef) -> Weights:
    """What the hub reports of a model's weights, without fetching them."""
    with Worker() as worker:
        args = {"repo": ref.repo, "revision": ref.revision}
        answer = worker.call("data.hub_weights", args, what=f"asking about `{ref}`")
    types = None if answer is None else read(Mapping[str, int], answer)  # type: ignore[type-abstract]
    return Weights(None if types is None else sum(types.values()), types or {}, None)


def fetch_file(ref: ModelRef, on_event: OnEvent = ignore) -> Path:
    """An ONNX file of the hub, on this machine."""
    with Worker() as worker:
        args = {"repo": ref.repo, "revision": ref.revision, "file": ref.file}
        what = f"fetching `{ref}`"
        return worker.ask(Path, "data.hub_file", args, what=what, events=HubWaiting, on_event=on_event)


def find_derivation(
    located: Located,
    options: ExportOptions,
    cache: Cache | None = None,
    on_event: OnEvent = ignore,
    timeout_s: float | None = None,
    start: Callable[[], Worker] = warm.start_class,
) -> InputDerivation | None:
    """The inputs of a model that is in no table, from the cache or from a worker that runs its class; None for others.

    They follow from the config, the processor and the code; weights do not matter.
    """
    folder = located.folder
    refuse_remote_code(folder, trust_remote_code=options.trust_remote_code)
    if not is_derived(folder, options):
        return None
    folder.require_type()
    task = task_of(folder, options.task)
    files = {CONFIG: folder.path / CONFIG, **folder.processor_files()}
    if folder.remote_code:
        files |= {path.relative_to(folder.path).as_posix(): path for path in sorted(folder.path.rglob("*.py"))}
    source = hash_source(files, main=CONFIG).artifact
    key = StageKey("derive", DERIVE_VERSION, {"task": task}, source.digest, _libraries())
    stages = (cache or Cache()).stages
    with stages.computing(key):
        entry = stages.find(key)
        if entry is not None:
            return read(InputDerivation, entry.info)
        args = {"folder": folder.path, "task": task, "trust_remote_code": options.trust_remote_code}
        started = time.monotonic()
        on_event(StageStarted(key.stage, hit=False))
        with start() as worker:
            what = "deriving the inputs of the model"
            found = worker.ask(InputDerivation, "stages.derive", args, timeout_s=timeout_s, what=what)
        on_event(StageDone(key.stage, hit=False, seconds=time.monotonic() - started))
        with ScratchFolder("winml-derive-") as scratch:
            stored = scratch / "derivation.json"
            folders.write_json(stored, found)
            stages.store(key, {stored.name: stored}, to_json(found))
    return found


def run_export(plan: ExportPlan, exporting: Exporting) -> Exported:
    """The export of a model, from the cache or from a worker of its own."""
    located, section = plan.located, plan.section
    files = located.folder.content_files(code=bool(located.folder.remote_code))
    source = hash_source(files, main=CONFIG)
    pipeline = Pipeline(
        source,
        cache=exporting.cache,
        start=exporting.start,
        on_event=exporting.on_event,
        rebuild=exporting.rebuild,
        timeout_s=exporting.timeout_s,
    )
    arguments = {"trust_remote_code": plan.trust_remote_code}
    run = pipeline.run(Step(EXPORT_STAGE, to_json(section), _libraries(section.exporter), arguments))
    return Exported(located, section, source, run, _folder(located, source, run, exporting.cache))


def export_whole(ref: ModelRef, exporting: Exporting) -> Exported:
    """The whole of a model that a command wants to run, exported for the task that it was saved for."""
    located = locate(ref, on_event=exporting.on_event)
    options = ExportOptions(task=ref.task)
    derived = find_derivation(located, options, exporting.cache, exporting.on_event, exporting.timeout_s)
    return run_export(ExportPlan(located, resolve(located.folder, options, derived=derived)), exporting)


def export_parts(ref: ModelRef, options: ExportOptions, exporting: Exporting) -> None:
    """Put the export of every part of a model into the cache, where builds for any target find it.

    A decoder has other parts for an NPU than for other devices, so that its builds export what they need.
    """
    located = locate(ref, on_event=exporting.on_event)
    if has_decoder(located.folder.family, task_of(located.folder, options.task)):
        return
    derived = find_derivation(
        located, options, exporting.cache, exporting.on_event, exporting.timeout_s, exporting.start
    )
    if derived is not None and derived.has_decoder and options.part is None:
        return
    for part in parts_of(located.folder, options, derived):
        run_export(ExportPlan(located, resolve(located.folder, options, part, derived)), exporting)


def _libraries(exporter: str = "transformers") -> dict[str, str]:
    """Versions of what an export depends on; an error says how to get what is missing."""
    if exporter == genai.EXPORTER and not genai.is_installed():
        raise UnavailableError("building by onnxruntime-genai needs the package", hint=INSTALL_GENAI)
    try:
        return {name: metadata.version(name) for name in libraries_of(exporter)}
    except metadata.PackageNotFoundError as error:
        raise UnavailableError(
            f"exporting a Hugging Face model needs the Python package `{error.name}`", hint=INSTALL
        ) from error


def _folder(located: Located, source: Source, run: StageRun, cache: Cache) -> Path:
    """A folder of the cache that any command can open as a build: the model, and what makes its inputs."""
    processor = processor_objects(located.folder, cache)
    identity = digest.of_json({"key": run.key.digest, "processor": processor})
    folder = cache.builds / f"{located.name}-{identity.removeprefix(digest.PREFIX)[:16]}"
    if (folder / MANIFEST).is_file():
        os.utime(folder / MANIFEST)  # garbage collection removes what was not used for the longest time
        return folder
    atomic.make_folder(folder.parent)
    objects = {**run.artifact.files, **processor, MODEL: run.artifact.files[run.artifact.main]}
    with folders.writing(folder) as staged:
        how = folders.link_files(cache.objects, objects, staged)
        folders.write_json(staged / EXPORT, run.report)
        manifest = BuildManifest(
            winml=__version__,
            identity=identity,
            target=Target("cpu", "cpu"),
            precision="fp32",
            source=BuildSource(path=located.reference, artifact=source.artifact),
            artifact=ManifestArtifact(file=MODEL, digest=run.artifact.digest),
            stages=(run.record(),),
            skipped=("optimize", "quantize", "compile"),
            calibration=None,
            placement=None,
            seconds=run.seconds,
            files_by=how,
            folder=tuple(sorted({*objects, EXPORT})),
            objects=objects,
            warnings=tuple(run.report["warnings"]),
        )
        folders.write_json(staged / MANIFEST, manifest)
    return folder


def processor_objects(folder: ModelFolder, cache: Cache) -> dict[str, str]:
    """The files of a model's processor, in the store."""
    return {name: cache.objects.put_file(path) for name, path in folder.processor_files().items()}

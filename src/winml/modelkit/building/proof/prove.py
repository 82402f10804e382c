"""The last step of a build: the artifact is opened on its target, run there and compared with its source."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from winml.modelkit.building.build_analysis import target_libraries
from winml.modelkit.building.compile.result import Validation
from winml.modelkit.building.events import StageDone, StageStarted
from winml.modelkit.building.pipeline.artifact import Artifact
from winml.modelkit.building.pipeline.folder import write_json
from winml.modelkit.building.pipeline.run import Pipeline
from winml.modelkit.building.proof.agreement import judge
from winml.modelkit.building.proof.proof import (
    NOT,
    ON_CPU,
    ON_TARGET,
    ArtifactRun,
    LeastAgreement,
    Proof,
    Reference,
)
from winml.modelkit.building.result import FailedBuild
from winml.modelkit.core.config import RANDOM, BuildConfig, DataSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import (
    CheckFailed,
    ModelkitError,
    RequestError,
    RunFailedError,
    WorkerCrashed,
    WorkerTimeout,
)
from winml.modelkit.core.json_text import read_object
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import read, to_json
from winml.modelkit.data import sizes
from winml.modelkit.ep import options, precision
from winml.modelkit.ep.probing import Planned
from winml.modelkit.session.notes import saturation_notes
from winml.modelkit.store import digest
from winml.modelkit.store.cache import Cache
from winml.modelkit.store.stage_cache import StageEntry, StageKey
from winml.modelkit.worker.client import Worker

STAGE = "prove"
VERSION = 2
"""Raised when the same artifact on the same inputs gives other numbers."""
SAMPLES = 4
"""How many synthetic inputs are used where there is no data."""
SECONDS = 300.0
"""How long a proof may take: a simulator runs a large model for hours."""
SWITCHED_OFF = "switched off"
CPU = Target("cpu", "cpu")
FILE = "proof.json"
SAMPLE_FOLDER = "samples"


@dataclass(frozen=True)
class Subject:
    """What is proven, and against what."""

    config: BuildConfig
    planned: Planned
    reference: Path
    reference_digest: str
    data: DataSection
    """Where inputs come from."""
    model_folder: Path
    uncompiled: Artifact
    """What the compiler was given; the artifact itself where nothing is compiled."""
    unloadable: str | None = None
    """Why the compiled form does not open on this machine though it may on another."""
    seconds: float = SECONDS
    advice: str | None = None
    """What to do about an artifact that fails; None where another precision may help."""

    @property
    def session(self) -> SessionSection:
        """How the artifact is opened; a simulator gets the device it was compiled for."""
        section, compiler = self.config.session, self.config.compile
        given = options.for_session(self.planned.target, section.ep_options)
        if compiler is not None and self.planned.target.simulated:
            given = {**options.device_choice(self.planned.target, compiler.provider_options), **given}
        return replace(section, ep_options=given)

    @property
    def here(self) -> bool:
        return self.planned.here is not None

    @property
    def target(self) -> Target:
        """Where it runs."""
        return self.planned.target if self.here else CPU

    @property
    def limit(self) -> float:
        return precision.agreement(self.planned.target, self.config.precision)


def unproven(reason: str, limit: float | None = None) -> Proof:
    """A proof without a result, and why."""
    return Proof(status=NOT, reason=reason, limit=limit)


def warnings(proof: Proof) -> list[str]:
    """Warnings about relying on the artifact; none where no proof was requested."""
    if proof.limit is None:
        return []
    if proof.status == NOT:
        return [f"the artifact is not proven: {proof.reason}"]
    compiled = [] if proof.compiled is None else [f"compiled form not proven: {proof.compiled}"]
    return [*compiled, *saturation_notes(proof.weights_at_risk)]


def unloadable(validation: Validation | None) -> str | None:
    """Why a compiled form does not open on this machine, which need not be the one it is for; None where it does."""
    if validation is None or validation.status != "not-validated" or validation.comparisons.source is not None:
        return None
    return str(validation.reason)


def make_inputs(model: Path) -> DataSection:
    """Synthetic inputs of the sizes that are known of a model; without sizes a proof reports that there are none."""
    data = DataSection(RANDOM, limit=SAMPLES)
    try:
        return sizes.random_data(data, model)
    except RequestError:
        return data


@dataclass(frozen=True)
class Place:
    """Where a proof runs."""

    pipeline: Pipeline
    cache: Cache
    worker: Worker
    part: str | None = None
    """The part of a composite model that is proven; None for a model on its own."""
    earlier: Mapping[str, Path] = field(default_factory=dict)
    """Where the parts before it left what they took and gave."""


def prove(subject: Subject, place: Place) -> Proof:
    """What the artifact computes where it is to run; raises when it is refused there, or computes something else."""
    key = _key(subject, place.pipeline)
    with _step(place) as step:
        entry = None if place.pipeline.rebuild else place.cache.stages.find(key)
        step.hit = entry is not None
        if entry is not None:
            step.found = _load(place.cache, entry)
        else:
            with place.pipeline.work_folder() as folder:
                step.found = _measure(subject, place, folder)
                _keep(place.cache, key, step.found, folder)
        return step.judge(subject)


def prove_parts(subjects: Mapping[str, tuple[Subject, Place]]) -> dict[str, Proof]:
    """The proof of every part of a composite model, each run on what the parts before it give."""
    keys: dict[str, StageKey] = {}
    for part, (subject, place) in subjects.items():
        keys[part] = _key(subject, place.pipeline, before=[key.digest for key in keys.values()])
    _, (_, first) = next(iter(subjects.items()))
    entries = {} if first.pipeline.rebuild else {part: first.cache.stages.find(key) for part, key in keys.items()}
    known = {part: entry for part, entry in entries.items() if entry is not None}
    proofs: dict[str, Proof] = {}
    # A part is run on what those before it gave, so that all of them run when one has to.
    with first.pipeline.work_folder() as folder:
        earlier: dict[str, Path] = {}
        for part, (subject, place) in subjects.items():
            here = replace(place, part=part, earlier=dict(earlier))
            with _naming(part), _step(here) as step:
                step.hit = len(known) == len(keys)
                if step.hit:
                    step.found = _load(here.cache, known[part])
                else:
                    (folder / part).mkdir()
                    step.found = _measure(subject, here, folder / part)
                    _keep(here.cache, keys[part], step.found, folder / part)
                    earlier[part] = folder / part / SAMPLE_FOLDER
                proofs[part] = step.judge(subject)
    return proofs


@contextlib.contextmanager
def _naming(part: str) -> Iterator[None]:
    """Errors name the part."""
    try:
        yield
    except (CheckFailed, RunFailedError) as error:
        raise type(error)(
            f"part `{part}`: {error.message}", hint=error.hint, details=error.details, result=error.result
        ) from error


@dataclass
class _Step:
    """A proof as a step of a build."""

    started: float
    hit: bool = False
    found: ArtifactRun = ArtifactRun(samples=0)

    def judge(self, subject: Subject) -> Proof:
        return _judge(subject, self.found, hit=self.hit, seconds=time.monotonic() - self.started)


@contextlib.contextmanager
def _step(place: Place) -> Iterator[_Step]:
    """Report when a proof begins and ends."""
    pipeline = place.pipeline
    pipeline.stage = STAGE
    step = _Step(time.monotonic())
    pipeline.tell(StageStarted(STAGE))
    yield step
    pipeline.tell(StageDone(STAGE, step.hit, time.monotonic() - step.started))


def _load(cache: Cache, entry: StageEntry) -> ArtifactRun:
    return read(ArtifactRun, read_object(cache.objects.open_path(entry.files[FILE])), strict=False)


def _keep(cache: Cache, key: StageKey, found: ArtifactRun, folder: Path) -> None:
    """Keep what was measured; a reason why nothing was measured may no longer hold the next time."""
    if found.reason is None:
        write_json(folder / FILE, found)
        cache.stages.store(key, {FILE: folder / FILE}, {})


def _key(subject: Subject, pipeline: Pipeline, before: Sequence[str] = ()) -> StageKey:
    """What a proof depends on; `before` are the keys of the parts that it is run on."""
    artifact = subject.uncompiled if subject.unloadable else pipeline.artifact
    return StageKey(
        stage=STAGE,
        stage_version=VERSION,
        section={
            **subject.target.to_json(),
            "session": to_json(subject.session),
            "source": subject.reference_digest,
            "inputs": digest.of_json(to_json(subject.data)),
            **({"before": list(before)} if before else {}),
        },
        parent=artifact.digest,
        libraries=target_libraries(subject.planned),
    )


def _measure(subject: Subject, place: Place, folder: Path) -> ArtifactRun:
    """Distances of outputs, or the reason why there are none."""
    plain = place.pipeline.materialize(folder / "plain", subject.uncompiled)
    artifact = plain if subject.unloadable else place.pipeline.materialize(folder / "artifact")
    samples = folder / SAMPLE_FOLDER
    samples.mkdir()
    try:
        return _run(subject, place, artifact, plain, samples)
    except WorkerTimeout:
        return ArtifactRun(samples=0, reason=f"it took longer than {subject.seconds:g} s")


def _run(subject: Subject, place: Place, artifact: Path, plain: Path, samples: Path) -> ArtifactRun:
    deadline = time.monotonic() + subject.seconds
    linked = {"part": place.part, "earlier": {part: str(folder) for part, folder in place.earlier.items()}}
    expected = _reference(subject, place.worker, plain, {**linked, "folder": str(samples)})
    here = subject.planned.here
    args = {
        **linked,
        "model": str(artifact),
        "ep": subject.target.ep,
        "device": subject.target.device,
        "simulated": subject.target.simulated,
        "session": to_json(_session(subject, expected.dims)),
        "distribution": None if here is None else here.installed.package.distribution,
        "folder": str(samples),
        "samples": expected.samples,
        "seconds": subject.seconds,
    }
    left = max(1.0, deadline - time.monotonic())
    with _alive(place.worker, None if here is None else here.installed.python) as runner:
        try:
            found = runner.ask(ArtifactRun, "evaluate.prove", args, timeout_s=left, what="running the artifact")
        except WorkerTimeout:
            raise
        except RunFailedError as error:
            raise _explain_failure(subject, error) from error
    return replace(found, reason=expected.reason, data=subject.data.source)


def _reference(subject: Subject, worker: Worker, plain: Path, linked: Mapping[str, Any]) -> Reference:
    """What the source computes; a source that crashes its process says nothing about the artifact."""
    args = {
        **linked,
        "source": str(subject.reference),
        "artifact": str(plain),
        "data": to_json(subject.data),
        "model_folder": str(subject.model_folder),
        "seconds": subject.seconds,
    }
    try:
        with _alive(worker) as runner:
            what = "running the source on the CPU"
            return runner.ask(Reference, "evaluate.reference", args, timeout_s=subject.seconds, what=what)
    except WorkerCrashed as error:
        return Reference(samples=0, dims={}, reason=error.message)


def _session(subject: Subject, dims: Mapping[str, int]) -> SessionSection:
    """How the result is opened; NPUs need sizes for what is still open."""
    section = subject.session
    if not subject.here:
        # Options of an EP that is not installed mean nothing to the CPU.
        return SessionSection(threads=section.threads, optimization_level=section.optimization_level)
    given = options.with_threads(subject.target, section.ep_options, section.threads)
    fixed = {**section.fixed_dims, **dims} if subject.target.device == "npu" else section.fixed_dims
    return replace(section, ep_options=options.check_options(subject.target, given), fixed_dims=fixed)


@contextlib.contextmanager
def _alive(worker: Worker, python: str | None = None) -> Iterator[Worker]:
    """The warm process; a new one where it has ended, or where another environment is needed."""
    if python is None and worker.alive:
        yield worker
        return
    with Worker(python=python) as other:
        yield other


def advise(subject: Subject) -> str:
    """What to do about an artifact that fails."""
    if subject.advice is not None:
        return subject.advice
    section = subject.config.quantize
    data = section is not None and section.calibration is not None
    after = precision.next_precision(subject.planned.target, subject.config.precision, data=data)
    way = "`--no-prove` delivers it anyway"
    return way if after is None else f"try `-p {after}`, or let `--fallback-precision` do that; {way}"


def _explain_failure(subject: Subject, error: ModelkitError) -> ModelkitError:
    return type(error)(
        f"the artifact does not run on `{subject.target}`: {error.message}",
        hint=advise(subject),
        details=error.details,
        result=FailedBuild(proof=unproven(error.message, subject.limit)),
    )


def _judge(subject: Subject, found: ArtifactRun, *, hit: bool, seconds: float) -> Proof:
    if found.reason is not None:
        return replace(unproven(found.reason, subject.limit), seconds=seconds, placement=found.placement)
    agreement = judge(found.outputs, subject.limit)
    proof = Proof(
        status=(ON_TARGET if subject.here else ON_CPU) if agreement.answer == "reached" else NOT,
        reason=agreement.reason,
        on=str(subject.target),
        compiled=subject.unloadable,
        agreement=LeastAgreement(output=agreement.output, cosine=agreement.cosine),
        limit=subject.limit,
        outputs=found.outputs,
        samples=found.samples,
        data=found.data,
        placement=found.placement,
        weights_at_risk=found.weights_at_risk,
        cache="hit" if hit else "miss",
        seconds=seconds,
    )
    if agreement.answer == "missed":
        where = f"`{subject.target}`{' (simulated)' if subject.target.simulated else ''}"
        raise CheckFailed(
            f"on {where} {agreement.reason}; precision {subject.config.precision} must reach a cosine of "
            f"{subject.limit:g}",
            hint=advise(subject),
            result=FailedBuild(proof=proof),
        )
    return proof

"""The proof of `winml compile`: the same as a build's, for every model compiled alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from winml.modelkit.building.compile.parity import NO_VALIDATE
from winml.modelkit.building.compile.result import SourceFacts, Validation
from winml.modelkit.building.compile.stage import CompileInput, Settings, read_reports
from winml.modelkit.building.pipeline.artifact import Artifact, read_source
from winml.modelkit.building.pipeline.run import Pipeline
from winml.modelkit.building.proof import prove as build_proof
from winml.modelkit.building.proof.proof import Proof
from winml.modelkit.core.config import SCHEMA, BuildConfig
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.events import ignore
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.ep import options, precision
from winml.modelkit.ep.probing import Planned
from winml.modelkit.store.cache import Cache
from winml.modelkit.store.stage_cache import StageEntry
from winml.modelkit.worker.client import Worker


@dataclass(frozen=True)
class Prover:
    """Opens compiled models on their target, runs them and compares them with their sources on the CPU."""

    planned: Planned
    settings: Settings
    cache: Cache
    worker: Worker
    seconds: float = build_proof.SECONDS

    def __call__(self, model: CompileInput, facts: SourceFacts, entry: StageEntry) -> Proof:
        """The proof of one model; raises when its target refuses it or computes something else."""
        external = tuple(Path(file) for file in facts.states if Path(file) != model.path)
        source = read_source(model.path, external)
        pipeline = Pipeline(source, cache=self.cache, start=Worker, on_event=ignore, rebuild=not self.settings.reuse)
        pipeline.artifact = Artifact(model.output, dict(entry.files))
        subject = build_proof.Subject(
            config=self._config(facts),
            planned=self.planned,
            reference=source.path,
            reference_digest=source.artifact.digest,
            data=build_proof.make_inputs(source.path),
            model_folder=source.path.parent,
            uncompiled=source.artifact,
            unloadable=build_proof.unloadable(read_reports(entry)[0].validation),
            seconds=self.seconds,
            advice=NO_VALIDATE,
        )
        return build_proof.prove(subject, build_proof.Place(pipeline, self.cache, self.worker))

    def _config(self, facts: SourceFacts) -> BuildConfig:
        """What a build of the same model would prove."""
        target, section = self.planned.target, self.settings.section
        return BuildConfig(
            schema=SCHEMA,
            target=str(target),
            precision=precision.precision_for(facts.precision),
            compile=section,
            session=SessionSection(ep_options=options.for_session(target, section.provider_options)),
        )


def of_shared(proof: Proof, validation: Validation | None) -> Proof:
    """The proof of a model that shares a context: that of the same model alone, less what only that one shows."""
    reason = build_proof.unloadable(validation)
    return proof if reason is None else replace(proof, compiled=reason)

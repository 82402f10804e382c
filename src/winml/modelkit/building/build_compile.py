"""The compile stage of a build: the same as `winml compile`, on what the build has so far."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from winml.modelkit.building.compile.command import compile_settings, sdk_tools
from winml.modelkit.building.compile.parity import NO_VALIDATE
from winml.modelkit.building.compile.result import CompileReport
from winml.modelkit.building.compile.stage import CompileInput, CompileOutcome, CompileStage, Settings
from winml.modelkit.building.events import StageStarted, tell_steps
from winml.modelkit.building.pipeline.artifact import Artifact
from winml.modelkit.building.pipeline.run import Pipeline, StageRun, Step
from winml.modelkit.building.pipeline.table import COMPILE
from winml.modelkit.building.proof import prove as build_proof
from winml.modelkit.core.config import CompileSection
from winml.modelkit.core.values import read, to_json
from winml.modelkit.ep.probing import Planned
from winml.modelkit.store.cache import Cache
from winml.modelkit.store.stage_cache import Explanation

UNCOMPILED = "`--no-compile` skips the stage; the execution provider then compiles the model each time it is opened"


def settings_for(section: CompileSection, planned: Planned, *, rebuild: bool, timeout_s: float | None) -> Settings:
    """How the build compiles; raises when it cannot, before any stage has run."""
    installed = None if planned.here is None else planned.here.installed
    found = compile_settings(section, planned.target, installed, sdk_tools())
    return replace(found, reuse=not rebuild, timeout_s=timeout_s)


def compile_artifact(pipeline: Pipeline, settings: Settings, cache: Cache) -> StageRun:
    """Compile what the build has so far and make it the artifact."""
    started = time.monotonic()
    pipeline.stage = COMPILE.name
    pipeline.tell(StageStarted(COMPILE.name))
    with pipeline.work_folder() as folder:
        model = CompileInput(pipeline.materialize(folder), COMPILE.file)
        stage = CompileStage(settings, cache=cache, on_event=tell_steps(pipeline.tell))
        outcome = stage.run([model])
        error = outcome.errors.get(model)
        if error is not None:
            # A build offers another option than `winml compile`.
            hint = UNCOMPILED if error.hint == NO_VALIDATE else error.hint
            raise error.with_message(error.message, hint=hint)
    run = _stage_run(pipeline, settings, outcome, model, time.monotonic() - started)
    pipeline.finish(run)
    return run


def unloadable(runs: Sequence[StageRun]) -> str | None:
    """Why the compiled form does not open on this machine; None where it does, and where nothing was compiled."""
    compiled = next((run for run in runs if run.step.stage is COMPILE), None)
    return (
        None
        if compiled is None
        else build_proof.unloadable(read(CompileReport, compiled.report, strict=False).validation)
    )


def _stage_run(
    pipeline: Pipeline, settings: Settings, outcome: CompileOutcome, model: CompileInput, seconds: float
) -> StageRun:
    made = outcome.made[model]
    section = {**settings.target.to_json(), **to_json(settings.section)}
    step = Step(COMPILE, section, settings.libraries or {})
    reason = "the same key was stored before" if made.cached else "compiled now"
    return StageRun(
        step=step,
        key=step.key(pipeline.artifact.digest),
        artifact=Artifact(Path(model.output).name, dict(outcome.files)),
        report=to_json(made.report),
        explanation=Explanation(made.cached, (), reason),
        seconds=seconds,
    )

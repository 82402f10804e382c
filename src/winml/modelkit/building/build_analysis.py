"""The analysis a build asks for after optimize, kept in the cache like a stage."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from winml.modelkit import __version__
from winml.modelkit.building.analysis.command import AnalyzeRequest, analyze
from winml.modelkit.building.analysis.result import AnalyzeResult
from winml.modelkit.building.events import tell_steps
from winml.modelkit.building.pipeline.folder import write_json
from winml.modelkit.building.pipeline.run import Pipeline
from winml.modelkit.building.result import OperatorCounts
from winml.modelkit.core.build_folder import ANALYSIS
from winml.modelkit.core.json_text import read_object
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.values import read, to_json
from winml.modelkit.ep.probing import Planned
from winml.modelkit.store.cache import Cache
from winml.modelkit.store.stage_cache import StageEntry, StageKey

STAGE = "analyze"


def target_libraries(planned: Planned) -> dict[str, str]:
    """What the answer depends on: our tables, the runtime, and the EP where it is installed."""
    names = ["onnxruntime"]
    if planned.here is not None:
        names.append(planned.here.installed.package.distribution)
    found = {"winml-modelkit": __version__}
    for name in dict.fromkeys(names):
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # an EP in an environment of its own; its interpreter identifies it
            assert planned.here is not None
            found[name] = str(planned.here.installed.python)
    return found


def analyze_artifact(pipeline: Pipeline, planned: Planned, session: SessionSection, cache: Cache) -> AnalyzeResult:
    """The analysis of the current model on the target."""
    key = StageKey(
        stage=STAGE,
        stage_version=2,
        section={**planned.target.to_json(), "ep_options": dict(session.ep_options)},
        parent=pipeline.artifact.digest,
        libraries=target_libraries(planned),
    )

    def load(entry: StageEntry) -> AnalyzeResult:
        return read(AnalyzeResult, read_object(cache.objects.open_path(entry.files[ANALYSIS])), strict=False)

    def ask(folder: Path) -> tuple[AnalyzeResult, dict[str, Path]]:
        request = AnalyzeRequest(
            model=str(pipeline.materialize(folder)),
            shown_as=pipeline.artifact.main,
            targets=(str(planned.target),),
            ep_options=dict(session.ep_options),
            fusions=False,
        )
        found = analyze(request, tell_steps(pipeline.tell))
        if found.targets[0].status == "failed":
            return found, {}  # a crash or a timeout is no answer
        write_json(folder / ANALYSIS, found)
        return found, {ANALYSIS: folder / ANALYSIS}

    return pipeline.remember(key, load, ask)


def counts(analysis: AnalyzeResult) -> OperatorCounts:
    """Operator types by what the target does with them, and how that is known."""
    answered = analysis.targets[0]
    return OperatorCounts(
        supported=answered.counts.supported,
        partial=answered.counts.partial,
        unsupported=answered.counts.unsupported,
        unknown=answered.counts.unknown,
        source=answered.source.kind,
    )


def placement(analysis: AnalyzeResult | None) -> dict[str, int | str] | None:
    """Where the nodes of the analyzed model went; None when the target was not asked or did not answer."""
    found = None if analysis is None else analysis.targets[0].placement
    return None if analysis is None or found is None else {"of": analysis.model, **to_json(found)}


def warnings(analysis: AnalyzeResult | None) -> list[str]:
    """Warnings about the artifact on its target."""
    if analysis is None:
        return []
    answered = analysis.targets[0]
    found = [hazard.message for hazard in answered.hazards]
    if answered.error is not None:
        found.append(f"{answered.target} could not open {analysis.model}: {answered.error.message}")
    if answered.left:
        found.append(f"{len(answered.left)} nodes of {analysis.model} do not run on {answered.target}")
    return found

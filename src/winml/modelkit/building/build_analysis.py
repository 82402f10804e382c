"""The analysis a build asks for after optimize, kept in the cache like a stage."""

from __future__ import annotations

import time
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from winml.modelkit import __version__
from winml.modelkit.building.analysis.command import AnalyzeRequest, analyze
from winml.modelkit.building.events import StageDone, StageStarted
from winml.modelkit.building.pipeline.folder import write_json
from winml.modelkit.building.pipeline.run import Pipeline
from winml.modelkit.core.build_folder import ANALYSIS
from winml.modelkit.core.json_text import read_object
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.values import to_json
from winml.modelkit.ep.probing import Planned
from winml.modelkit.store.cache import Cache
from winml.modelkit.store.stage_cache import StageEntry, StageKey

COUNTS = ("supported", "partial", "unsupported", "unknown")


def target_libraries(planned: Planned) -> dict[str, str]:
    """What the answer depends on: our tables, the runtime, and the EP where it is here."""
    names = ["onnxruntime"]
    if planned.here is not None:
        names.append(planned.here.installed.package.distribution)
    found = {"winml-modelkit": __version__}
    for name in dict.fromkeys(names):
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # an EP in an environment of its own; its interpreter tells it apart
            assert planned.here is not None
            found[name] = str(planned.here.installed.python)
    return found


def analyzed(pipeline: Pipeline, planned: Planned, session: SessionSection, cache: Cache) -> dict[str, Any]:
    """What the target says about the model as it is now."""
    key = StageKey(
        stage="analyze",
        stage_version=2,
        section={**planned.target.to_json(), "ep_options": dict(session.ep_options)},
        parent=pipeline.artifact.digest,
        libraries=target_libraries(planned),
    )
    entry = None if pipeline.rebuild else cache.stages.find(key)
    started, hit = time.monotonic(), entry is not None
    pipeline.tell(StageStarted("analyze", hit))
    value = _asked(pipeline, planned, session, cache, key) if entry is None else _stored(cache, entry)
    pipeline.tell(StageDone("analyze", hit, time.monotonic() - started))
    return value


def _stored(cache: Cache, entry: StageEntry) -> dict[str, Any]:
    return read_object(cache.objects.open_path(entry.files[ANALYSIS]))


def _asked(
    pipeline: Pipeline, planned: Planned, session: SessionSection, cache: Cache, key: StageKey
) -> dict[str, Any]:
    """The answer of the target; a crash or a timeout is none, and may be over the next time, so that it is not kept."""
    with pipeline.work_folder() as folder:
        request = AnalyzeRequest(
            model=str(pipeline.materialize(folder)),
            shown_as=pipeline.artifact.main,
            target=str(planned.target),
            ep_options=dict(session.ep_options),
            fusions=False,
        )
        value: dict[str, Any] = to_json(analyze(request, lambda event: pipeline.tell(event.step)))
        if _target(value)["status"] != "failed":
            write_json(folder / ANALYSIS, value)
            cache.stages.store(key, {ANALYSIS: folder / ANALYSIS}, {})
    return value


def _target(analysis: dict[str, Any]) -> dict[str, Any]:
    answered: dict[str, Any] = analysis["targets"][0]
    return answered


def counts(analysis: dict[str, Any]) -> dict[str, Any]:
    """Operator types by what the target does with them, and how that is known."""
    answered = _target(analysis)
    return {**{name: answered["counts"][name] for name in COUNTS}, "source": answered["source"]["kind"]}


def placement(analysis: dict[str, Any] | None) -> dict[str, Any] | None:
    """Where the nodes of the analyzed model went; None when nobody was asked or nobody answered."""
    found = None if analysis is None else _target(analysis)["placement"]
    return None if analysis is None or found is None else {"of": analysis["model"], **found}


def warnings(analysis: dict[str, Any] | None) -> list[str]:
    """What speaks against the artifact on its target."""
    if analysis is None:
        return []
    answered = _target(analysis)
    found = [str(hazard["message"]) for hazard in answered["hazards"]]
    if answered["error"] is not None:
        found.append(f"{answered['target']} could not take {analysis['model']}: {answered['error']['message']}")
    if answered["left"]:
        found.append(f"{len(answered['left'])} nodes of {analysis['model']} are not taken by {answered['target']}")
    return found

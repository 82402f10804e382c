"""`winml autoconfig`: the fastest config of a model that is still accurate on a target, and the proof."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from winml.modelkit import __version__
from winml.modelkit.building.build import BuildRequest, build
from winml.modelkit.building.proof.prove import handed_over
from winml.modelkit.core import sections
from winml.modelkit.core.errors import Interrupted, ModelkitError, RequestError, RunFailedError
from winml.modelkit.core.events import TargetChosen
from winml.modelkit.measuring.protocols import PROTOCOLS
from winml.modelkit.search import evidence as search_evidence
from winml.modelkit.search import knob_table as search_space
from winml.modelkit.search import result as autoconfig_result
from winml.modelkit.search.gate import Gate
from winml.modelkit.search.guards import Guarded
from winml.modelkit.search.prepare import AutoconfigRequest, OnEvent, Prepared, check, prepared
from winml.modelkit.search.reuse import reused
from winml.modelkit.search.run_folder import JOURNAL, SearchFolder
from winml.modelkit.search.strategy import RACE_ALL, Plan, champion, reserve_s
from winml.modelkit.search.study import FORMS, Study
from winml.modelkit.search.tools import Job, Workbench, completed
from winml.modelkit.search.trial import Yardstick
from winml.modelkit.store.journal import Journal, check_forms
from winml.modelkit.store.journal import read as read_journal
from winml.modelkit.worker.scratch import ScratchFolder

EVERYTHING = 10**9
BUILD_TIMEOUT_S = 600.0
"""A stage that takes longer hangs, as far as a search is concerned."""


def autoconfig(request: AutoconfigRequest, on_event: OnEvent) -> dict[str, Any]:
    """Search and return the JSON object of the contract; a search that ends early is raised with it as details."""
    started = time.monotonic()
    check(request)
    folder = SearchFolder(Path(request.output).absolute(), resume=request.resume, overwrite=request.overwrite)
    start = prepared(request, on_event)
    anew = _starts_anew(start, folder)
    with Journal(folder.path / JOURNAL, restart=anew) as journal, ScratchFolder("winml-autoconfig-") as work:
        if anew:
            folder.clear()
        records = _opened(journal, list(journal.replay.records), start)
        return _searched(start, folder, journal, records, work, started, on_event)


def _starts_anew(start: Prepared, folder: SearchFolder) -> bool:
    """Whether nothing of what lies in the folder is gone on from: a search without a trial of this one is none."""
    if start.request.overwrite:
        return True
    if folder.holds_trial:
        return False
    records = read_journal(folder.path / JOURNAL).records
    return not start.request.resume or not records or records[0].get("identity") != start.identity


def _opened(journal: Journal, records: list[dict[str, Any]], start: Prepared) -> list[dict[str, Any]]:
    """The records to go on from; a new journal is told what it belongs to, an old one must belong to this search."""
    if not records:
        first = {"kind": "study", "winml": __version__, "identity": start.identity}
        made = [first, *reused(start.request.reuse, start.identity, start.insight.space)]
        for record in made:
            journal.append(record)
        return made
    study = records[0]
    if study.get("kind") != "study":
        raise RequestError(f"`{journal.path}` is not the journal of a search")
    if study.get("winml") != __version__:
        raise RequestError(
            f"the journal is of winml {study.get('winml')}, this is {__version__}", hint="use a new folder"
        )
    check_forms(records, FORMS, source=str(journal.path))
    differing = sorted(key for key, value in start.identity.items() if study["identity"].get(key) != value)
    if differing:
        raise RequestError(
            f"the journal in `{journal.path.parent}` is of another search: {', '.join(differing)} differ",
            hint="give the same options as before, or use a new folder",
        )
    return records


def _searched(
    start: Prepared,
    folder: SearchFolder,
    journal: Journal,
    records: list[dict[str, Any]],
    work: Path,
    started: float,
    on_event: OnEvent,
) -> dict[str, Any]:
    gate = Gate(start.gate, start.source.path.parent, work)
    bench = Workbench(_job(start, records), gate, work, keep=folder.keep, on_event=on_event)
    try:
        start = _weighed(start, bench, journal, records)
        on_event({"event": "insight", "insight": start.insight, "limits": start.request.limits})
        study = _study(start, bench, journal, records, on_event)
        study.note_preparation(time.monotonic() - started)
        study.watch(lambda: folder.derive(autoconfig_result.table(study, start.objective)))
        return _ran(study, start, folder, on_event)
    finally:
        bench.close()


def _weighed(start: Prepared, bench: Workbench, journal: Journal, records: list[dict[str, Any]]) -> Prepared:
    """What is known, with the target's own answer about findings that leave something out."""
    known = search_evidence.from_records(records)
    fresh = search_evidence.asked(start.whole, start.insight, start.findings, bench, known)
    for one in fresh:
        journal.append(one.to_json())
    return replace(start, insight=search_evidence.weighed(start.whole, start.insight, [*known, *fresh]))


def _study(
    start: Prepared, bench: Workbench, journal: Journal, records: list[dict[str, Any]], on_event: OnEvent
) -> Study:
    insight, protocol = start.insight, PROTOCOLS[start.resolved[0].target.device]
    plan = Plan(
        insight.space,
        Yardstick(protocol),
        priority=insight.priority,
        allowed=insight.allowed,
        limits=start.request.limits,
        rounds=protocol.first_look,
        race_all=EVERYTHING if start.request.exhaustive else RACE_ALL,
        leave_failing=not start.request.exhaustive,
    )
    return Study(
        plan,
        Guarded(bench),
        append=journal.append,
        records=records,
        name=search_space.trial_name,
        because=insight.because,
        on_event=on_event,
    )


def _ran(study: Study, start: Prepared, folder: SearchFolder, on_event: OnEvent) -> dict[str, Any]:
    """The result of a finished search; of one that ends early what there is of it goes along with the error."""

    def so_far(ended: str | None) -> dict[str, Any]:
        return autoconfig_result.result_of(start, study, folder, ended)

    try:
        ended = study.run()
        _enough_for_one(study, start, ended)
        result = so_far(ended)
        delivering = time.monotonic()
        _deliver(result, start, study, folder, on_event)
        autoconfig_result.note_time(result, time.monotonic() - delivering)
        folder.report(result)
    except KeyboardInterrupt as error:
        raise Interrupted("interrupted; go on with `--resume`", details=_kept(so_far, folder)) from error
    except ModelkitError as error:
        error.details |= _kept(so_far, folder)
        raise
    autoconfig_result.raise_for(result)
    return result


def _kept(so_far: Callable[[str | None], dict[str, Any]], folder: SearchFolder) -> dict[str, Any]:
    """What there is of a search that did not end, on disk and for the caller."""
    result = so_far(None)
    if result["trials"]:
        folder.report(result)
    return {name: value for name, value in result.items() if name not in ("schema", "ok")}


def _job(start: Prepared, records: list[dict[str, Any]]) -> Job:
    request = start.request
    baseline = next((record["trial"]["facts"] for record in records if record["kind"] == "trial"), None)
    return Job(
        source=start.source,
        targets={str(r.target): r for r in start.resolved},
        baseline=start.base,
        calibration=None if start.calibration is None else sections.plain(start.calibration),
        inputs=request.inputs,
        objective=start.objective,
        protocol=PROTOCOLS[start.resolved[0].target.device],
        raise_priority=request.raise_priority,
        calibrate=request.calibrate,
        seed=request.seed,
        build_timeout_s=min(BUILD_TIMEOUT_S, request.limits.budget_s),
        measured_on=baseline["environment"]["machine"] if baseline and start.objective == "latency" else None,
    )


def _enough_for_one(study: Study, start: Prepared, ended: str) -> None:
    """Raise when the budget was too small for a single verdict."""
    if len(study.state.trials) > 1 or not ended.startswith("the budget"):
        return
    needed = study.state.seconds + reserve_s(study.state)
    again = start.request.again or "the same command with --resume"
    raise RunFailedError(
        f"a budget of {study.plan.limits.budget_s:.0f} s is too small for one verdict: about {needed:.0f} s are needed",
        hint=f"go on with `{again} --budget {math.ceil(needed * 2 / 60)}m`",
    )


def _stages_only(on_event: OnEvent) -> OnEvent:
    """The events of a build without its target, which the search has told already."""
    return lambda event: None if isinstance(event, TargetChosen) else on_event(event)


def _deliver(result: dict[str, Any], start: Prepared, study: Study, folder: SearchFolder, on_event: OnEvent) -> None:
    """The champion's build folder, the reports and the drafts of findings."""
    best = champion(study.state)
    config = completed(
        study.plan.space.config(best.choice),
        None if start.calibration is None else sections.plain(start.calibration),
    )
    named = replace(config, model=str(start.source.path))
    on_event({"event": "delivering", "id": best.id})
    # The gate of the search ran this artifact on its target.
    proof = handed_over(named.target, best.facts, start.gate.data.source) if best.facts.get("accuracy") else None
    request = BuildRequest(config=named, output=str(folder.champion), overwrite=True, proof=proof)
    made = build(request, _stages_only(on_event))
    if made["artifact"]["digest"] != best.facts["artifact"]["digest"]:
        raise RunFailedError(
            f"the champion was rebuilt with another digest: {made['artifact']['digest']}, "
            f"measured was {best.facts['artifact']['digest']}",
            hint="a stage is not deterministic on this machine; what was measured is in the journal",
        )
    result["champion"] |= {"folder": str(folder.champion), "digest": made["artifact"]["digest"]}
    result["drafts"] = folder.drafts(result, start.objective)

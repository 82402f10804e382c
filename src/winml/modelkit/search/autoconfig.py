"""`winml autoconfig`: the fastest config of a model that is still accurate on a target, and the proof."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path

from winml.modelkit import __version__
from winml.modelkit.building.build import BuildRequest, build
from winml.modelkit.building.proof.proof import ON_TARGET, LeastAgreement, Proof
from winml.modelkit.core.errors import Interrupted, ModelkitError, RequestError, RunFailedError
from winml.modelkit.core.events import Event, OnEvent, TargetChosen
from winml.modelkit.core.metric_source import MetricSource
from winml.modelkit.core.objective import MEASURED
from winml.modelkit.evaluation.custom_metric import CustomMetric
from winml.modelkit.measuring.protocols import PROTOCOLS
from winml.modelkit.search.events import DeliveryStarted, SearchPlanned
from winml.modelkit.search.evidence import apply_evidence, ask_target
from winml.modelkit.search.gate import Gate
from winml.modelkit.search.prepare import AutoconfigRequest, Preparation, check_request, prepare
from winml.modelkit.search.records import (
    JOURNAL,
    EvidenceRecord,
    Record,
    StudyRecord,
    TrialRecord,
    read_records,
    reuse_trials,
)
from winml.modelkit.search.result import (
    SearchResult,
    add_delivery_time,
    make_result,
    make_session,
    make_table,
    raise_if_all_failed,
)
from winml.modelkit.search.run_folder import SearchFolder
from winml.modelkit.search.strategy import RACE_ALL, SearchPlan, choose_champion, reserve_s
from winml.modelkit.search.study import Study
from winml.modelkit.search.tools import SearchSubject, Workbench, complete_config
from winml.modelkit.search.trial import Yardstick
from winml.modelkit.store.journal import Journal
from winml.modelkit.store.journal import read as read_journal
from winml.modelkit.worker.scratch import ScratchFolder

EVERYTHING = 10**9
BUILD_TIMEOUT_S = 600.0
"""A stage that takes longer counts as hanging."""


def autoconfig(request: AutoconfigRequest, on_event: OnEvent) -> SearchResult:
    """Search for the best config; an error that ends it early carries the result so far."""
    started = time.monotonic()
    check_request(request)
    folder = SearchFolder(Path(request.output).absolute(), resume=request.resume, overwrite=request.overwrite)
    if request.resume and folder.holds_trial:
        # Before the model is looked at: without the function its task may be unknown.
        _refuse_other_metric(_read_metric(folder.path / JOURNAL), request.custom)
    start = prepare(request, on_event)
    restart = _must_restart(start, folder)
    with Journal(folder.path / JOURNAL, restart=restart) as journal, ScratchFolder("winml-autoconfig-") as work:
        if restart:
            folder.clear()
        records = _open_records(journal, start)
        gate = Gate(start.gate, start.source.path.parent, work)
        bench = Workbench(_make_subject(start, records), gate, work, keep=folder.keep, on_event=on_event)
        try:
            known = [record for record in records if isinstance(record, EvidenceRecord)]
            evidence = ask_target(start.whole, start.insight, start.findings, bench.placement, known)
            for one in evidence:
                journal.append(one)
            start = replace(start, insight=apply_evidence(start.whole, start.insight, [*known, *evidence]))
            plan = _make_plan(start)
            on_event(SearchPlanned(start.insight, request.limits, plan.space.size if plan.all_raced else None))
            study = Study(
                plan,
                bench,
                append=journal.append,
                records=records,
                because=start.insight.because,
                on_event=on_event,
            )
            study.note_preparation(time.monotonic() - started)
            study.watch(lambda: folder.derive(make_table(study), make_session(study, start.objective)))
            return _run(study, start, folder, on_event)
        finally:
            bench.close()


def _must_restart(start: Preparation, folder: SearchFolder) -> bool:
    """Whether to ignore what is in the folder: it has no trial of this search."""
    if start.request.overwrite:
        return True
    if folder.holds_trial:
        return False
    path = folder.path / JOURNAL
    lines = read_journal(path).records
    if not start.request.resume or not lines or lines[0].get("kind") != "study":
        return True
    try:
        study = read_records(lines[:1], str(path))[0]
    except RequestError:  # written by another version
        return True
    return not isinstance(study, StudyRecord) or bool(start.identity.differences(study.identity))


def _open_records(journal: Journal, start: Preparation) -> list[Record]:
    """The records to resume from; a new journal records its search, an old one must belong to this search."""
    lines = journal.replay.records
    if not lines:
        records: list[Record] = [StudyRecord(winml=__version__, identity=start.identity, model=start.model)]
        if start.request.reuse is not None:
            records += reuse_trials(start.request.reuse, start.identity, start.insight.space.options())
        for record in records:
            journal.append(record)
        return records
    if lines[0].get("kind") != "study":
        raise RequestError(f"`{journal.path}` is not the journal of a search")
    if lines[0].get("winml") != __version__:
        raise RequestError(
            f"the journal was written by winml {lines[0].get('winml')}, this is {__version__}", hint="use a new folder"
        )
    records = read_records(lines, str(journal.path))
    assert isinstance(records[0], StudyRecord)
    differing = sorted(start.identity.differences(records[0].identity))
    if differing:
        raise RequestError(
            f"the journal in `{journal.path.parent}` belongs to another search: {', '.join(differing)} differ",
            hint="use the same options as before, or a new folder",
        )
    return records


def _read_metric(journal: Path) -> MetricSource | None:
    """The user's own function that the search in a journal is judged by; None where there is none, or it is unread."""
    lines = read_journal(journal).records[:1]
    try:
        study = read_records(lines, str(journal))[0] if lines else None
    except RequestError:  # opening it says what is wrong
        return None
    return study.identity.gate.custom_metric if isinstance(study, StudyRecord) else None


def _refuse_other_metric(before: MetricSource | None, given: CustomMetric | None) -> None:
    """Raise when a search was judged by another function of the user's: a journal names one and never runs it."""
    now = None if given is None else given.source
    if now is None and before is not None:
        raise RequestError(
            f"this search is judged by the function `{before.function}`, which its journal only names",
            hint=f"give it again: `--metric FILE.py:{before.function}`",
        )
    if now is not None and (before is None or before.function != now.function):
        named = "no function of your own" if before is None else f"the function `{before.function}`"
        raise RequestError(f"this search is judged by {named}", hint="use the same options as before, or a new folder")
    if now is not None and before is not None and before.digest != now.digest:
        raise RequestError(
            f"the text of `{now.function}` has changed since this search was judged by it",
            hint="use the file as it was, or a new folder",
        )


def _make_subject(start: Preparation, records: list[Record]) -> SearchSubject:
    request = start.request
    baseline = next((record.trial.facts for record in records if isinstance(record, TrialRecord)), None)
    environment = None if baseline is None or start.objective not in MEASURED else baseline.environment
    return SearchSubject(
        source=start.source,
        targets={str(r.target): r for r in start.resolved},
        baseline=start.base,
        calibration=start.calibration,
        inputs=request.inputs,
        objective=start.objective,
        protocol=PROTOCOLS[start.resolved[0].target.device],
        raise_priority=request.raise_priority,
        calibrate=request.calibrate,
        seed=request.seed,
        build_timeout_s=min(BUILD_TIMEOUT_S, request.limits.budget_s),
        measured_on=None if environment is None else environment.machine,
        decoder=start.decoder,
    )


def _make_plan(start: Preparation) -> SearchPlan:
    insight, protocol = start.insight, PROTOCOLS[start.resolved[0].target.device]
    return SearchPlan(
        insight.space,
        Yardstick(protocol),
        priority=insight.priority,
        is_allowed=insight.is_allowed,
        limits=start.request.limits,
        rounds=protocol.first_look_alone if start.objective == "memory" else protocol.first_look,
        race_all=EVERYTHING if start.request.exhaustive else RACE_ALL,
        leave_failing=not start.request.exhaustive,
    )


def _run(study: Study, start: Preparation, folder: SearchFolder, on_event: OnEvent) -> SearchResult:
    """The result of a finished search; an error that ends it early carries the result so far."""

    def result_so_far() -> SearchResult:
        result = make_result(start, study, folder, None)
        if result.trials:
            folder.report(result)
        return result

    try:
        ended = study.run()
        if len(study.state.trials) == 1 and ended.startswith("the budget"):
            raise _too_small_budget(study, start)
        result = make_result(start, study, folder, ended)
        started = time.monotonic()
        result = _deliver(result, start, study, folder, on_event)
        result = add_delivery_time(result, time.monotonic() - started)
        folder.report(result)
    except KeyboardInterrupt as error:
        raise Interrupted("interrupted; resume with `--resume`", result=result_so_far()) from error
    except ModelkitError as error:
        error.result = result_so_far()
        raise
    raise_if_all_failed(result)
    return result


def _too_small_budget(study: Study, start: Preparation) -> RunFailedError:
    """The error for a budget that is too small for a single verdict."""
    needed = study.state.seconds + reserve_s(study.state)
    again = start.request.again or "the same command with --resume"
    return RunFailedError(
        f"a budget of {study.plan.limits.budget_s:.0f} s is too small for one verdict: about {needed:.0f} s needed",
        hint=f"resume with `{again} --budget {math.ceil(needed * 2 / 60)}m`",
    )


def _deliver(
    result: SearchResult, start: Preparation, study: Study, folder: SearchFolder, on_event: OnEvent
) -> SearchResult:
    """The result with the champion's build folder and the drafts of findings."""
    best = choose_champion(study.state)
    on_event(DeliveryStarted(best.id))
    config = replace(
        complete_config(study.plan.space.config(best.choice), start.calibration), model=str(start.source.path)
    )
    proof, accuracy = None, best.facts.accuracy
    if accuracy is not None:  # the gate of the search ran this artifact on its target, against the given model
        proof = Proof(
            status=ON_TARGET,
            on=config.target,
            agreement=LeastAgreement(output=None, cosine=accuracy.agreement),
            samples=accuracy.samples,
            data=start.gate.data.source,
            placement=best.facts.placement,
        )
    request = BuildRequest(config=config, output=str(folder.champion), overwrite=True, proof=proof)

    def forward(event: Event) -> None:
        if not isinstance(event, TargetChosen):  # the search has reported it already
            on_event(event)

    built = build(request, forward)
    assert best.facts.artifact is not None
    assert result.champion is not None
    if built.artifact.digest != best.facts.artifact.digest:
        raise RunFailedError(
            f"the rebuilt champion has another digest than the measured one: {built.artifact.digest}, "
            f"measured {best.facts.artifact.digest}",
            hint="a stage is not deterministic on this machine; the measurements are in the journal",
        )
    delivered = replace(result.champion, folder=str(folder.champion), digest=built.artifact.digest)
    return replace(result, champion=delivered, drafts=folder.draft_findings(result, start.facts))

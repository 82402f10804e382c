"""The result of a search: trials with verdicts, the champion, the Pareto front, what was skipped and why."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.environment import Environment
from winml.modelkit.core.error_object import ErrorObject
from winml.modelkit.core.errors import RunFailedError
from winml.modelkit.core.latency import ArmMemory, ArmTimes
from winml.modelkit.core.objective import TIMED, Objective
from winml.modelkit.core.placement import Placement
from winml.modelkit.core.plain_text import shell_word
from winml.modelkit.core.result import CommandResult
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import NotEmpty, Pattern, key
from winml.modelkit.core.verdict import Verdict, gain_pct, speedup
from winml.modelkit.ep.trust import option_to_repeat
from winml.modelkit.knowledge.model_family import ModelFamily
from winml.modelkit.measuring.protocols import PROTOCOLS
from winml.modelkit.measuring.summary import spread_of
from winml.modelkit.search import race, strategy
from winml.modelkit.search.insight import NOT_FINDINGS, Insight
from winml.modelkit.search.records import GateLimits, StudyRecord, describe_limits
from winml.modelkit.search.space import ConfigJSON
from winml.modelkit.search.study import Study
from winml.modelkit.search.trial import Accuracy, Note, Step, Trial, TrialArtifact, TrialOutcome, Yardstick
from winml.modelkit.search.trial_state import TrialState, name_state

if TYPE_CHECKING:
    from winml.modelkit.search.prepare import Preparation
    from winml.modelkit.search.run_folder import SearchFolder

_SECTIONS = ("target", "optimize", "quantize", "compile", "session")
Bounds = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class ConfirmationResult:
    """The verdict of fresh rounds on a trial."""

    word: Literal["KEEP_CONFIRMED", "MARGINAL_UNCONFIRMED"]
    verdict: Verdict
    measurement: str | None
    """The name of its samples in `measurements`."""
    times: ArmTimes | None
    memory: ArmMemory | None = key(omit=True)


@dataclass(frozen=True, kw_only=True)
class TrialResult:
    """A config that was tried."""

    id: Annotated[str, Pattern("h[0-9]+", "the id of a trial")]
    label: str
    choice: Mapping[str, str]
    """Levels by knob; a knob that is not named is at its default."""
    target: str | None
    changes: Mapping[str, Any]
    """Sections of the config that differ from the baseline's, with the keys that do."""
    outcome: TrialOutcome
    step: Step | None
    """Where it ended; null for one that works."""
    reason: str
    same_as: str | None
    verdict: Verdict | None
    confirmation: ConfirmationResult | None
    times: ArmTimes | None
    memory: ArmMemory | None = key(omit=True)
    """Of fresh rounds, where memory is what is searched for."""
    rounds: int
    accuracy: Accuracy | None
    placement: Placement | None
    artifact: TrialArtifact | None
    probe_ms: Mapping[str, float] | None
    """Median of the probe by clock."""
    because: tuple[Note, ...]
    reused_from: str | None
    """The folder of an earlier search."""
    seconds: float

    @property
    def deciding_verdict(self) -> Verdict | None:
        """The verdict whose gain is reported: that of fresh rounds where there are some."""
        return self.verdict if self.confirmation is None else self.confirmation.verdict

    @property
    def state(self) -> TrialState:
        """What became of it, in plain words."""
        confirmed = None if self.confirmation is None else self.confirmation.word == "KEEP_CONFIRMED"
        return name_state(self.outcome, self.verdict, confirmed=confirmed)


@dataclass(frozen=True, kw_only=True)
class Champion:
    """The best confirmed config, with its gain on fresh rounds and the interval."""

    trial: TrialResult = key(inline=True)
    status: Literal["KEEP_CONFIRMED", "BASELINE_IS_BEST"]
    gain_pct: float
    gain_interval_pct: Bounds | None
    speedup: float | None
    """null when the objective is not a time."""
    speedup_interval: Bounds | None
    factor: float
    """How many times faster, smaller or fewer pieces."""
    folder: str | None = key(omit=True)
    """Its build folder, once delivered."""
    digest: Annotated[str, Pattern("sha256:.+", "a digest")] | None = key(omit=True)


@dataclass(frozen=True, kw_only=True)
class GateResult:
    """The limits that configs had to meet."""

    limits: GateLimits = key(inline=True)
    words: str


@dataclass(frozen=True, kw_only=True)
class SearchTime:
    """How long a search took, and its budget."""

    budget_s: float | None
    """null: no limit"""
    preparation_s: float
    """Of the last run, part of `seconds`."""
    delivery_s: float | None
    """Time to deliver the champion, not part of `seconds`; null before that."""


@dataclass(frozen=True, kw_only=True)
class NoEnvironment:
    """Nothing was measured yet."""


@dataclass(frozen=True, kw_only=True, repr=False)
class SearchResult(CommandResult):
    """A search."""

    schema: Literal["winml/autoconfig/1"] = "winml/autoconfig/1"
    ok: Literal[True] = True
    model: str
    model_digest: str
    targets: Annotated[tuple[Target, ...], NotEmpty()]
    objective: Objective
    gate: GateResult
    family: ModelFamily | None = key(omit=True)
    """What the model may be, by which findings apply; absent in a result that was read from a journal."""
    conv_share: float | None = key(omit=True)
    """Convolutions among all nodes."""
    folder: str
    finished: bool
    ended: str
    seconds: float
    """Preparing, trials and confirmations, over all runs."""
    time: SearchTime
    choices: int | None
    """null: thousands"""
    trials: tuple[TrialResult, ...]
    champion: Champion | None
    """null: the search is not finished."""
    pareto: tuple[str, ...]
    """Trials that no other one beats in speed, accuracy and size at once."""
    insight: tuple[Note, ...]
    environment: Environment | NoEnvironment
    drafts: tuple[str, ...]
    """Ids of drafted findings."""
    notes: tuple[str, ...]
    next: str
    node: str | None = key(omit=True)
    """The node of a cluster that searched; absent for this machine."""
    node_environment: Mapping[str, Any] | None = key(omit=True)


@dataclass(frozen=True, kw_only=True)
class FindingEffect:
    """What a finding did in a search."""

    finding: str
    skipped: int
    """Settings that it ruled out."""
    moved: int
    """Settings that it moved to the front or to the end."""


@dataclass(frozen=True, kw_only=True)
class SweepRow:
    """A model of a list."""

    model: str
    folder: str
    error: ErrorObject | None
    champion: Champion | None
    trials: int
    node: str | None
    """The node of a cluster that searched; null for this machine."""
    conv_share: float | None = key(omit=True)
    """Convolutions among all nodes; absent where that is not known."""
    findings: tuple[FindingEffect, ...] | None = key(omit=True)
    """The findings that changed what was tried, or in which order; absent for a search that failed."""


@dataclass(frozen=True, kw_only=True, repr=False)
class SweepResult(CommandResult):
    """Searches of several models."""

    schema: Literal["winml/autoconfig/1"] = "winml/autoconfig/1"
    ok: Literal[True] = True
    folder: str
    models: tuple[SweepRow, ...]
    total: int
    notes: tuple[str, ...]
    next: str


@dataclass(frozen=True, kw_only=True)
class TableRow:
    """A line of `results.tsv`."""

    id: str
    config: str
    target: str | None
    outcome: TrialOutcome
    verdict: str
    gain_pct: float | None
    low_pct: float | None
    high_pct: float | None
    rounds: int
    accuracy: float | None
    """The metric of labelled data; empty without them."""
    bytes: int | None
    seconds: float
    reason: str
    agreement: float | None
    """The median cosine with the given model's outputs."""
    state: TrialState


@dataclass(frozen=True, kw_only=True)
class SearchSession:
    """`session.json`: the state of the search with the field names of the earlier project."""

    schema: Literal["winml/autoconfig-session/1"] = "winml/autoconfig-session/1"
    objective: Objective
    baseline_p50: float | None
    """The median of the probe in ms; null when the objective is not a time."""
    best_p50: float | None
    """The same for the leader, from its ratio."""
    best_label: str
    best_gain_pct: float
    consecutive_discards: int
    completed: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class SearchState:
    """What results of trials are made from: a loop has it, and so does a journal."""

    state: strategy.State
    yardstick: Yardstick
    base: ConfigJSON

    @classmethod
    def of(cls, study: Study) -> SearchState:
        return cls(study.state, study.plan.yardstick_for(study.state), study.plan.space.base)


def _verdict(trial: Trial, known: SearchState) -> Verdict | None:
    """The verdict on a trial; without rounds where none were needed."""
    if trial.outcome == "baseline":
        return None
    if trial.outcome == "same":
        return Verdict("IDENTICAL", trial.reason)
    if trial.outcome == "slower":
        return Verdict("DISCARD", trial.reason)
    if trial.series is None:
        return Verdict("FAILED", trial.reason)
    if not trial.series.deciding:
        return Verdict("FAILED", trial.series.disturbed or trial.reason)
    return _against_champion(trial, known.yardstick.verdict(trial.series), known)


def _against_champion(trial: Trial, verdict: Verdict, known: SearchState) -> Verdict:
    """The verdict on a trial that may be faster than the baseline, and is certainly no better than the champion."""
    champion = strategy.choose_champion(known.state)
    if verdict.verdict != "INCONCLUSIVE" or trial.series is None or trial.series.disturbed is not None:
        return verdict
    if champion.outcome == "baseline" or trial.id == champion.id:
        return verdict
    if not race.is_behind(trial, champion, known.yardstick):
        return verdict
    reason = f"no better than {champion.id}: dropped from the race after {len(trial.series.deciding)} rounds"
    return replace(verdict, verdict="DISCARD", reason=reason)


def _changes(config: ConfigJSON, base: ConfigJSON) -> dict[str, Any]:
    """Sections of a config that differ from the baseline's, with the differing keys."""
    found: dict[str, Any] = {}
    for section in _SECTIONS:
        mine, theirs = config.get(section), base.get(section)
        if mine == theirs:
            continue
        if isinstance(mine, dict):
            before = theirs if isinstance(theirs, dict) else {}
            found[section] = {key: value for key, value in mine.items() if before.get(key) != value}
        else:
            found[section] = mine
    return found


def _confirmation(trial: Trial, known: SearchState) -> ConfirmationResult | None:
    done = next((done for done in known.state.confirmations if done.trial == trial.id), None)
    if done is None:
        return None
    return ConfirmationResult(
        word="KEEP_CONFIRMED" if done.confirmed else "MARGINAL_UNCONFIRMED",
        verdict=done.verdict,
        measurement=done.measured.measurement,
        times=done.measured.times,
        memory=done.measured.memory,
    )


def _times(trial: Trial, known: SearchState) -> ArmTimes | None:
    """Milliseconds of the baseline and of a trial in the deciding rounds."""
    series = [trial.series] if trial.series is not None else []
    if trial.outcome == "baseline":
        series = [t.series for t in known.state.trials if t.series is not None]
    metric = next((s.metric for s in series if s.medians_ms), None)
    if metric is None or metric == "exact":
        return None
    pairs = [pair for s in series for pair in s.medians_ms.get(metric, ())]
    own = [] if trial.outcome == "baseline" else [pair[1] for pair in pairs]
    base = spread_of([pair[0] for pair in pairs])
    return ArmTimes(metric=metric, base_ms=base, candidate_ms=spread_of(own) if own else base)


def _trial_result(trial: Trial, known: SearchState) -> TrialResult:
    verdict, facts, confirmation = _verdict(trial, known), trial.facts, _confirmation(trial, known)
    confirmed_times = None if confirmation is None else confirmation.times
    return TrialResult(
        id=trial.id,
        label=trial.label,
        choice=dict(trial.choice),
        target=facts.target,
        changes=_changes(facts.config, known.base),
        outcome=trial.outcome,
        step=None if trial.works else facts.step,
        reason=trial.reason or (verdict.reason if verdict else ""),
        same_as=trial.same_as,
        verdict=verdict,
        confirmation=confirmation,
        times=_times(trial, known) if confirmed_times is None else confirmed_times,
        memory=None if confirmation is None else confirmation.memory,
        rounds=0 if trial.series is None else len(trial.series.deciding),
        accuracy=facts.accuracy,
        placement=facts.placement,
        artifact=facts.artifact,
        probe_ms=facts.ms,
        because=trial.because,
        reused_from=facts.reused_from,
        seconds=trial.seconds,
    )


def _champion(known: SearchState, objective: Objective) -> Champion:
    trial = _trial_result(strategy.choose_champion(known.state), known)
    gain, interval = 0.0, None
    if trial.confirmation is not None:
        verdict = trial.confirmation.verdict
        assert verdict.gain_pct is not None
        gain, interval = verdict.gain_pct, verdict.interval_pct
    timed = objective in TIMED
    return Champion(
        trial=trial,
        status="BASELINE_IS_BEST" if trial.confirmation is None else "KEEP_CONFIRMED",
        gain_pct=gain,
        gain_interval_pct=interval,
        speedup=speedup(gain) if timed else None,
        speedup_interval=(speedup(interval[0]), speedup(interval[1])) if timed and interval is not None else None,
        factor=speedup(gain),
    )


def _front(state: strategy.State) -> tuple[str, ...]:
    """Trials that no other one beats in speed, accuracy and size at once."""
    points: dict[str, tuple[float, ...]] = {}
    scores = {runner.trial.id: runner.score for runner in race.rank_runners(state.trials)}
    for trial in state.trials:
        accuracy, artifact = trial.facts.accuracy, trial.facts.artifact
        score = 0.0 if trial.outcome == "baseline" else scores.get(trial.id)
        if score is not None and accuracy is not None and accuracy.value is not None and artifact is not None:
            value = -accuracy.value if accuracy.less_is_better else accuracy.value
            points[trial.id] = (score, value, -float(artifact.bytes))
    return race.pareto_front(points)


def suggest_next(
    study: Study, insight: Insight, objective: Objective, *, model: str, champion: str, where: str, again: str
) -> str:
    """The command that makes sense next: continue, run the champion, or what to try when nothing was gained.

    `where` is the option of the target, with what it needs; `again` continues the search.
    """
    state, plan = study.state, study.plan
    if not strategy.is_finished(state, plan):
        return again
    if any(done.confirmed for done in state.confirmations):
        return f"winml perf -m {champion} {where}"
    if any(note.excludes and note.source == "data" for note in insight.notes):
        wanted = "" if objective == "latency" else f" --objective {objective}"
        return f"winml autoconfig -m {model} {where}{wanted} --calibration FILE -o DIR"
    if strategy.is_out_of_budget(state, plan):
        return f"{again} --budget {math.ceil(plan.limits.budget_s * 2 / 60)}m"
    looks: Mapping[Objective, str] = {
        "latency": f"winml perf -m {model} {where} --op-tracing basic",
        "size": f"winml inspect -m {model}",
        "placement": f"winml analyze -m {model} {where}",
        # The folder of the champion is the baseline's then, and one that generates text whatever the model was.
        "first-token": f"winml perf -m {champion} {where} --op-tracing basic",
        "tokens-per-second": f"winml perf -m {champion} {where} --op-tracing basic",
        "memory": f"winml perf -m {champion} {where}",
    }
    return looks[objective]


def make_result(start: Preparation, study: Study, folder: SearchFolder, ended: str | None) -> SearchResult:
    """The result so far; `ended` is why the search is finished, None while it is not."""
    request, state, limits = start.request, study.state, study.plan.limits
    known = SearchState.of(study)
    is_decided = ended is not None or any(done.confirmed for done in state.confirmations)
    environment = state.trials[0].facts.environment if state.trials else None
    return SearchResult(
        model=start.model,
        model_digest=start.source.artifact.digest,
        targets=tuple(r.target for r in start.resolved),
        objective=start.objective,
        gate=GateResult(limits=start.gate.limits, words=start.gate.describe()),
        family=start.family,
        conv_share=start.facts.conv_share,
        folder=str(folder.path),
        finished=ended is not None,
        ended=ended or "not finished; resume with `--resume`",
        seconds=state.seconds,
        time=SearchTime(
            budget_s=None if math.isinf(limits.budget_s) else limits.budget_s,
            preparation_s=state.preparation_s,
            delivery_s=None,
        ),
        choices=study.plan.space.size,
        trials=tuple(_trial_result(trial, known) for trial in state.trials),
        champion=_champion(known, start.objective) if is_decided else None,
        pareto=_front(state),
        insight=start.insight.notes,
        environment=environment or NoEnvironment(),
        drafts=(),
        notes=start.notes,
        next=suggest_next(
            study,
            start.insight,
            start.objective,
            model=shell_word(start.model),
            champion=shell_word(str(Path(request.output, folder.champion.name))),
            where=f"--target {start.resolved[0].target}{option_to_repeat(request.ep_options, request.trust)}",
            again=request.again or "the same command with `--resume`",
        ),
    )


def result_of_journal(study: StudyRecord, state: strategy.State, folder: Path) -> SearchResult:
    """The result so far of a search that is running or was interrupted, from its journal alone.

    A journal does not hold the size of the space, the budget, and why settings were skipped.
    """
    identity = study.identity
    known = SearchState(state, Yardstick(PROTOCOLS[identity.targets[0].device], state.calibration), identity.baseline)
    is_decided = any(done.confirmed for done in state.confirmations)
    environment = state.trials[0].facts.environment if state.trials else None
    return SearchResult(
        model=study.model or identity.model,
        model_digest=identity.model,
        targets=identity.targets,
        objective=identity.objective,
        gate=GateResult(limits=identity.gate, words=describe_limits(identity.gate)),
        folder=str(folder),
        finished=False,
        ended="not finished: it is running, or was interrupted",
        seconds=state.seconds,
        time=SearchTime(budget_s=None, preparation_s=state.preparation_s, delivery_s=None),
        choices=None,
        trials=tuple(_trial_result(trial, known) for trial in state.trials),
        champion=_champion(known, identity.objective) if is_decided else None,
        pareto=_front(state),
        insight=(),
        environment=environment or NoEnvironment(),
        drafts=(),
        notes=("read from the journal: skipped settings and the budget are known when the search has ended",),
        next=f"winml report {shell_word(str(folder))}",
    )


def count_effects(notes: Iterable[Note]) -> tuple[FindingEffect, ...]:
    """What each finding did, in the order of the notes."""
    by_finding: dict[str, list[Note]] = {}
    for note in notes:
        if note.source not in NOT_FINDINGS:
            by_finding.setdefault(note.source, []).append(note)
    return tuple(
        FindingEffect(finding=name, skipped=(out := sum(n.excludes for n in found)), moved=len(found) - out)
        for name, found in by_finding.items()
    )


def add_delivery_time(result: SearchResult, delivery_s: float) -> SearchResult:
    """The result with the time of the delivery, and a note when the whole took longer than the budget."""
    notes, budget_s, whole = result.notes, result.time.budget_s, result.seconds + delivery_s
    if budget_s is not None and whole > budget_s:
        notes += (
            f"it took {whole:.0f} s, {whole - budget_s:.0f} s more than the budget: "
            "a trial or a confirmation that has started is not interrupted",
        )
    return replace(result, time=replace(result.time, delivery_s=delivery_s), notes=notes)


def make_table(study: Study) -> list[TableRow]:
    """The rows of `results.tsv`."""
    rows = []
    known = SearchState.of(study)
    for trial in study.state.trials:
        result = _trial_result(trial, known)
        verdict, accuracy = result.verdict, result.accuracy
        interval = None if verdict is None else verdict.interval_pct
        rows.append(
            TableRow(
                id=trial.id,
                config=trial.label,
                target=result.target,
                outcome=trial.outcome,
                verdict="BASELINE" if verdict is None else verdict.verdict,
                gain_pct=None if verdict is None else verdict.gain_pct,
                low_pct=None if interval is None else interval[0],
                high_pct=None if interval is None else interval[1],
                rounds=result.rounds,
                accuracy=None if accuracy is None or accuracy.kind != "task" else accuracy.value,
                bytes=None if result.artifact is None else result.artifact.bytes,
                seconds=trial.seconds,
                reason=result.reason,
                agreement=None if accuracy is None else accuracy.agreement,
                state=result.state,
            )
        )
    return rows


def make_session(study: Study, objective: Objective) -> SearchSession:
    """The content of `session.json`."""
    state, ranked = study.state, race.rank_runners(study.state.trials)
    timed = objective in TIMED and bool(state.trials)
    base_ms = (state.trials[0].facts.ms or {}).get("wall") if timed else None
    leader = ranked[0] if ranked and ranked[0].score > 0 else None
    best_ms = None if base_ms is None else base_ms * math.exp(-leader.score) if leader else base_ms
    return SearchSession(
        objective=objective,
        baseline_p50=base_ms,
        best_p50=best_ms,
        best_label=leader.trial.label if leader else "baseline",
        best_gain_pct=gain_pct(leader.score) if leader else 0.0,
        consecutive_discards=strategy.consecutive_discards(state),
        completed=tuple(trial.id for trial in state.trials),
        seconds=state.seconds,
    )


def raise_if_all_failed(result: SearchResult) -> None:
    """Raise when every trial but the baseline failed."""
    tried = result.trials[1:]
    if tried and not any(trial.outcome in ("measured", "same", "slower", "inaccurate") for trial in tried):
        words = "; ".join(f"{trial.id} ({trial.label}): {trial.reason}" for trial in tried[:5])
        more = f"; and {len(tried) - 5} more" if len(tried) > 5 else ""
        raise RunFailedError(f"every config failed: {words}{more}", result=result)

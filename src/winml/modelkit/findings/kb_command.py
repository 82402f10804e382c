"""`winml kb`: lists, checks, judges, replays, promotes and drafts findings about EPs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import CheckFailed, DataError, RequestError
from winml.modelkit.core.events import OnEvent
from winml.modelkit.core.evidence import Evidence, MediansEvidence, SamplesEvidence
from winml.modelkit.core.finding import STATUSES, Finding
from winml.modelkit.core.ladder import RUNGS, missing_evidence, promote
from winml.modelkit.core.suggest import did_you_mean, near_path
from winml.modelkit.core.sweep import Claim
from winml.modelkit.core.values import read, to_json
from winml.modelkit.core.verdict import Verdict
from winml.modelkit.ep import targets
from winml.modelkit.ep.trust import NOTHING, Trust
from winml.modelkit.findings import replay
from winml.modelkit.findings.draft import draft_findings
from winml.modelkit.findings.judge import answer_claim, judge
from winml.modelkit.findings.result import (
    Draft,
    EvidenceGain,
    FindingRow,
    GapRow,
    KbCheck,
    KbDrafts,
    KbFinding,
    KbJudgement,
    KbList,
    KbPromotion,
    KbReplay,
    KbReport,
    NotListed,
    ReplayRow,
    ReportEntry,
)
from winml.modelkit.knowledge import files
from winml.modelkit.knowledge.files import knowledge_folder
from winml.modelkit.knowledge.findings import Knowledge, KnownFinding
from winml.modelkit.knowledge.gaps import Gap
from winml.modelkit.knowledge.presets import load_presets
from winml.modelkit.measuring.recorded import LEVEL, NEUTRAL_PCT, Answer, judge_pair
from winml.modelkit.measuring.stored import StoredSamples
from winml.modelkit.store import atomic


def _load_knowledge(given: str | None) -> Knowledge:
    """The knowledge base; a folder that was given must exist."""
    folder = knowledge_folder(given)
    if given is not None and not folder.is_dir():
        raise RequestError(f"folder not found: `{given}`", hint=near_path(given))
    return Knowledge(folder)


def _write_finding(folder: Path, finding: Finding) -> Path:
    path = folder / "findings" / f"{finding.id}.json"
    atomic.write_bytes(path, files.text(finding))
    return path


def _target(finding: Finding) -> str | None:
    """The target of a finding as text; the EP alone when it applies to all of its devices."""
    ep, device = finding.scope.ep, finding.scope.device
    return ep if device in (None, ep) else f"{ep}/{device}"


def _is_about(finding: Finding, asked: targets.TargetRequest) -> bool:
    right_ep = asked.ep is None or finding.scope.ep in (None, asked.ep.name)
    return right_ep and (asked.device is None or finding.scope.device in (None, asked.device))


def _is_gap_about(gap: Gap, shown_by: Sequence[Finding], asked: targets.TargetRequest) -> bool:
    """Whether a gap concerns a target: its EP, and the device of a finding that shows it."""
    if gap.eps and asked.ep is not None and asked.ep.name not in gap.eps:
        return False
    return not shown_by or any(_is_about(finding, asked) for finding in shown_by)


def list_findings(
    knowledge: str | None, *, target: str | None, status: str | None, with_general: bool = False
) -> KbList:
    """A summary of findings and gaps, filtered by status and target; those about no EP only `with_general`."""
    if status is not None and status not in STATUSES:
        raise RequestError(f"unknown status `{status}`", hint=did_you_mean(status, STATUSES))
    asked = targets.parse_target(target) if target is not None else None
    known = _load_knowledge(knowledge)
    findings = [finding for finding in known.findings if status in (None, finding.status)]
    gaps = list(known.gaps)
    not_listed = NotListed(findings=0, gaps=0)
    if asked is not None:
        shown_by = {gap.id: [finding for finding in known.findings if finding.id in gap.findings] for gap in gaps}
        findings = [finding for finding in findings if _is_about(finding, asked)]
        gaps = [gap for gap in gaps if _is_gap_about(gap, shown_by[gap.id], asked)]
        if not with_general:
            special = [finding for finding in findings if finding.scope.ep is not None]
            special_gaps = [g for g in gaps if g.eps or any(finding.scope.ep for finding in shown_by[g.id])]
            not_listed = NotListed(findings=len(findings) - len(special), gaps=len(gaps) - len(special_gaps))
            findings, gaps = special, special_gaps
    rows = tuple(
        FindingRow(
            id=finding.id,
            title=finding.title,
            target=_target(finding),
            category=finding.category,
            claim=finding.claim,
            status=finding.status,
            confidence=finding.confidence,
            prunes=finding.status == "confirmed" and finding.action is not None and finding.action.verb == "avoid",
            replayable=finding.experiment is not None,
            single_model=finding.single_model,
        )
        for finding in findings
    )
    gap_rows = tuple(GapRow(id=g.id, title=g.title, status=g.status, findings=g.findings) for g in gaps)
    return KbList(findings=rows, gaps=gap_rows, not_listed=not_listed)


_CLAIMED: dict[Claim, tuple[float | None, float | None]] = {
    "faster": (0.0, None),
    "slower": (None, 0.0),
    "neutral": (-NEUTRAL_PCT, NEUTRAL_PCT),
}
"""The gains in percent that agree with a claim."""
_SAMPLES_LEVEL = 0.95
"""Level of the interval of a verdict."""


@dataclass(frozen=True)
class _Judged:
    """What latency evidence shows; nothing for other evidence."""

    words: str | None = None
    gain: EvidenceGain | None = None


def _judge_evidence(evidence: Evidence, finding: Finding) -> _Judged:
    if isinstance(evidence, MediansEvidence):
        pair = evidence.data
        shown = judge_pair(pair.sweep, pair.base, pair.candidate)
        answer = answer_claim(shown, pair.claim)
        words = f"{answer} ({pair.claim}): {shown.reason}"
        if shown.gain_pct is None:
            return _Judged(words)
        gain = EvidenceGain(gain_pct=shown.gain_pct, interval_pct=shown.interval_pct, level=LEVEL,
                            claimed_pct=_CLAIMED[pair.claim], answer=answer)  # fmt: skip
        return _Judged(words, gain)
    if isinstance(evidence, SamplesEvidence):
        verdict = read(StoredSamples, to_json(evidence.data), "data", strict=False, error=DataError).judge()
        words = f"{verdict.verdict}: {verdict.reason}"
        return _Judged(words, None if verdict.gain_pct is None else _gain(verdict.gain_pct, verdict, evidence, finding))
    return _Judged()


def _gain(gain_pct: float, verdict: Verdict, evidence: SamplesEvidence, finding: Finding) -> EvidenceGain:
    """The gain of samples against the least one that the finding claims; a control is claimed nothing of."""
    interval, limit = verdict.interval_pct, 0.0
    answer: Answer | None = None
    if finding.experiment is not None:
        limit = finding.experiment.expect.gain_at_least_pct or 0.0
    if evidence.speaks != "control":
        answer = "insufficient"
        if interval is not None and (interval[0] >= limit or interval[1] < limit):
            answer = "supported" if interval[0] >= limit else "not supported"
    return EvidenceGain(gain_pct=gain_pct, interval_pct=interval, level=_SAMPLES_LEVEL,
                        claimed_pct=None if answer is None else (limit, None), answer=answer)  # fmt: skip


def _judge_all(known: KnownFinding) -> tuple[_Judged, ...]:
    """What each piece of evidence shows; an error names the field of unreadable samples."""
    answers = []
    for index, evidence in enumerate(known.finding.evidence):
        try:
            answers.append(_judge_evidence(evidence, known.finding))
        except DataError as error:
            raise DataError(f"`{known.path}`: `evidence[{index}]` is damaged: {error.message}") from error
        except (LookupError, ValueError) as error:  # each part is valid, but they do not fit together
            what = f"{type(error).__name__}: {error}"
            raise DataError(f"`{known.path}`: `evidence[{index}].data` is damaged: {what}") from error
    return tuple(answers)


def show_finding(knowledge: str | None, name: str) -> KbFinding:
    """A finding in full, with its evidence judged again and what each rung would need."""
    known = _load_knowledge(knowledge).entry(name)
    return KbFinding(
        file=str(known.path),
        finding=known.effective,
        outcomes=known.outcomes,
        judged=tuple(one.words for one in _judge_all(known)),
        missing={rung: missing_evidence(known.with_outcomes, rung) for rung in RUNGS},
    )


def _contradictions(known: KnownFinding) -> Iterator[str]:
    """Raw latency evidence for a finding that, judged again, shows nothing."""
    deciding = known.finding.deciding
    for evidence, judged in zip(known.finding.evidence, _judge_all(known), strict=True):
        if evidence in deciding and (judged.words or "").startswith(("INCONCLUSIVE", "IDENTICAL", "FAILED")):
            yield f"{known.finding.id}: evidence of {evidence.run} is {judged.words}"


def check_knowledge(knowledge: str | None) -> KbCheck:
    """Read everything strictly and judge its evidence again; raises CheckFailed on contradictions."""
    known = _load_knowledge(knowledge)
    presets = {name: len(preset.hypotheses) for name, preset in load_presets().items()}
    problems = [*known.find_broken_links(), *(problem for one in known for problem in _contradictions(one))]
    problems += [
        f"{one.finding.id}: a replay did not hold, so it is contested here"
        for one in known
        if one.effective.status != one.finding.status
    ]
    counts = Counter(finding.status for finding in known.findings)
    result = KbCheck(
        findings=sum(counts.values()),
        statuses={status: counts.get(status, 0) for status in STATUSES},
        gaps=len(known.gaps),
        presets=presets,
        problems=tuple(problems),
    )
    if problems:
        raise CheckFailed(f"{len(problems)} problems in the knowledge base: {problems[0]}", result=result)
    return result


def judge_sessions(
    knowledge: str | None, path: str, *, model: str | None, base: str, candidates: tuple[str, ...]
) -> KbJudgement:
    """Judge recorded sessions."""
    findings = _load_knowledge(knowledge).findings
    return judge(Path(path), findings, model=model, base=base, candidates=candidates)


def replay_finding(knowledge: str | None, name: str, on_event: OnEvent, *, trust: Trust = NOTHING) -> KbReplay:
    """Run the experiment of a finding on this machine."""
    folder = knowledge_folder(knowledge)
    return replay.replay(Knowledge(folder), name, folder, on_event, trust=trust)


def promote_finding(knowledge: str | None, name: str, rung: str) -> KbPromotion:
    """Promote a finding to a rung, with the evidence of its replays; raises when evidence is missing."""
    if rung not in RUNGS:
        raise RequestError(f"unknown rung `{rung}`", hint=did_you_mean(rung, RUNGS))
    folder = knowledge_folder(knowledge)
    known = Knowledge(folder).entry(name)
    now = known.effective
    if now.status in ("contested", "retracted") and rung in STATUSES:
        raise CheckFailed(f"`{now.id}` is {now.status}: {'; '.join(now.falsified_by)}")
    better = promote(known.with_outcomes, rung)
    path = _write_finding(folder, better)
    return KbPromotion(file=str(path), finding=better.id, rung=rung, runs=tuple(sorted(better.runs)))


def draft_from_run(knowledge: str | None, run: str) -> KbDrafts:
    """Draft findings from the kept gains of a run."""
    folder = knowledge_folder(knowledge)
    known = {one.finding.id for one in Knowledge(folder)}
    drafts, passed_over = draft_findings(Path(run))
    fresh = [finding for finding in drafts if finding.id not in known]
    for finding in fresh:
        _write_finding(folder, finding)
    return KbDrafts(
        folder=str(folder / "findings"),
        drafts=tuple(Draft(id=finding.id, title=finding.title) for finding in fresh),
        known=tuple(finding.id for finding in drafts if finding.id in known),
        passed_over=tuple(passed_over),
    )


def report(knowledge: str | None, file: str) -> KbReport:
    """The content of the page about the knowledge base, to be written to `file`."""
    known = _load_knowledge(knowledge)
    return KbReport(file=file, entries=tuple(map(_make_entry, known)), gaps=known.gaps)


def _make_entry(one: KnownFinding) -> ReportEntry:
    judged = _judge_all(one)
    return ReportEntry(
        target=_target(one.finding),
        single_model=one.finding.single_model,
        finding=one.effective,
        judged=tuple(found.words for found in judged),
        outcomes=tuple(ReplayRow(answer=o.answer, reason=o.reason, run=o.evidence.run) for o in one.outcomes),
        gains=tuple(found.gain for found in judged),
    )

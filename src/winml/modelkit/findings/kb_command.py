"""`winml kb`: what is known about EPs, whether it holds, and what may be done with it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from winml.modelkit.core.errors import CheckFailed, DataError, RequestError
from winml.modelkit.core.events import OnEvent
from winml.modelkit.core.finding import STATUSES, Evidence, Finding
from winml.modelkit.core.ladder import RUNGS, lacking, promoted
from winml.modelkit.core.location import knowledge_root
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.core.sweep import pair_from_json
from winml.modelkit.core.values import read
from winml.modelkit.ep import targets
from winml.modelkit.ep.trust import NOTHING, Trust
from winml.modelkit.findings import draft as kb_draft
from winml.modelkit.findings import judge as kb_judge
from winml.modelkit.findings import replay as kb_replay
from winml.modelkit.knowledge import files
from winml.modelkit.knowledge.findings import Entry, Knowledge
from winml.modelkit.knowledge.presets import load_presets
from winml.modelkit.measuring.recorded import judge_pair
from winml.modelkit.measuring.stored import StoredSamples
from winml.modelkit.store import atomic

SCHEMA = "winml/kb/1"


def _result(action: str, values: dict[str, Any]) -> dict[str, Any]:
    return {"schema": SCHEMA, "ok": True, "action": action, **values}


def knowledge_folder(given: str | None) -> Path:
    """Where the user's knowledge is written; it need not be there yet."""
    folder = knowledge_root() if given is None else Path(given).absolute()
    if folder.exists() and not folder.is_dir():
        raise RequestError(f"`{folder}` is not a folder")
    return folder


def _knowledge(given: str | None) -> Knowledge:
    """Everything that is known; a folder that was named has to be there to be read."""
    folder = knowledge_folder(given)
    if given is not None and not folder.is_dir():
        raise RequestError(f"folder not found: `{given}`")
    return Knowledge(folder)


def _where(finding: Finding) -> str | None:
    """The target a finding is about, as targets are written; the EP alone when it is about all of its devices."""
    ep, device = finding.scope.ep, finding.scope.device
    return ep if device in (None, ep) else f"{ep}/{device}"


def _row(entry: Entry) -> dict[str, Any]:
    finding = entry.effective
    return {
        "id": finding.id,
        "title": finding.title,
        "target": _where(finding),
        "category": finding.category,
        "claim": finding.claim,
        "status": finding.status,
        "confidence": finding.confidence,
        "prunes": finding.status == "confirmed" and finding.action is not None and finding.action.verb == "avoid",
        "replayable": finding.experiment is not None,
        "single_model": finding.single_model,
    }


def _about(finding: Finding, asked: targets.TargetRequest) -> bool:
    right_ep = asked.ep is None or finding.scope.ep in (None, asked.ep.name)
    return right_ep and (asked.device is None or finding.scope.device in (None, asked.device))


def listing(knowledge: str | None, *, target: str | None, status: str | None) -> dict[str, Any]:
    """Every finding in short, with the gaps; by target and status when they are given."""
    if status is not None and status not in STATUSES:
        raise RequestError(f"unknown status `{status}`", hint=did_you_mean(status, STATUSES))
    asked = targets.parse_target(target) if target is not None else None
    known = _knowledge(knowledge)
    rows = [_row(e) for e in known if asked is None or _about(e.finding, asked)]
    gaps = [{"id": g.id, "title": g.title, "status": g.status, "findings": list(g.findings)} for g in known.gaps]
    return _result("list", {"findings": [r for r in rows if status in (None, r["status"])], "gaps": gaps})


def _statistics(evidence: Evidence) -> str | None:
    """What our statistics say of evidence by latency; None for what needs no statistics."""
    if evidence.form == "medians":
        pair = pair_from_json(evidence.data, "data")
        judged = judge_pair(pair.sweep, pair.base, pair.candidate)
        return f"{kb_judge.claim_answer(judged, pair.claim)} ({pair.claim}): {judged.reason}"
    if evidence.form == "samples" and evidence.data is not None:
        verdict = read(StoredSamples, evidence.data, "data", strict=False, error=DataError).judge()
        return f"{verdict.verdict}: {verdict.reason}"
    return None


def _judged(entry: Entry) -> list[str | None]:
    """What our statistics say of each piece of evidence; samples that cannot be read are named by their field."""
    answers = []
    for index, evidence in enumerate(entry.finding.evidence):
        try:
            answers.append(_statistics(evidence))
        except DataError as error:
            raise DataError(f"`{entry.path}`: `evidence[{index}]` is damaged: {error.message}") from error
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            what = f"{type(error).__name__}: {error}"
            raise DataError(f"`{entry.path}`: `evidence[{index}].data` is damaged: {what}") from error
    return answers


def show(knowledge: str | None, name: str) -> dict[str, Any]:
    """A finding in full, with what our statistics say of its evidence and what each rung would need."""
    entry = _knowledge(knowledge).entry(name)
    finding = entry.effective
    return _result(
        "show",
        {
            "file": str(entry.path),
            "finding": finding.to_json(),
            "outcomes": [o.to_json() for o in entry.outcomes],
            "judged": _judged(entry),
            "missing": {rung: lacking(entry.with_outcomes, rung) for rung in RUNGS},
        },
    )


def _contradictions(entry: Entry) -> list[str]:
    """Raw latency evidence that speaks for a finding and, judged again, shows nothing."""
    return [
        f"{entry.finding.id}: evidence of {evidence.run} is {judged}"
        for evidence, judged in zip(entry.finding.evidence, _judged(entry), strict=True)
        if evidence in entry.finding.deciding and (judged or "").startswith(("INCONCLUSIVE", "IDENTICAL", "FAILED"))
    ]


def check(knowledge: str | None) -> dict[str, Any]:
    """Read everything strictly and judge its evidence again; what does not fit is a check answered with no."""
    known = _knowledge(knowledge)
    hypotheses = {name: len(preset.hypotheses) for name, preset in load_presets().items()}
    problems = [*known.strangers(), *(p for entry in known for p in _contradictions(entry))]
    problems += [
        f"{e.finding.id}: a replay did not hold, so it is contested here"
        for e in known
        if e.effective.status != e.finding.status
    ]
    counts = Counter(e.effective.status for e in known)
    result = _result(
        "check",
        {
            "findings": sum(counts.values()),
            "statuses": {status: counts.get(status, 0) for status in STATUSES},
            "gaps": len(known.gaps),
            "presets": hypotheses,
            "problems": problems,
        },
    )
    if problems:
        raise CheckFailed(f"{len(problems)} problems in the knowledge base: {problems[0]}", details=result)
    return result


def judge(
    knowledge: str | None, path: str, *, model: str | None, base: str, candidates: tuple[str, ...]
) -> dict[str, Any]:
    """What recorded sessions show."""
    known = _knowledge(knowledge)
    judged = kb_judge.judge(Path(path), known.findings, model=model, base=base, candidates=candidates)
    return _result("judge", judged)


def replay(knowledge: str | None, name: str, on_event: OnEvent, *, trust: Trust = NOTHING) -> dict[str, Any]:
    """Run the experiment of a finding here."""
    folder = knowledge_folder(knowledge)
    return _result("replay", kb_replay.replay(Knowledge(folder), name, folder, on_event, trust=trust))


def promote(knowledge: str | None, name: str, rung: str) -> dict[str, Any]:
    """Put a finding on a rung, with the evidence of its replays; refused when evidence is missing."""
    if rung not in RUNGS:
        raise RequestError(f"unknown rung `{rung}`", hint=did_you_mean(rung, RUNGS))
    folder = knowledge_folder(knowledge)
    entry = Knowledge(folder).entry(name)
    if entry.effective.status in ("contested", "retracted") and rung in STATUSES:
        raise CheckFailed(
            f"`{entry.finding.id}` is {entry.effective.status}: {'; '.join(entry.effective.falsified_by)}"
        )
    better = promoted(entry.with_outcomes, rung)
    path = folder / "findings" / f"{better.id}.json"
    atomic.write_bytes(path, files.text(better.to_json()))
    return _result("promote", {"file": str(path), "finding": better.id, "rung": rung, "runs": sorted(better.runs)})


def draft(knowledge: str | None, run: str) -> dict[str, Any]:
    """Draft findings from the kept gains of a run."""
    folder = knowledge_folder(knowledge)
    known = {e.finding.id for e in Knowledge(folder)}
    made, passed_over = kb_draft.drafts(Path(run))
    fresh = [finding for finding in made if finding.id not in known]
    for finding in fresh:
        atomic.write_bytes(folder / "findings" / f"{finding.id}.json", files.text(finding.to_json()))
    return _result(
        "draft",
        {
            "folder": str(folder / "findings"),
            "drafts": [{"id": f.id, "title": f.title} for f in fresh],
            "known": [f.id for f in made if f.id in known],
            "passed_over": passed_over,
        },
    )


def report(knowledge: str | None) -> dict[str, Any]:
    """Everything a page about the knowledge base shows."""
    known = _knowledge(knowledge)
    entries = [
        {
            "target": _where(entry.finding),
            "single_model": entry.finding.single_model,
            "finding": entry.effective.to_json(),
            "judged": _judged(entry),
            "outcomes": [{"answer": o.answer, "reason": o.reason, "run": o.evidence.run} for o in entry.outcomes],
        }
        for entry in known
    ]
    gaps = [gap.to_json() for gap in known.gaps]
    return _result("report", {"entries": entries, "gaps": gaps})

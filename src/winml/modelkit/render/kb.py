"""The text of `winml kb`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from winml.modelkit.render.marks import mark
from winml.modelkit.render.table import table

if TYPE_CHECKING:
    from winml.modelkit.findings.result import (
        KbCheck,
        KbDrafts,
        KbFinding,
        KbJudgement,
        KbList,
        KbPromotion,
        KbReplay,
        KbReport,
        NotListed,
    )


def list_text(result: KbList) -> str:
    rows = [("id", "target", "status", "level", "claim", "title")]
    for f in result.findings:
        status = mark(f.status, f.status + (" · prunes" if f.prunes else ""))
        rows.append((f.id, f.target or "any", status, f.confidence or "", f.claim, f.title))
    parts = [table(rows, head=True, drop=(3, 4, 1)) if len(rows) > 1 else "no findings match"]
    if result.gaps:
        gaps = [("gap", "status", "title"), *((g.id, mark(g.status), g.title) for g in result.gaps)]
        parts.append(table(gaps, head=True))
    general = _not_listed(result.not_listed)
    return "\n\n".join([*parts, general] if general else parts)


def _not_listed(count: NotListed) -> str:
    """`14 general notes and 1 general gap are not shown; --all shows them`, or nothing."""
    words = [
        f"{number} general {word}{'' if number == 1 else 's'}"
        for number, word in ((count.findings, "note"), (count.gaps, "gap"))
        if number
    ]
    one = count.findings + count.gaps == 1
    return (
        f"{' and '.join(words)} {'is' if one else 'are'} not shown; --all shows {'it' if one else 'them'}"
        if words
        else ""
    )


def _lines(title: str, values: Iterable[str]) -> list[str]:
    lines = [f"  - {v}" for v in values]
    return [f"{title}:", *lines] if lines else []


def finding_text(result: KbFinding) -> str:
    finding, mechanism = result.finding, result.finding.mechanism
    level = f", {finding.confidence}" if finding.confidence else ""
    where = "/".join(dict.fromkeys(w for w in (finding.scope.ep, finding.scope.device) if w)) or "any EP"
    lines = [
        f"{finding.id}  {finding.title}",
        f"{finding.status}{level} · {finding.claim} · {where} · {finding.category}",
        "",
        finding.observation,
        "",
        *_lines("models", (f"{m.role}: {m.model}, {m.result}" for m in finding.scope.models)),
        "evidence:" if finding.evidence else "evidence: none",
    ]
    for evidence, judged in zip(finding.evidence, result.judged, strict=True):
        simulated = ", simulated" if evidence.simulated else ""
        lines.append(f"  - {evidence.speaks}, {evidence.kind} ({evidence.form}{simulated}), {evidence.run}")
        lines.append(f"    {evidence.shows}")
        if judged is not None:
            lines.append(f"    judged again: {judged}")
    if mechanism.why:
        source = f" ({mechanism.source})" if mechanism.source else ""
        lines.append(f"why ({'confirmed' if mechanism.confirmed else 'unconfirmed'}): {mechanism.why}{source}")
    lines += _lines("falsified by", finding.falsified_by)
    lines += _lines("caveats", finding.caveats)
    lines += _lines("do not generalize to", finding.do_not_generalize_to)
    lines += _lines("replays", (f"{o.answer}: {o.reason}" for o in result.outcomes))
    lines += _lines("missing for", (f"{rung}: {why}" for rung, why in result.missing.items() if why))
    lines.append(f"file: {result.file}")
    return "\n".join(lines)


def check_text(result: KbCheck) -> str:
    statuses = ", ".join(f"{count} {status}" for status, count in result.statuses.items() if count)
    presets = ", ".join(f"{name} ({count})" for name, count in result.presets.items())
    return f"{result.findings} findings ({statuses}), {result.gaps} gaps, presets {presets}: no contradictions"


def _pct(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:+.1f} %" if abs(value) < 1000 else f"{value:+.0f} %"


def judgement_text(result: KbJudgement) -> str:
    rows: list[tuple[str, ...]] = [("target", "model", "config", "time saved", "answer", "effect", "why")]
    for pair in result.pairs:
        where = "/".join(dict.fromkeys(w for w in (pair.ep, pair.device) if w)) or "unknown"
        shown = pair.shown
        effect = "" if shown.effect == "unknown" else shown.effect
        rows.append((where, pair.model, shown.candidate, _pct(shown.gain_pct), shown.answer, effect, shown.reason))
    counts = ", ".join(f"{n} {answer}" for answer, n in result.counts.items())
    lines = [
        f"{result.file} · every config against {result.base}, {result.order}",
        table(rows, indent="  ", head=True, drop=(5, 0), below=6),
    ]
    for finding in result.findings:
        lines += ["", f"{finding.id} ({finding.status})  {finding.title}: {finding.answer}"]
        claims = [
            (p.model, f"{p.shown.base} -> {p.shown.candidate}", f"claimed {p.claim}", p.claim_answer, p.shown.reason)
            for p in finding.pairs
        ]
        lines.append(table(claims, indent="  ", below=4))
    return "\n".join([*lines, "", counts])


def replay_text(result: KbReplay) -> str:
    outcome, evidence = result.outcome, result.outcome.evidence
    versions = ", ".join(f"{name} {version}" for name, version in evidence.versions.items())
    simulated = " · simulated" if evidence.simulated else ""
    return "\n".join(
        [
            f"{outcome.finding}  {result.title}",
            f"{outcome.answer} here: {outcome.reason}",
            f"{versions}{simulated}",
        ]
    )


def promotion_text(result: KbPromotion) -> str:
    runs = ", ".join(result.runs) or "its observations"
    return f"{result.finding} is {result.rung} by {runs}"


def drafts_text(result: KbDrafts) -> str:
    lines = [f"{d.id}  {d.title}" for d in result.drafts] or ["no new draft"]
    lines += [f"{name}  already drafted" for name in result.known]
    lines += [f"skipped {p.hypothesis}: {p.reason}" for p in result.passed_over]
    return "\n".join(lines)


def report_text(result: KbReport) -> str:
    return f"{len(result.entries)} findings and {len(result.gaps)} gaps"
